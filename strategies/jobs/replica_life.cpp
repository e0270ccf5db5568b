// SPDX-License-Identifier: Apache-2.0
// From the first token to the last.
#include "strategies/jobs/replica_life.hpp"

#include "actors/training/replica.hpp"
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace troupe {

namespace {

/// Of a replica that is lost, the process is told; one that has come to its end is not missed.
class attendance {
public:
  attendance(std::shared_ptr<replicas_at_work> at_work, uint32_t replica)
    : at_work_(std::move(at_work)), replica_(replica) {
    at_work_->enter(replica_);
  }

  attendance(const attendance&) = delete;
  attendance& operator=(const attendance&) = delete;

  ~attendance() {
    if (!is_over_) at_work_->leave(replica_);
  }

  void end() { is_over_ = true; }

private:
  std::shared_ptr<replicas_at_work> at_work_;
  uint32_t replica_;
  bool is_over_ = false;
};

task<void> live(activity& activity, replica_context::place place, beginning from,
                std::shared_ptr<const replica_script> script) {
  attendance attends{place.at_work, place.replica};
  activity.set_local_step(from.first_step);
  context_stack stack;
  activity.set_surroundings(&stack);
  auto* owner = place.owner;
  replica_context context{activity, std::move(place)};
  stack.push({context_kind::replica, owner, &context});
  training_session session{context, script->optimizer};
  if (from.life > 0) {
    auto rejoining = session.rejoin(from.life);
    co_await rejoining;
  } else if (from.saved) {
    auto resuming = session.resume(std::move(*from.saved));
    co_await resuming;
  }
  auto body = script->body; // whatever it changes in itself is this replica's
  auto living = body(session);
  co_await living;
  if (!session.should_stop())
    throw failure{{errc::user_code, "its function returned before the job was over"}};
  attends.end();
}

} // namespace

std::vector<replica_site> enter_replicas(const strategy& strategy,
                                         const training_options& options) {
  auto* placement = strategy.layout().placement;
  std::vector<replica_site> sites(strategy.num_replicas_in_sync());
  std::map<uint32_t, uint32_t> counts; // by process
  std::map<uint32_t, std::shared_ptr<replicas_at_work>> at_work;
  for (uint32_t index = 0; index < sites.size(); ++index) {
    auto& site = sites[index];
    if (placement != nullptr) {
      auto name = fmt::format("replica {}", index);
      site.is_here = value_or_throw(placement->enter(name));
      site.process = placement->where(name);
    }
    auto& here = at_work[site.process];
    if (!here) here = std::make_shared<replicas_at_work>();
    site.at_work = here;
    if (is_dead(options, index)) continue;
    ++counts[site.process];
    here->enter(index); // before any of them begins
  }
  for (auto& site : sites)
    site.replicas_here = counts[site.process];
  return sites;
}

replica_actor replica_company::spawn(uint32_t index, beginning from) const {
  auto name = fmt::format("replica {}", index);
  auto* placement = strategy.layout().placement;
  replica_config config{.index = index, .chief = chief, .world = &strategy.world()};
  config.processor = strategy.devices().processor_of(index);
  config.patience = options.ask_again_after;
  if (placement != nullptr) {
    config.chief = value_or_throw(placement->find<chief_actor>(name, "chief"));
    config.process = placement->name_here();
  }
  if (script->pace) // which the body keeps
    config.pace = [pace = &script->pace, index](uint64_t iteration, job_time elapsed) {
      return (*pace)(index, iteration, elapsed);
    };
  replica_context::place place{.replica = index,
                               .replicas = strategy.num_replicas_in_sync(),
                               .cast = cast,
                               .owner = &strategy,
                               .replicas_here = sites[index].replicas_here,
                               .at_work = sites[index].at_work,
                               .asks_again = options.ask_again_after > job_time{0}};
  if (placement != nullptr)
    place.cast = std::make_shared<training_cast>(cast_seen_from(name, strategy, *cast));
  config.body = [place = std::move(place), from = std::move(from), script = script](
                  activity& activity) { return live(activity, place, from, script); };
  auto lives = strategy.world().system().spawn(replica, std::move(config));
  strategy.world().introduce(lives.id(), name);
  if (placement != nullptr) placement->put(name, lives);
  return lives;
}

bool is_dead(const training_options& options, uint32_t replica) {
  return std::ranges::count(options.dead_replicas, replica) > 0;
}

std::optional<replica_progress> saved_of(std::span<const replica_progress> saved,
                                         uint32_t replica) {
  auto found = std::ranges::find(saved, replica, &replica_progress::replica);
  return found == saved.end() ? std::nullopt : std::optional{*found};
}

job_links links_of(const strategy& strategy, const training_options& options) {
  const auto* placement = strategy.layout().placement;
  return {.repeat = options.ask_again_after > job_time{0},
          .may_end = placement != nullptr,
          .may_return = options.rejoin_patience > job_time{0}
                        || (placement != nullptr && !placement->others().empty())};
}

std::vector<variable> trained_variables(const strategy& strategy, const training_options& options) {
  if (!options.variables.empty()) return options.variables;
  return {strategy.variables().begin(), strategy.variables().end()};
}

uint64_t updates_made(strategy& strategy, std::span<const variable> variables) {
  uint64_t updates = 0;
  for (const auto& variable : variables) {
    auto snapshot = value_or_throw(
      ask<msg<wire::VariableSnapshot>>(strategy.world(), variable.owner(), make_read_variable()));
    updates = std::max(updates, snapshot.reader().getVersion());
  }
  return updates;
}

} // namespace troupe
