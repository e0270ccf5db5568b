// SPDX-License-Identifier: Apache-2.0
// The coroutine of a replica in a job, and the spawning of replicas.
#include "strategies/jobs/replica_life.hpp"

#include "actors/training/agreement.hpp"
#include "actors/training/replica.hpp"
#include "actors/world/ask.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace troupe {

/// The body of each replica. All replicas share it, and it lives as long as one of them.
struct replica_script {
  sync_replicas_optimizer optimizer;
  session_function body;
  decltype(training_options::pace) pace;
};

namespace {

/// Tells the process when a replica is lost; a replica that has come to its end is not missed.
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

// @param saved The replica's progress in the snapshot. @param life As in `job_replicas::spawn`.
task<void> live(activity& activity, replica_context::place place,
                std::optional<replica_progress> saved, uint64_t life,
                std::shared_ptr<const replica_script> script, std::stop_token leave) {
  attendance attends{place.at_work, place.replica};
  activity.set_local_step(place.actors->first_step);
  context_stack stack;
  activity.set_surroundings(&stack);
  auto* owner = place.owner;
  replica_context context{activity, std::move(place)};
  stack.push({context_kind::replica, owner, &context});
  training_session session{context, script->optimizer, std::move(leave)};
  if (life > 0) {
    auto rejoining = session.rejoin(life);
    co_await rejoining;
  } else if (saved) {
    auto resuming = session.resume(std::move(*saved));
    co_await resuming;
  }
  auto body = script->body; // whatever it changes in itself is this replica's
  auto running = body(session);
  co_await running;
  if (!session.should_stop())
    throw_failure(errc::user_code, "its function returned before the job was over");
  attends.end();
}

std::optional<replica_progress> saved_of(std::span<const replica_progress> saved,
                                         uint32_t replica) {
  auto found = std::ranges::find(saved, replica, &replica_progress::replica);
  return found == saved.end() ? std::nullopt : std::optional{*found};
}

} // namespace

std::vector<replica_site> enter_replicas(const strategy& strategy,
                                         const training_options& options) {
  std::vector<replica_site> sites(strategy.num_replicas_in_sync());
  auto* placement = strategy.layout().placement;
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

job_replicas::job_replicas(replica_surroundings surroundings, std::vector<replica_site> sites)
  : surroundings_(std::move(surroundings)),
    script_(std::make_shared<const replica_script>(
      replica_script{surroundings_.optimizer, surroundings_.session, surroundings_.options.pace})),
    sites_(std::move(sites)) {}

std::vector<uint32_t> job_replicas::here() const {
  std::vector<uint32_t> found;
  for (uint32_t index = 0; index < sites_.size(); ++index)
    if (sites_[index].is_here && !is_dead(surroundings_.options, index)) found.push_back(index);
  return found;
}

std::vector<uint32_t> job_replicas::away_in(uint32_t process) const {
  std::vector<uint32_t> found;
  for (uint32_t index = 0; index < sites_.size(); ++index)
    if (!sites_[index].is_here && sites_[index].process == process) found.push_back(index);
  return found;
}

replica_actor job_replicas::spawn(uint32_t index, uint64_t life) {
  auto name = fmt::format("replica {}", index);
  auto& strategy = surroundings_.strategy;
  auto* placement = strategy.layout().placement;
  replica_config config{.index = index, .chief = surroundings_.chief, .world = &strategy.world()};
  config.processor = strategy.devices().processor_of(index);
  config.ask_again_after = surroundings_.options.ask_again_after;
  config.leave = surroundings_.leave;
  if (placement != nullptr) {
    config.chief = value_or_throw(placement->find<chief_actor>(name, "chief"));
    config.process = placement->name_here();
  }
  if (script_->pace) // which the body keeps
    config.pace = [pace = &script_->pace, index](uint64_t iteration, job_time elapsed) {
      return (*pace)(index, iteration, elapsed);
    };
  replica_context::place place{.replica = index,
                               .replicas = strategy.num_replicas_in_sync(),
                               .actors = surroundings_.actors,
                               .owner = &strategy,
                               .replicas_here = sites_[index].replicas_here,
                               .at_work = sites_[index].at_work};
  if (placement != nullptr)
    place.actors
      = std::make_shared<job_actors>(actors_seen_from(name, strategy, *surroundings_.actors));
  config.body = [place = std::move(place), saved = saved_of(surroundings_.saved, index), life,
                 script = script_, leave = surroundings_.leave](activity& activity) {
    return live(activity, place, saved, life, script, leave);
  };
  auto actor = strategy.world().system().spawn(replica, std::move(config));
  strategy.world().introduce(actor.id(), name);
  if (placement == nullptr) return actor;
  placement->put(name, actor);
  spawned_.push_back(actor);
  return actor;
}

void job_replicas::kill() const {
  for (const auto& replica : spawned_)
    caf::anon_send_exit(replica, caf::exit_reason::kill);
}

bool is_dead(const training_options& options, uint32_t replica) {
  return std::ranges::count(options.dead_replicas, replica) > 0;
}

job_links links_of(const strategy& strategy, const training_options& options) {
  const auto* placement = strategy.layout().placement;
  return {.ask_again_after = options.ask_again_after,
          .may_end = placement != nullptr,
          .may_return = options.rejoin_timeout > job_time{0}
                        || (placement != nullptr && !placement->others().empty())};
}

std::string job_agreement(const strategy& strategy, const training_options& options) {
  auto lines = options.agreement;
  if (!lines.empty() && !lines.ends_with('\n')) lines += '\n';
  for (const auto& variable : strategy.variables())
    lines += fmt::format("variable '{}' = {} {}\n", variable.name(), to_string(variable.type()),
                         to_string(variable.extents()));
  return short_agreement(std::move(lines));
}

std::vector<variable> trained_variables(const strategy& strategy, const training_options& options) {
  return options.variables.empty() ? strategy.trainable_variables() : options.variables;
}

std::vector<variable> evaluated_variables(const strategy& strategy,
                                          const training_options& options) {
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
