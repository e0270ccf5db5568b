// SPDX-License-Identifier: Apache-2.0
// Waits in pieces, and looks at the deadline between two of them.
#include "strategies/coordinator/closure_waiter.hpp"

#include "actors/policies/waiting_lines.hpp"
#include "actors/recording/seconds.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/errors/users_code.hpp"
#include "strategies/contexts/context.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

void check_may_wait(std::string_view call) {
  const auto& stack = context_stack::current();
  if (!stack.may_block() || stack.top().kind == context_kind::computing)
    throw_failure(
      errc::wrong_context,
      "{} of the coordinator was called in {}; call it outside, where the coordinator is made",
      call, describe(stack.top()));
}

closure_waiter::closure_waiter(std::shared_ptr<const queue_gauge> gauge, job_time stall_deadline,
                               std::function<void(const std::string& line)> on_waiting)
  : gauge_(std::move(gauge)), stall_deadline_(stall_deadline),
    on_waiting_(on_waiting ? std::move(on_waiting) : say_on_standard_error) {}

expected<void> closure_waiter::wait(world& world, std::future<void>& over, job_time timeout) const {
  timeout = std::max(timeout, job_time{0});
  const auto began = world.now();
  auto moved = began;
  auto ended = gauge_->ended();
  waiting_lines lines{stall_deadline_};
  while (true) {
    const auto now = world.now();
    const auto piece = std::min({waiting_line_period, stall_deadline_ - (now - moved),
                                 timeout == world::for_ever ? timeout : timeout - (now - began)});
    auto turned = world.run_until(over, std::max(piece, job_time{0}));
    if (turned || turned.error().code != errc::deadline_exceeded) return turned;
    const auto waited = world.now();
    if (std::exchange(ended, gauge_->ended()) != gauge_->ended()) {
      moved = waited;
      lines = waiting_lines{stall_deadline_};
    }
    if (timeout != world::for_ever && waited - began >= timeout)
      return fail(errc::deadline_exceeded,
                  fmt::format("not done in {:.1f} s: {}", seconds(timeout), gauge_->awaited()));
    if (waited - moved >= stall_deadline_)
      return fail(errc::deadline_exceeded,
                  fmt::format("no closure has ended for {} s: {}", seconds(stall_deadline_),
                              gauge_->awaited()));
    if (auto line = lines.due(waited - moved, gauge_->awaited());
        line && !world.computes_in_place())
      on_waiting_(*line);
  }
}

} // namespace troupe
