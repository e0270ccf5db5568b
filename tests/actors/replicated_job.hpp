// SPDX-License-Identifier: Apache-2.0
// A variable that two owners hold, and the failover clients that speak to them, in one virtual
// world.
#pragma once

#include "actors/replication/directory.hpp"
#include "actors/replication/failover_client.hpp"
#include "actors/training/accumulator.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/variable_owner.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/small_arrays.hpp"

namespace troupe::test {

using namespace std::chrono_literals;

using push_answer = answer<msg<wire::PushReply>>;
using take_answer = answer<msg<wire::UpdateApplied>>;

/// A variable that two hold, in a job of 3 replicas.
struct replicated_job : deterministic_world {
  /// @param of_accumulators As accumulators have it.
  explicit replicated_job(std::optional<asynchronous_rule> of_accumulators = {})
    : rule(of_accumulators) {
    known = spawn(directory,
                  [this](uint32_t lost, uint32_t lost_by) { parted.emplace_back(lost, lost_by); });
    owners[0] = spawn(variable_owner, owner_config());
    owners[1] = spawn(variable_owner, owner_config(owners[0]));
    trainer.tell(owners[0], use_mirror{owners[1]});
    trainer.ask<msg<wire::OptimizerInUse>>(
      owners[0], make_use_optimizer(to_settings({.rule = rules::sgd{.learning_rate = 1}})));
    for (size_t i = 0; i < 2; ++i)
      accumulators[i] = collector(owners[i]);
    for (size_t i = 0; i < 2; ++i)
      trainer.tell(owners[i], use_accumulator{accumulators[i]});
    trainer.tell(known, watch_owner{"w", owners[0], owners[1]});
    trainer.tell(known, watch_job{chief.as<owners_watcher_actor>()});
    for (uint32_t i = 0; i < 3; ++i)
      replicas.push_back(speaker(false));
    closer = speaker(true);
    settle();
  }

  ~replicated_job() {
    for (const auto& actor :
         {caf::actor_cast<caf::actor>(owners[0]), caf::actor_cast<caf::actor>(owners[1]),
          caf::actor_cast<caf::actor>(accumulators[0]),
          caf::actor_cast<caf::actor>(accumulators[1]), caf::actor_cast<caf::actor>(known),
          caf::actor_cast<caf::actor>(closer)})
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    for (const auto& replica : replicas)
      caf::anon_send_exit(replica, caf::exit_reason::kill);
    settle();
  }

  variable_owner_config owner_config(replicated_owner_actor mirrored = {}) {
    return {.variable = form,
            .initial = array({1}, {100}),
            .world = &world,
            .mirrored = std::move(mirrored),
            .directory = known};
  }

  accumulator_actor collector(const replicated_owner_actor& owner) {
    return spawn(accumulator, accumulator_config{.variable = form,
                                                 .owner = owner,
                                                 .world = &world,
                                                 .asynchronous = rule,
                                                 .owner_is_replicated = true});
  }

  failover_client_actor speaker(bool closes_steps) {
    return spawn(
      failover_client,
      failover_client_config{.name = "w",
                             .owners = {search(owners, 0), search(owners, 1)},
                             .accumulators = {search(accumulators, 0), search(accumulators, 1)},
                             .directory = known,
                             .closes_steps = closes_steps,
                             .asynchronous = rule});
  }

  // Finds one of the two if it is there when it is looked for.
  template <class Handle>
  actor_search search(const std::array<Handle, 2>& among, size_t place) {
    return [&among, place, has_come = has_come[place]](
             const std::function<void(const caf::strong_actor_ptr&)>& found) {
      if (*has_come) found(caf::actor_cast<caf::strong_actor_ptr>(among[place]));
      return *has_come;
    };
  }

  push_answer push(uint32_t replica, float value, uint64_t step = 0) {
    return push_of({.replica = replica, .local_step = step, .iteration = step}, value);
  }

  push_answer push_of(const origin& from, float value) {
    return trainer.ask<msg<wire::PushReply>>(replicas[from.replica],
                                             make_push_gradient(from, array({1}, {value})));
  }

  static msg<wire::ChangeVariable> addition(float value) {
    return make_change_variable(static_cast<uint8_t>(change::add), array({1}, {value}));
  }

  answer<msg<wire::VariableSnapshot>> add(size_t replica, float value) {
    return trainer.ask<msg<wire::VariableSnapshot>>(replicas[replica], addition(value));
  }

  static double number_in(const answer<msg<wire::VariableSnapshot>>& answer) {
    auto current = answer.value();
    return read_tensor(current.reader().getValue(), current.owner()).values<float>()[0];
  }

  take_answer take(uint32_t required) {
    return chief.ask<msg<wire::UpdateApplied>>(closer, make_take_gradient(required));
  }

  void lose(size_t place) {
    caf::anon_send_exit(owners[place], caf::exit_reason::kill);
    caf::anon_send_exit(accumulators[place], caf::exit_reason::kill);
    settle();
  }

  // In a new life, which knows nothing of the former.
  void begin_again(size_t place, const replicated_owner_actor& other) {
    owners[place] = spawn(variable_owner, owner_config());
    accumulators[place] = collector(owners[place]);
    trainer.tell(owners[place], use_accumulator{accumulators[place]});
    trainer.tell(owners[place], come_back{other, place == 1});
    settle();
  }

  void return_to(size_t place) { begin_again(place, owners[1 - place]); }

  size_t returns_told() {
    pass(1s);
    return chief.heard<wire::OwnersMirrored>().size();
  }

  double value() {
    auto answer = chief.ask<msg<wire::VariableSnapshot>>(closer, make_read_variable());
    settle();
    return number_in(answer);
  }

  // How many gradients wait for a step.
  uint32_t waiting_at(const failover_client_actor& whom) {
    auto asked = chief.ask<msg<wire::AccumulatorStatus>>(whom, make_read_accumulator());
    settle();
    return asked.value().reader().getAccumulated();
  }

  static bool is_accepted(const push_answer& answer) {
    return answer.value().reader().getVerdict() == wire::Verdict::ACCEPTED;
  }

  std::optional<asynchronous_rule> rule;
  variable_form form{"w", dtype::f32, {1}};
  puppet trainer{world};
  puppet chief{world};
  std::array<replicated_owner_actor, 2> owners;
  std::array<accumulator_actor, 2> accumulators;
  std::array<std::shared_ptr<bool>, 2> has_come{std::make_shared<bool>(true),
                                                std::make_shared<bool>(true)};
  directory_actor known;
  std::vector<std::pair<uint32_t, uint32_t>> parted; ///< A lost process, and the one that lost it.
  std::vector<failover_client_actor> replicas;
  failover_client_actor closer;
};

} // namespace troupe::test
