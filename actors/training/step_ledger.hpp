// SPDX-License-Identifier: Apache-2.0
// The gradients of a step: what the accumulators report of each variable, put together.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/msg.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// Each variable has an accumulator of its own, and two of them may take different replicas into
/// the same step. The ledger joins their reports: a replica's gradient counts as accepted if no
/// variable's part of it was stale, and has arrived when the last part has. A replica may leave out
/// variables that its loss does not depend on; it does not say which ones.
class step_ledger {
public:
  /// @param variable_count Reports that make a step complete.
  /// @param asynchronous_patience Where training is asynchronous, two variables may take a gradient
  /// into different steps: so many of them may pass after something of its replica's next gradient
  /// is known, before which no part can be behind. Nothing: training is synchronous.
  explicit step_ledger(size_t variable_count, std::optional<uint32_t> asynchronous_patience = {})
    : missing_(variable_count), variables_(variable_count), patience_(asynchronous_patience) {}

  /// An accumulator has closed the step, or amends what was reported of that.
  void add(const msg<wire::TakenGradient>& report);

  /// True once every accumulator has closed the step.
  [[nodiscard]] bool complete() const { return missing_ == 0; }

  /// When the last gradient that the step needed came in.
  [[nodiscard]] job_time last_arrival() const;

  /// Takes the contributions out, in order of arrival, and begins the next step.
  /// A gradient with parts that are not judged yet waits for the reports of the next step, or as
  /// long as there is patience; what is still missing then was left out.
  void close(step_record& record);

private:
  using gradient_id = std::pair<uint32_t, uint64_t>; ///< Replica and iteration.

  struct entry {
    gradient_id id;
    contribution value;
    size_t parts = 1;    ///< Variables that have reported it.
    uint32_t waits = 0;  ///< Steps that it was held over.
    bool stale = false;  ///< A part of it was.
    bool closed = false; ///< In the books.
  };

  [[nodiscard]] static entry entry_of(wire::Arrival::Reader arrival, bool stale);
  static void join(entry& known, const entry& another);
  void join_equals();
  [[nodiscard]] bool is_due(size_t waiting);

  size_t missing_;
  size_t variables_;
  std::optional<uint32_t> patience_;
  std::vector<entry> entries_; ///< In the order of their ids.
};

} // namespace troupe
