// SPDX-License-Identifier: Apache-2.0
// Spawns the replicas of a run, and runs their functions.
#include "strategies/contexts/replica_group.hpp"

#include "actors/training/replica.hpp"
#include "strategies/contexts/strategy.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

namespace troupe {

namespace {

// @param run The number of the run, which is the iteration of its replicas.
task<void> run_body(activity& activity, replica_context::place place, replica_body body,
                    uint64_t run) {
  activity.restore({.iteration = run});
  context_stack stack;
  activity.set_surroundings(&stack);
  departure leaving{.replica = place.replica};
  auto meeting = place.meeting;
  {
    auto* owner = place.owner;
    replica_context context{activity, std::move(place)};
    stack.push({context_kind::replica, owner, &context});
    try {
      auto running = body(context);
      leaving.result = co_await running;
    } catch (...) {
      leaving.thrown = std::current_exception();
    }
  }
  activity.set_surroundings(nullptr);
  activity.send(meeting, std::move(leaving));
}

} // namespace

void replica_group::kill_replicas() const {
  for (const auto& replica : replicas)
    caf::anon_send_exit(replica, caf::exit_reason::kill);
}

void replica_group::kill() const {
  kill_replicas();
  caf::anon_send_exit(meeting, caf::exit_reason::kill);
}

replica_group start_replicas(strategy& strategy, std::vector<replica_body> bodies,
                             std::function<void(run_outcome)> on_over) {
  auto& system = strategy.world().system();
  auto count = static_cast<uint32_t>(bodies.size());
  replica_group group;
  group.meeting = system.spawn(rendezvous, rendezvous_config{count, std::move(on_over),
                                                             strategy.layout().deadline,
                                                             strategy.first_local_replica()});
  strategy.world().introduce(group.meeting.id(), "rendezvous");
  group.replicas.reserve(count);
  auto run = strategy.count_run();
  for (uint32_t i = 0; i < count; ++i) {
    auto index = strategy.first_local_replica() + i;
    replica_config config{.index = index, .world = &strategy.world()};
    config.processor = strategy.devices().processor_of(i);
    replica_context::place place{i,         count,         nullptr,
                                 &strategy, group.meeting, strategy.first_local_replica()};
    config.body = [place, body = std::move(bodies[i]), run](activity& activity) {
      return run_body(activity, place, body, run);
    };
    group.replicas.push_back(system.spawn(replica, std::move(config)));
    strategy.world().introduce(group.replicas.back().id(), "replica " + std::to_string(index));
  }
  return group;
}

} // namespace troupe
