// SPDX-License-Identifier: Apache-2.0
// The member's requests to the roll call.
#include "actors/training/member.hpp"

#include "actors/observing/task_view.hpp"
#include "messages/observing_message.hpp"

#include <utility>

namespace troupe {

namespace {

using member_pointer = observed_pointer<member_actor, member_state>;

constexpr auto timeout = caf::infinite; // the roll call keeps its own deadlines

// When the job is over, there is no roll call left that could tell a member how it ended.
tl::unexpected<error> failed(const caf::error& reason) {
  if (reason == caf::sec::request_receiver_down)
    return tl::unexpected<error>({errc::unavailable, "the chief's process has ended the job"});
  return tl::unexpected<error>(from_caf(reason));
}

void await_end(member_pointer self) {
  const auto& config = self->state.config;
  self->request(config.roll, timeout, make_await_end(config.entrance.member))
    .then(
      [self](const msg<wire::JobEnded>& ended) {
        self->state.config.on_end(read_job_ended(ended.reader()));
      },
      [self](const caf::error& reason) { self->state.config.on_end(failed(reason)); });
}

void enter(member_pointer self) {
  const auto& config = self->state.config;
  self->request(config.roll, timeout, make_enter_job(config.entrance))
    .then(
      [self](const msg<wire::JobBegins>& begins) {
        await_end(self);
        self->state.config.on_begin(begins);
      },
      [self](const caf::error& reason) { self->state.config.on_begin(failed(reason)); });
}

void leave(member_pointer self) {
  const auto& config = self->state.config;
  self->request(config.roll, timeout, make_leave_job(config.entrance.member))
    .then(
      [self](const msg<wire::JobEnded>& ended) {
        self->quit();
        self->state.config.on_left(read_job_ended(ended.reader()));
      },
      [self](const caf::error& reason) {
        self->quit();
        self->state.config.on_left(failed(reason));
      });
}

} // namespace

member_actor::behavior_type member(member_pointer self, member_config config) {
  self->state.config = std::move(config);
  enter(self);
  return {
    [self](const msg<wire::LeaveJob>&) { leave(self); },
    [self](const msg<wire::ReadTask>& request) {
      return make_task_report(
        report_here(*self->state.config.observed, request.reader().getMessages()));
    },
  };
}

} // namespace troupe
