// SPDX-License-Identifier: Apache-2.0
// Each node's process: its start, its part in the job, its end.
#include "simulation/simulated_processes.hpp"

#include "actors/training/member.hpp"
#include "messages/errors/failure.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

bool was_started(const std::vector<process_life>& lives, uint64_t attempt, node_index node) {
  return std::ranges::any_of(
    lives, [&](const auto& one) { return one.attempt == attempt && one.node == node; });
}

} // namespace

simulated_processes::simulated_processes(simulated_network& network, world& world,
                                         uint32_t replicas, std::map<node_index, job_time> late,
                                         std::vector<process_life>& lives)
  : nodes_(network.nodes()), events_(network.events()), placement_(network.placement()),
    world_(world), replicas_(replicas), late_(std::move(late)), lives_(lives) {
  placement_.on_roll_call = [this] { start_all(); };
  network.on_restart = [this](node_index node) { start(node); };
}

void simulated_processes::start_all() {
  is_in_job_ = true;
  for (const auto& [node, name] : placement_.others()) {
    auto late = late_.find(node);
    if (late == late_.end() || attempt_ > 0)
      start(node);
    else
      events_.at(events_.now() + late->second, [this, node = node, attempt = attempt_] {
        // Else all have been started anew, or this one has, after a crash.
        if (attempt == attempt_ && !was_started(lives_, attempt, node)) start(node);
      });
  }
}

void simulated_processes::start(node_index node) {
  if (!is_in_job_ || !nodes_.is_up(node)) return; // it will be there for the next one
  auto neighbour = nodes_.name_of(node);
  auto name = fmt::format("member of {}", neighbour);
  auto viewer = nodes_.is_replica(node) ? neighbour : fmt::format("owner {}", node - 1);
  auto roll = placement_.find<roll_call_actor>(viewer, "roll call");
  if (!roll) return;
  auto life = lives_.size();
  lives_.push_back({.node = node, .attempt = attempt_, .entered = events_.now()});
  member_config config{.roll = *roll,
                       .entrance = {.member = node,
                                    .clock = world_.now(),
                                    .seed = world_.seed(),
                                    .replicas = replicas_,
                                    .agreement = agreement_}};
  config.on_begin = [this, life](const auto& begins) { begin(life, begins); };
  config.on_end = [this, life](const auto&) { leave(life); };
  config.on_left = [this, life](const auto& ending) { come_to_end(life, ending); };
  auto actor = world_.system().spawn(member, std::move(config));
  world_.introduce(actor.id(), fmt::format("{} ({})", name, life));
  placement_.stand_beside(viewer, caf::actor_cast<caf::strong_actor_ptr>(actor));
  members_[life] = actor;
}

void simulated_processes::begin(size_t life, const expected<msg<wire::JobBegins>>& begins) {
  auto& process = lives_[life];
  if (!begins) {
    process.refused = begins.error();
    return leave(life);
  }
  process.began = events_.now();
  process.first_step = begins->reader().getFirstStep();
  if (nodes_.is_replica(process.node))
    placement_.bring_back(process.node - nodes_.replica_node(0));
  else if (begins->reader().getLife() > 0)
    placement_.bring_back_owners(process.node);
}

void simulated_processes::leave(size_t life) {
  auto member = members_.find(life);
  if (member == members_.end()) return; // its attempt is over, and it is about to end
  lives_[life].heard_of_end = events_.now();
  caf::anon_send(member->second, make_leave_job(lives_[life].node));
}

void simulated_processes::come_to_end(size_t life, const expected<job_ending>& ending) {
  if (!ending) return;
  lives_[life].left = events_.now();
  lives_[life].ending = *ending;
}

void simulated_processes::end() {
  for (const auto& [life, actor] : std::exchange(members_, {}))
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  ++attempt_;
  is_in_job_ = false;
}

} // namespace troupe
