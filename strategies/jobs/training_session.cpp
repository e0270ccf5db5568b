// SPDX-License-Identifier: Apache-2.0
// One step of one replica: the user's step function, its token and its end.
#include "strategies/jobs/training_session.hpp"

#include "messages/training_message.hpp"
#include "strategies/contexts/job_actors.hpp"

#include <algorithm>
#include <limits>

namespace troupe {

task<void> training_session::run(const step_function& step) {
  auto token_before = context_.tokens_taken_;
  bool cancelled = false;
  try {
    auto stepping = step(context_);
    co_await stepping;
  } catch (const failure& failed) {
    if (failed.reason().code != errc::cancelled) throw;
    cancelled = true;
  }
  // Without a token the cancellation came from the token queue: that is the end of the job.
  over_ = cancelled && !context_.has_token_;
  if (over_) co_return;
  if (cancelled) {
    auto taking = take_token();
    co_await taking;
  } else if (context_.tokens_taken_ == token_before) {
    throw failure{{errc::failed_precondition,
                   "the step function returned without apply_gradients; it would never end"}};
  }
  begin_iteration();
}

task<void> training_session::resume(replica_progress saved) {
  context_.activity_.restore(saved);
  // Nothing is left of a computation that was measured: that would pass for a fast gradient.
  if (saved.remaining > job_time{0}) {
    auto resting = context_.activity_.rest(saved.remaining);
    auto rested = co_await resting;
    context_.compute_time_ = rested.elapsed;
    auto pushing = optimizer_.push_nothing(context_);
    co_await pushing;
  }
  auto taking = take_token();
  co_await taking;
  begin_iteration();
}

// While an update goes on, some variables are of the next step already. The oldest one counts, or a
// gradient of it would pass for a fresh one. Where they lie further apart, some were trained less
// than others before this job, which counts its steps by those that were trained most.
task<void> training_session::rejoin(uint64_t life) {
  auto& actors = *context_.place_.actors;
  std::vector<std::pair<variable_owner_actor, msg<wire::ReadVariable>>> requests;
  for (const auto& variable : actors.variables)
    requests.emplace_back(actors.owner_of(variable), make_read_variable());
  auto reading = context_.activity_.request_all<msg<wire::VariableSnapshot>>(std::move(requests));
  auto replies = co_await reading;
  auto oldest = std::numeric_limits<uint64_t>::max();
  uint64_t newest = 0;
  for (auto& reply : replies) {
    auto version = value_or_throw(std::move(reply)).reader().getVersion();
    oldest = std::min(oldest, version);
    newest = std::max(newest, version);
  }
  auto step = newest - oldest > 1 ? newest : oldest;
  context_.questions_ = life * iterations_of_life;
  context_.activity_.restore({.local_step = step, .iteration = life * iterations_of_life});
}

task<void> training_session::take_token() {
  try {
    auto taking = optimizer_.take_token(context_);
    co_await taking;
  } catch (const failure& failed) {
    if (failed.reason().code != errc::cancelled) throw;
    over_ = true;
  }
}

void training_session::begin_iteration() {
  context_.activity_.count_iteration();
  context_.compute_time_ = job_time{0};
  context_.loss_ = std::numeric_limits<double>::quiet_NaN();
  context_.examples_ = 0;
}

} // namespace troupe
