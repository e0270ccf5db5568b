// SPDX-License-Identifier: Apache-2.0
// The gradients of a replica for one variable, kept while they might have to be given again.
#pragma once

#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// With an accumulator, the gradients that it had accepted for its step are lost, and those for
/// later steps where training is asynchronous. So the giver keeps each gradient, by reference,
/// until its step must be over.
class resend_buffer {
public:
  /// An accumulator has accepted a gradient, which is part of `step` or of an earlier one. If the
  /// gradient was given again, the last call counts.
  void add(const msg<wire::PushGradient>& accepted, uint64_t step);

  /// A gradient will never be part of the variable.
  void forget(const origin& from);

  /// A replica has a token for `step`, or a mirror collects for it: gradients that were accepted
  /// for earlier steps are part of the variable, wherever it is held.
  void forget_before(uint64_t step);

  /// The variable has these gradients, and the earlier ones of their replicas.
  void forget_through(std::span<const gradient_id> latest);

  /// All gradients, which are given again now, in the order in which they were accepted. None is
  /// forgotten with a step before it is accepted again: others may come before it.
  [[nodiscard]] std::vector<msg<wire::PushGradient>> give_again();

  /// All gradients that are kept, in the order in which they were accepted.
  [[nodiscard]] std::vector<msg<wire::PushGradient>> all() const;

private:
  static constexpr auto unknown = std::numeric_limits<uint64_t>::max();

  struct entry {
    msg<wire::PushGradient> gradient;
    uint64_t step = 0; ///< The last one that it may be part of.
  };

  std::vector<entry> entries_;
};

/// The answer that a lost accumulator must have given to a gradient, by the last step that is known
/// of it, and the gradients that the variable has; nothing, if the gradient is not among them.
[[nodiscard]] std::optional<verdict> verdict_of(const closed_step& closed, const origin& from);

/// Where training is asynchronous: the first step that has the gradient, or a later one that is
/// over, too; nothing, if the variable does not have the gradient.
[[nodiscard]] std::optional<uint64_t> step_with(const closed_step& closed, const origin& from);

/// The gradients of `report` that `former`, a report of the same step, does not have.
/// @returns Empty, if there are none.
[[nodiscard]] msg<wire::TakenGradient> amendment(const msg<wire::TakenGradient>& report,
                                                 const msg<wire::TakenGradient>& former);

/// A report together with its amendment.
[[nodiscard]] msg<wire::TakenGradient> amended(const msg<wire::TakenGradient>& report,
                                               const msg<wire::TakenGradient>& amendment);

} // namespace troupe
