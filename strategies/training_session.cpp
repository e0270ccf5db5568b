// SPDX-License-Identifier: Apache-2.0
// One step of one replica, with what the step function does not see.
#include "strategies/training_session.hpp"

namespace troupe {

task<void> training_session::run(const step_function& step) {
  auto iteration = context_.iteration_;
  auto token_before = context_.tokens_taken_;
  bool cancelled = false;
  try {
    auto stepping = step(context_);
    co_await stepping;
  } catch (const failure& failed) {
    // Without a token the cancellation came from the token queue: that is the end of the job.
    if (failed.reason().code != errc::cancelled || !context_.has_token_) throw;
    cancelled = true;
  }
  if (cancelled) {
    auto taking = optimizer_.take_token(context_);
    co_await taking;
  } else if (context_.tokens_taken_ == token_before) {
    throw failure{{errc::failed_precondition,
                   "the step function returned without apply_gradients; it would never end"}};
  }
  context_.iteration_ = iteration + 1;
  context_.compute_time_ = job_time{0};
  context_.report(std::numeric_limits<double>::quiet_NaN(), 0);
}

} // namespace troupe
