// SPDX-License-Identifier: Apache-2.0
// The step function of a simulated job that learns, and its losses.
#include "simulation/learning_job.hpp"

#include "actors/recording/seconds.hpp"

namespace troupe {

namespace {

using task_pointer = std::shared_ptr<const learning_task>;

bool fit(const std::vector<gradient>& gradients, const std::vector<tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (const auto* dense = std::get_if<tensor>(&gradients[i]);
        dense != nullptr && dense->bytes() != values[i].bytes())
      return false;
  return true;
}

// The computing of one batch, as the work of a replica.
auto batch_work(task_pointer task, std::vector<tensor> values, uint32_t replica, uint64_t batch) {
  return [task = std::move(task), values = std::move(values), replica, batch](std::stop_token) {
    return task->differentiate(values, replica, batch);
  };
}

task<void> learn_one(replica_context& context, sync_replicas_optimizer optimizer,
                     std::vector<variable> variables, task_pointer learnt) {
  auto reading = context.read(variables);
  auto values = co_await reading;
  auto work = batch_work(learnt, std::move(values), context.replica_id_in_sync_group(),
                         context.iteration());
  auto computing = context.compute(std::move(work));
  auto computed = co_await computing;
  context.report(computed.loss, computed.examples);
  auto gradients = pairs_of(std::move(computed.gradients), variables);
  auto applying = optimizer.apply_gradients(context, std::move(gradients));
  co_await applying;
}

task<void> learn_locally(replica_context& context, sync_replicas_optimizer optimizer,
                         std::vector<variable> variables, task_pointer learnt, uint32_t local_steps,
                         double rate) {
  auto reading = context.read(variables);
  auto before = co_await reading;
  auto values = before;
  double loss = 0;
  uint32_t examples = 0;
  for (uint32_t i = 0; i < local_steps; ++i) {
    auto work = batch_work(learnt, values, context.replica_id_in_sync_group(),
                           context.iteration() * local_steps + i);
    auto computing = context.compute(std::move(work));
    auto computed = co_await computing;
    if (!fit(computed.gradients, values)) { // the owner says by name what is wrong with it
      auto refused = optimizer.apply_gradients(context, pairs_of(computed.gradients, variables));
      co_await refused;
      co_return;
    }
    values = descended(values, computed.gradients, rate);
    loss += computed.loss / local_steps;
    examples += computed.examples;
  }
  context.report(loss, examples);
  auto gradients = pairs_of(differences(before, values), variables);
  auto applying = optimizer.apply_gradients(context, std::move(gradients));
  co_await applying;
}

} // namespace

update_plan owners_plan(const learning_options& learning, uint32_t local_steps) {
  if (local_steps == 1) return learning.plan;
  if (!std::holds_alternative<rules::sgd>(learning.plan.rule))
    throw failure{{errc::invalid_argument,
                   "replicas make local steps by sgd alone; choose the optimizer sgd, or 1 local "
                   "step"}};
  return {.rule = rules::sgd{.learning_rate = 1}};
}

std::vector<gradient_and_variable> pairs_of(std::vector<gradient> gradients,
                                            const std::vector<variable>& variables) {
  std::vector<gradient_and_variable> pairs;
  pairs.reserve(variables.size());
  for (size_t i = 0; i < variables.size(); ++i)
    pairs.push_back({std::move(gradients[i]), variables[i]});
  return pairs;
}

step_function learn(const sync_replicas_optimizer& optimizer, std::vector<variable> variables,
                    const learning_options& learning, uint32_t local_steps) {
  if (local_steps == 1)
    return [optimizer, variables = std::move(variables), learnt = learning.task](
             replica_context& context) { return learn_one(context, optimizer, variables, learnt); };
  auto rate = std::get<rules::sgd>(learning.plan.rule).learning_rate;
  return [optimizer, variables = std::move(variables), learnt = learning.task, local_steps,
          rate](replica_context& context) {
    return learn_locally(context, optimizer, variables, learnt, local_steps, rate);
  };
}

evaluation loss_watch::during(const world& world) {
  return {.every_steps = learning_.evaluate_every,
          .evaluate =
            [this](std::span<const tensor> values) {
              latest_ = evaluate(*learning_.task, values, replicas_, slow_);
              return latest_.loss;
            },
          .on_result =
            [this, &world](uint64_t step, double) {
              latest_.step = step;
              latest_.seconds = seconds(world.now());
              curve_.push_back(latest_);
            }};
}

void loss_watch::look(uint64_t step, double seconds, std::span<const tensor> values) {
  if (!curve_.empty() && curve_.back().step >= step) return;
  auto point = evaluate(*learning_.task, values, replicas_, slow_);
  point.step = step;
  point.seconds = seconds;
  curve_.push_back(point);
}

} // namespace troupe
