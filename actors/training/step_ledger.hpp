// SPDX-License-Identifier: Apache-2.0
// The gradients of a step, joined from the accumulators' reports of their variables.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/payload.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// Each variable has an accumulator of its own, and two of them may take different replicas into
/// the same step. The ledger joins their reports: a replica's gradient counts as accepted if no
/// variable's part of it was stale, and has arrived when the last part has. A replica may leave out
/// variables that its loss does not depend on; it does not say which ones.
class step_ledger {
public:
  /// @param variable_count Reports that make a step complete.
  /// @param updates_awaited Where training is asynchronous, two variables may take a gradient into
  /// different steps. After so many steps since a part of its replica's next gradient was known,
  /// no part can be missing. Nothing: training is synchronous.
  explicit step_ledger(size_t variable_count, std::optional<uint32_t> updates_awaited = {})
    : missing_(variable_count), variables_(variable_count), updates_awaited_(updates_awaited) {}

  /// An accumulator has closed the step, or amends its report of that.
  /// @param accepted The gradients that it took. @param stale The gradients that it dropped since
  /// the step before.
  void add(std::span<const arrival> accepted, std::span<const arrival> stale, bool amends = false);

  /// True once every accumulator has closed the step.
  [[nodiscard]] bool complete() const { return missing_ == 0; }

  /// When the last gradient that the step needed came in.
  [[nodiscard]] job_time last_arrival() const;

  /// Takes the contributions out, in order of arrival, and begins the next step. A gradient that
  /// lacks parts waits for the reports of the next step, or as long as one may come; the parts that
  /// are missing then were left out. If a part of a gradient in the books comes some steps later,
  /// it is in no record: the gradient counts once.
  void close(step_record& record);

  /// Closes a step of a job with one variable, without a ledger: no other report speaks of these
  /// gradients.
  static void close_only(step_record& record, std::span<const arrival> accepted,
                         std::span<const arrival> stale);

private:
  /// Where an entry is, or `nowhere`.
  using place = size_t;
  static constexpr place nowhere = SIZE_MAX;

  struct entry {
    uint64_t iteration = 0; ///< Names the gradient, with its replica.
    contribution value;
    place before = nowhere; ///< The entry of the replica's gradient before this one.
    size_t parts = 1;       ///< Variables that have reported it.
    uint32_t waits = 0;     ///< Steps that it was held over, or since it was closed.
    bool stale = false;     ///< Whether a part of it was stale.
    bool closed = false;    ///< In the books; kept for parts that come late.
  };

  [[nodiscard]] static contribution contribution_of(const arrival& part);
  [[nodiscard]] static bool are_one(const entry& known, const entry& added);
  static void join(entry& known, const entry& added);
  void add(const arrival& part, bool stale);
  [[nodiscard]] bool is_due(entry& waiting) const;
  [[nodiscard]] bool is_forgotten(const entry& one) const;

  size_t missing_;
  size_t variables_;
  std::optional<uint32_t> updates_awaited_;
  std::vector<entry> entries_; ///< In the order of the reports.
  std::vector<place> latest_;  ///< By replica: its entry that was reported last.
};

} // namespace troupe
