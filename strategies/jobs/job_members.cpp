// SPDX-License-Identifier: Apache-2.0
// Spawns the roll call of a job, and talks to it.
#include "strategies/jobs/job_members.hpp"

#include "messages/cluster_message.hpp"
#include "messages/errors/throw_failure.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <mutex>
#include <string>
#include <utility>

namespace troupe {

/// The members that were lost, for a chief that is spawned later. Thread: any.
class job_members::losses {
public:
  void add(uint32_t member, const error& reason) {
    std::lock_guard guard{mutex_};
    lost_.emplace_back(member, reason);
    if (told_) told_(member, reason);
  }

  void tell(std::function<void(uint32_t member, const error& reason)> told) {
    std::lock_guard guard{mutex_};
    told_ = std::move(told);
    if (!told_) return;
    for (const auto& [member, reason] : lost_)
      told_(member, reason);
  }

private:
  std::mutex mutex_;
  std::function<void(uint32_t member, const error& reason)> told_;
  std::vector<std::pair<uint32_t, error>> lost_;
};

job_members::job_members(troupe::world& world, placement& placement, roll_call_config config)
  : world_(world), losses_(std::make_shared<losses>()) {
  value_or_throw(placement.enter("roll call"));
  config.world = &world;
  config.on_entered = entered_;
  config.on_waiting = [&placement](const std::string& line) { placement.tell_waiting(line); };
  config.on_lost
    = [losses = losses_](uint32_t member, const error& reason) { losses->add(member, reason); };
  config.on_left = left_;
  roll_ = world.system().spawn(roll_call, std::move(config));
  world.introduce(roll_.id(), "roll call");
  watch_roll_call();
  placement.put("roll call", roll_);
  placement.on_refusal(
    [entered = entered_](const error& why) { entered(tl::unexpected<error>(why)); });
}

job_members::~job_members() {
  on_loss({});
  static_cast<void>(
    leave({.failure = error{errc::failed_precondition, "the chief's process gave the job up"}}));
}

// If its node is lost, which is simulated only, no actor is left to say which members are there.
void job_members::watch_roll_call() {
  auto* roll = caf::actor_cast<caf::abstract_actor*>(roll_);
  roll->attach_functor([entered = entered_, left = left_](const caf::error& reason) {
    if (!reason) return;
    tl::unexpected<error> gone{{errc::unavailable, "the chief's process is gone"}};
    entered(gone);
    left(gone);
  });
}

void job_members::begin(uint64_t first_step, const std::vector<replica_progress>& replicas) {
  caf::anon_send(roll_, make_job_begins(first_step, world_.now(), replicas));
}

void job_members::on_loss(std::function<void(uint32_t member, const error& reason)> told) {
  losses_->tell(std::move(told));
}

void job_members::tell_end(const job_ending& ending) {
  world_.call([roll = roll_, ended = make_job_ended(ending)] { caf::anon_send(roll, ended); });
}

std::optional<error> job_members::leave(const job_ending& ending) {
  if (are_gone()) return ending.failure;
  tell_end(ending);
  auto left = left_.wait(world_);
  roll_ = nullptr;
  return left ? left->failure : left.error();
}

} // namespace troupe
