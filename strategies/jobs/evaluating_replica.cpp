// SPDX-License-Identifier: Apache-2.0
// The coroutine that evaluates: takes a token, reads the variables, computes, and tells the result.
#include "strategies/jobs/evaluating_replica.hpp"

#include "actors/training/replica.hpp"
#include "actors/training/token_queue.hpp"
#include "actors/world/activity.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/jobs/replica_life.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Ends when the token queue closes.
task<void> evaluate(activity& activity, replica_context::place place, uint64_t first_step,
                    std::vector<variable> variables, evaluation evaluation,
                    std::function<void(uint64_t step)> warn, completion<void> ended) {
  try {
    activity.set_local_step(first_step);
    auto tokens = place.actors->tokens;
    auto index = place.replica;
    replica_context context{activity, std::move(place)};
    while (true) {
      auto taking
        = activity.request<msg<wire::Token>>(tokens, make_take_token(index, activity.local_step()));
      auto token = value_or_throw(co_await taking);
      activity.set_local_step(token.reader().getStep());
      try {
        auto reading = context.read(variables);
        auto values = co_await reading;
        auto computing = context.compute(
          [&evaluation, values](std::stop_token) { return evaluation.evaluate(values); });
        auto result = co_await computing;
        evaluation.on_result(activity.local_step(), result);
      } catch (...) {
        warn(activity.local_step());
      }
    }
  } catch (...) { // NOLINT(bugprone-empty-catch)
  }
  ended({});
}

} // namespace

evaluating_replica::evaluating_replica(strategy& strategy, const training_options& options,
                                       const job_actors& job,
                                       const std::function<void(uint64_t step)>& warn)
  : world_(strategy.world()),
    tokens_(world_.system().spawn(
      token_queue, token_queue_config{sync_policy::latest_token, job.first_step, {}})) {
  world_.introduce(tokens_.id(), "evaluation tokens");
  auto actors = std::make_shared<job_actors>(job);
  actors->tokens = tokens_;
  auto replicas = strategy.num_replicas_in_sync();
  replica_context::place place{replicas, replicas, actors, &strategy, {}};
  replica_config config{.index = place.replica, .world = &world_};
  config.body
    = [place, first_step = job.first_step, variables = evaluated_variables(strategy, options),
       evaluation = options.evaluation, warn, ended = ended_](activity& activity) {
        return evaluate(activity, place, first_step, variables, evaluation, warn, ended);
      };
  auto actor = world_.system().spawn(replica, std::move(config));
  world_.introduce(actor.id(), "evaluator");
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor([ended = ended_] { ended({}); });
}

void evaluating_replica::look(uint64_t step) const {
  caf::anon_send(tokens_, make_put_tokens(step, 1));
}

void evaluating_replica::end() const {
  caf::anon_send(tokens_, make_close_tokens());
  static_cast<void>(ended_.wait(world_));
  caf::anon_send_exit(tokens_, caf::exit_reason::user_shutdown);
}

} // namespace troupe
