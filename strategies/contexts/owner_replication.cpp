// SPDX-License-Identifier: Apache-2.0
// Spawns failover clients, tells the directory of jobs, and offers owners again.
#include "strategies/contexts/owner_replication.hpp"

#include "actors/training/variable_owner.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/errors/throw_failure.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

/// Actors that end with the last reference to them.
struct ended_together {
  std::vector<caf::actor> actors;

  ended_together() = default;
  ended_together(const ended_together&) = delete;
  ended_together& operator=(const ended_together&) = delete;

  ~ended_together() {
    for (const auto& actor : actors)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
};

std::string owner_name(const variable& variable, size_t place) {
  return fmt::format("{}owner {}", place_prefixes[place], variable.name());
}

std::array<actor_search, 2> holders_of(const std::string& name, const std::string& viewer,
                                       placement& placement) {
  return {value_or_throw(placement.search(viewer, place_prefixes[0] + name)),
          value_or_throw(placement.search(viewer, place_prefixes[1] + name))};
}

} // namespace

directory_actor find_directory(const strategy& strategy, const std::string& viewer) {
  return value_or_throw(strategy.layout().placement->find<directory_actor>(viewer, directory_name));
}

void check_owner_copies(const strategy_layout& layout) {
  auto copies = layout.owner_copies;
  if (copies == 1) return;
  if (copies != 2)
    throw_failure(errc::invalid_argument,
                  "replicate_owners is {}; a variable is held by 1 or 2 parameter servers", copies);
  auto places = layout.placement == nullptr ? 0 : layout.placement->owner_places();
  if (places < copies)
    throw_failure(
      errc::invalid_argument,
      "replicate_owners is 2, which takes 2 parameter servers that talk to each other; this "
      "job has {}: start 2 or more, with a server that is given replicate_owners, too",
      places);
}

failover_client_actor spawn_failover_client(const strategy& strategy, const std::string& viewer,
                                            failover_client_config config) {
  auto& placement = *strategy.layout().placement;
  const auto& name = config.name;
  config.owners = holders_of("owner " + name, viewer, placement);
  config.start_deadline = placement.start_deadline();
  config.directory = find_directory(strategy, viewer);
  auto client_name = fmt::format("failover client of {} for {}", name, viewer);
  auto client = strategy.world().system().spawn(failover_client, std::move(config));
  strategy.world().introduce(client.id(), client_name);
  placement.stand_beside(viewer, caf::actor_cast<caf::strong_actor_ptr>(client));
  return client;
}

job_actors actors_seen_from(const std::string& viewer, const strategy& strategy,
                            const job_actors& actors, bool closes_steps) {
  auto& placement = *strategy.layout().placement;
  if (strategy.layout().owner_copies == 1) return actors.seen_from(viewer, placement);
  auto seen = actors;
  seen.tokens = value_or_throw(placement.find<token_queue_actor>(viewer, "token queue"));
  seen.owners.clear();
  auto clients = std::make_shared<ended_together>();
  auto ask_again_after = closes_steps ? job_time{0} : actors.ask_again_after; // no take counts once
  for (size_t i = 0; i < seen.variables.size(); ++i) {
    const auto& variable = seen.variables[i];
    auto accumulators = holders_of("accumulator " + variable.name(), viewer, placement);
    auto client = spawn_failover_client(strategy, viewer,
                                        {.variable = static_cast<uint32_t>(variable.index()),
                                         .name = variable.name(),
                                         .accumulators = std::move(accumulators),
                                         .closes_steps = closes_steps,
                                         .first_step = seen.first_step,
                                         .asynchronous = seen.asynchronous,
                                         .ask_again_after = ask_again_after});
    clients->actors.push_back(caf::actor_cast<caf::actor>(client));
    seen.accumulators[i] = client;
    seen.owners.push_back(client);
  }
  seen.failover_clients = std::move(clients);
  return seen;
}

void tell_directory(const strategy& strategy, const owners_watcher_actor& watcher) {
  if (strategy.layout().owner_copies == 1) return;
  caf::anon_send(find_directory(strategy, directory_name), watch_job{watcher});
}

void offer_again(const strategy& strategy, const variable& variable, size_t place,
                 const replicated_owner_actor& owner, bool is_known) {
  auto& placement = *strategy.layout().placement;
  auto own = owner_name(variable, place);
  auto other = owner_name(variable, 1 - place);
  auto found = placement.find<replicated_owner_actor>(own, other);
  if (!found && !is_known) return; // lost already: with it a new life has lost all there was
  come_back offer{
    .other = value_or_throw(std::move(found)), .is_mirrors = place == 1, .is_known = is_known};
  caf::anon_send(owner, std::move(offer));
}

void offer_all_again(const strategy& strategy, bool is_known) {
  if (strategy.layout().owner_copies == 1) return;
  for (const auto& variable : strategy.variables())
    for (size_t place = 0; place < place_prefixes.size(); ++place)
      if (const auto& owner = variable.owners_here()[place])
        offer_again(strategy, variable, place, owner, is_known);
}

// The initial values of such actors are never seen.
void bring_back(strategy& strategy, uint32_t process, const accumulator_maker& collect) {
  auto& placement = *strategy.layout().placement;
  auto& world = strategy.world();
  for (const auto& variable : strategy.variables())
    for (size_t place = 0; place < place_prefixes.size(); ++place) {
      auto name = owner_name(variable, place);
      if (placement.where(name) != process) continue;
      auto owner = world.system().spawn(
        variable_owner,
        variable_owner_config{.variable = variable.form(),
                              .initial = zeros(variable.extents(), variable.type()),
                              .world = &world,
                              .copies = variable.copies(),
                              .directory = find_directory(strategy, name),
                              .variable_index = static_cast<uint32_t>(variable.index())});
      strategy.returned_.push_back(caf::actor_cast<caf::actor>(owner));
      world.introduce(owner.id(), name);
      placement.put(name, owner);
      auto accumulator = collect ? collect(variable, place, owner) : caf::actor{};
      if (accumulator) strategy.returned_.push_back(accumulator);
      offer_again(strategy, variable, place, owner);
    }
}

} // namespace troupe
