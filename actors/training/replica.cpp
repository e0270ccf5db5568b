// SPDX-License-Identifier: Apache-2.0
// The replica's life, from JoinJob to Farewell.
#include "actors/training/replica.hpp"

#include "messages/errors/failure.hpp"
#include "messages/training_message.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using replica_pointer = observed_pointer<replica_actor, replica_state>;

// Why a life ended: none for the job's end. An actor that cannot be reached from here may be there
// for others, so the reason names this process.
error reason_to_leave(const std::exception_ptr& thrown, const std::string& process) {
  auto reason = reason_of(thrown);
  if (reason.code == errc::cancelled) return {};
  if (reason.code == errc::unavailable && !process.empty())
    reason.message = fmt::format("{} cannot go on: {}", process, reason.message);
  return reason;
}

task<void> live(replica_pointer self) {
  auto& [config, activity, life] = self->state;
  error reason;
  try {
    auto body = config.body(*activity);
    co_await body;
  } catch (...) {
    reason = reason_to_leave(std::current_exception(), config.process);
  }
  auto reported = reason;
  if (reason.code == errc::none && config.leave.stop_requested())
    reported = {errc::cancelled, "its process was asked to stop"};
  if (config.chief) self->send(config.chief, make_farewell(config.index, reported));
  self->quit(reason.code == errc::none ? caf::error{} : to_caf(reason));
}

void begin(replica_pointer self) {
  if (self->state.config.chief)
    self->send(self->state.config.chief, make_join_job(self->state.config.index));
  auto& activity = *self->state.activity;
  activity.run([self] {
    self->state.life = live(self);
    self->state.life.start();
  });
}

msg<wire::ReplicaProgress> progress(const replica_state& state) {
  auto progress = state.activity->progress();
  progress.replica = state.config.index;
  return make_replica_progress(progress);
}

} // namespace

replica_actor::behavior_type replica(replica_pointer self, replica_config config) {
  auto& state = self->state;
  state.config = std::move(config);
  state.activity.emplace(self, *state.config.world, state.config.pace);
  state.activity->set_ask_again_after(state.config.ask_again_after);
  if (state.config.processor)
    state.activity->set_processor(*state.config.processor,
                                  fmt::format("work of replica {}", state.config.index));
  self->send(self, begin_activity{});
  return {
    [self](begin_activity) { begin(self); },
    [self](const msg<wire::CancelStep>& cancel) {
      self->state.activity->cancel_before(cancel.reader().getStep());
    },
    [self](const msg<wire::ReadProgress>&) { return progress(self->state); },
    [self](const work_done& done) { self->state.activity->on(done); },
    [self](const delay_over& over) { self->state.activity->on(over); },
    [self](const wake& woken) { self->state.activity->on(woken); },
  };
}

} // namespace troupe
