// SPDX-License-Identifier: Apache-2.0
// A job of a chief and the real actors around it, with puppets for replicas.
#pragma once

#include "actors/training/accumulator.hpp"
#include "actors/training/chief.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/recorder.hpp"
#include "actors/training/token_queue.hpp"
#include "actors/training/variable_owner.hpp"
#include "messages/mapped.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/replica_list.hpp"

#include <limits>

namespace chief_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

constexpr auto never = std::numeric_limits<uint64_t>::max();

/// Owners of a job, by how they answer an update.
enum class owners_that { apply, lack_an_optimizer, say_nothing };

// Leaves all that it is told where it lies.
inline caf::behavior deaf(caf::event_based_actor* self) {
  self->set_default_handler(caf::skip);
  return {[](const script&) {}};
}

/// A job with puppets for replicas.
struct job : deterministic_world {
  explicit job(chief_config config, const std::vector<std::string>& variables = {"w"},
               owners_that kind = owners_that::apply)
    : replicas(config.sync.total_num_replicas) {
    for (auto& replica : replicas)
      replica.emplace(world);
    for (const auto& name : variables)
      add_variable(name, config, kind);
    for (size_t i = 0; i < variables.size(); ++i)
      config.collected.push_back({variables[i], accumulators[i], owners[i], {i}});
    config.variables = variables;
    config.tokens = tokens
      = spawn(token_queue, token_queue_config{config.sync.policy, config.first_step});
    config.recorder = spawn(
      recorder, recorder_config{[this](const step_record& step) { steps.push_back(step); },
                                [this](const job_snapshot& taken) { snapshots.push_back(taken); },
                                [this](const job_report& ended) { report = ended; }});
    config.owners = owners;
    config.on_warning = [this](const std::string& line) { warnings.push_back(line); };
    config.world = &world;
    lead = spawn(chief, config);
    settle();
  }

  ~job() {
    caf::anon_send(lead, make_stop_job("the test is over"));
    for (auto& replica : replicas)
      replica.reset();
    for (const auto& owner : owners)
      caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
    pass(1h); // replicas that never came are waited for no longer
  }

  void add_variable(const std::string& name, const chief_config& config, owners_that kind) {
    variable_form form{name, dtype::f32, {1}};
    auto owner = caf::actor_cast<variable_owner_actor>(
      kind == owners_that::say_nothing
        ? world.system().spawn(deaf)
        : caf::actor_cast<caf::actor>(
          spawn(variable_owner, variable_owner_config{form, zeros({1}), &world})));
    owners.push_back(owner);
    if (kind == owners_that::apply)
      stranger.tell(owner, make_use_optimizer(to_settings({rules::sgd{.learning_rate = 1}})));
    accumulators.push_back(
      spawn(accumulator, accumulator_config{.variable = form,
                                            .owner = owner,
                                            .first_step = config.first_step,
                                            .world = &world,
                                            .asynchronous = asynchronous_rule::of(config.sync)}));
  }

  void join(const replica_list& who) {
    for (auto index : who)
      replicas[index]->tell(lead, make_join_job(index));
    settle();
  }

  /// A replica has a gradient of every variable.
  void push(uint32_t who, uint64_t local_step) {
    for (const auto& accumulator : accumulators)
      push_to(accumulator, who, local_step);
    ++pushes;
  }

  void push_to(const accumulator_actor& accumulator, uint32_t who, uint64_t local_step) {
    replicas[who]->tell(
      accumulator, make_push_gradient(
                     {.replica = who, .local_step = local_step, .iteration = pushes}, zeros({1})));
    settle();
  }

  /// A replica waits for a token.
  answer<msg<wire::Token>> take(uint32_t who, uint64_t local_step) {
    auto token = replicas[who]->ask<msg<wire::Token>>(tokens, make_take_token(who, local_step));
    settle();
    return token;
  }

  // Each gives its first gradient, and has to wait for a token.
  void give_and_wait(std::initializer_list<uint32_t> replicas) {
    for (auto who : replicas) {
      push(who, 0);
      CHECK_FALSE(take(who, 0).has_come());
    }
  }

  void leave(uint32_t who, const error& reason = {}) {
    replicas[who]->tell(lead, make_farewell(who, reason));
    settle();
  }

  void stop(std::string_view reason) {
    stranger.tell(lead, make_stop_job(reason));
    settle();
  }

  wire::QueueStatus::Reader status() {
    auto asked = stranger.ask<msg<wire::QueueStatus>>(tokens, make_read_queue_status());
    settle();
    last_status = asked.value();
    return last_status.reader();
  }

  /// The steps before which the replica was told to stop computing.
  [[nodiscard]] std::vector<uint64_t> cancelled(uint32_t who) const {
    return mapped(replicas[who]->heard<wire::CancelStep>(),
                  [](const auto& message) { return message.reader().getStep(); });
  }

  std::vector<std::optional<puppet>> replicas;
  puppet stranger{world};
  std::vector<variable_owner_actor> owners;
  std::vector<accumulator_actor> accumulators;
  token_queue_actor tokens;
  chief_actor lead;
  std::vector<step_record> steps;
  std::vector<job_snapshot> snapshots;
  std::optional<job_report> report;
  std::vector<std::string> warnings;
  msg<wire::QueueStatus> last_status;
  uint64_t pushes = 0;
};

} // namespace chief_test
