// SPDX-License-Identifier: Apache-2.0
// Pushes the gradients of a replica, and waits for the next token.
#include "strategies/optimizers/sync_replicas_optimizer.hpp"

#include "actors/policies/asynchronous_rule.hpp"
#include "actors/training/accumulator.hpp"
#include "actors/training/gradient_check.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/reduce/on_host.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace troupe {

namespace {

using push = std::pair<accumulator_actor, msg<wire::PushGradient>>;

/// Gradients on their way: each by itself, or those of a bundle together.
struct pushes_of_step {
  std::vector<push> alone;
  std::vector<std::pair<bundle_accumulator_actor, push_bundle>> bundled;
};

// @param gradients By position in the job; those of the bundle are taken out.
// @returns Nothing, if none is of the bundle.
std::optional<push_bundle> take_bundle(const job_actors& actors, const bundle_of_variables& bundle,
                                       std::vector<msg<wire::PushGradient>>& gradients) {
  push_bundle pushed;
  const variable* missing = nullptr;
  const variable* present = nullptr;
  for (auto position : bundle.variables) {
    auto& gradient = gradients[position];
    (gradient.is_empty() ? missing : present) = &actors.variables[position];
    if (!gradient.is_empty()) pushed.gradients.push_back(std::move(gradient));
  }
  if (present == nullptr) return std::nullopt;
  if (missing == nullptr) return pushed;
  throw_failure(errc::invalid_argument,
                "apply_gradients got no gradient for variable '{}', which is updated together with "
                "'{}'; give those of a step in one call",
                missing->name(), present->name());
}

pushes_of_step make_pushes(const job_actors& actors, const origin& from,
                           const std::vector<gradient_and_variable>& gradients) {
  if (gradients.empty())
    throw_failure(errc::invalid_argument,
                  "Must supply at least one variable: apply_gradients got no gradient");
  pushes_of_step pushes;
  std::vector<msg<wire::PushGradient>> of_bundles(actors.variables.size());
  std::vector<bool> given(actors.variables.size(), false);
  for (const auto& [gradient, variable] : gradients) {
    auto position = value_or_throw(actors.position_of(variable));
    if (given[position])
      throw_failure(errc::invalid_argument,
                    "apply_gradients got two gradients for variable '{}'; give their sum or mean",
                    variable.name());
    given[position] = true;
    auto whole = widened(completed(gradient, variable.extents()), variable.type());
    auto message = make_push_gradient(from, whole);
    value_or_throw(check_gradient(variable.form(), message.reader().getGradient())); // before any
    if (actors.bundle_of(position) == nullptr)
      pushes.alone.emplace_back(actors.accumulators[position], std::move(message));
    else
      of_bundles[position] = std::move(message);
  }
  for (const auto& bundle : actors.bundles)
    if (auto taken = take_bundle(actors, bundle, of_bundles))
      pushes.bundled.emplace_back(bundle.collector, std::move(*taken));
  return pushes;
}

// @returns The replies, to bundles last.
task<std::vector<expected<msg<wire::PushReply>>>> push_all(activity& activity,
                                                           pushes_of_step pushes) {
  auto bundled = activity.begin_requests<msg<wire::PushReply>>(std::move(pushes.bundled));
  auto pushing = activity.request_all<msg<wire::PushReply>>(std::move(pushes.alone));
  auto replies = co_await pushing;
  auto settling = activity.settled(bundled);
  auto of_bundles = co_await settling;
  std::ranges::move(of_bundles, std::back_inserter(replies));
  co_return replies;
}

// @param is_looked_at Whether the host looks at all gradients on their way.
std::vector<tensor*> arrays_for_host(std::vector<gradient_and_variable>& gradients,
                                     bool is_looked_at) {
  std::vector<tensor*> arrays;
  for (auto& [gradient, variable] : gradients) {
    auto is_for_host = is_looked_at || is_narrower(gradient, variable.type());
    for (auto* array : arrays_in(gradient))
      if (is_on_device(*array) && (is_for_host || !is_taken_there(*array, variable.place())))
        arrays.push_back(array);
  }
  return arrays;
}

// Checks variables of this process; the accumulator of any other variable answers itself.
void check_aggregates(const sync_options& options,
                      const std::vector<gradient_and_variable>& gradients) {
  if (options.replicas_to_aggregate > options.total_num_replicas)
    throw_failure(
      errc::invalid_argument,
      "read_aggregates would wait for itself: a step takes {} gradients of {} replicas; "
      "aggregate no more than there are",
      options.replicas_to_aggregate, options.total_num_replicas);
  for (const auto& [gradient, variable] : gradients)
    value_or_throw(troupe::check_aggregates(variable.name(), variable.place()));
}

// A gradient that is for an older step by now need not arrive.
std::function<void()> recall_of(const std::vector<push>& pushes) {
  return [messages = mapped(pushes, &push::second)] {
    std::ranges::for_each(messages, &msg<wire::PushGradient>::recall);
  };
}

bool was_recalled(const expected<msg<wire::PushReply>>& reply) {
  return !reply && reply.error().code == errc::cancelled;
}

/// The verdicts of accumulators on the gradients of a replica.
struct push_verdicts {
  uint64_t accepted = 0;            ///< Variables.
  uint64_t stale = 0;               ///< Variables.
  std::vector<uint64_t> next_steps; ///< That accumulators of an asynchronous job have answered.
};

// @param counts The numbers of variables, by reply.
push_verdicts verdicts_of(std::vector<expected<msg<wire::PushReply>>> replies,
                          const std::vector<size_t>& counts) {
  push_verdicts verdicts;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (was_recalled(replies[i])) {
      verdicts.stale += counts[i];
      continue;
    }
    auto judged = value_or_throw(std::move(replies[i]));
    if (auto next = judged.reader().getNextStep(); next > 0) verdicts.next_steps.push_back(next);
    auto is_accepted = judged.reader().getVerdict() == wire::Verdict::ACCEPTED;
    (is_accepted ? verdicts.accepted : verdicts.stale) += counts[i];
  }
  return verdicts;
}

using await_list = std::vector<std::pair<accumulator_actor, msg<wire::AwaitAggregate>>>;

await_list make_awaits(const std::vector<push>& pushes, uint64_t step) {
  await_list awaits;
  for (const auto& [accumulator, message] : pushes)
    awaits.emplace_back(accumulator, make_await_aggregate(step));
  return awaits;
}

std::optional<gradient> gradient_of(const expected<msg<wire::Aggregate>>& aggregate) {
  if (!aggregate && aggregate.error().code == errc::unimplemented) throw failure{aggregate.error()};
  if (!aggregate) return std::nullopt;
  return *read_gradient(aggregate->reader().getGradient(), aggregate->owner());
}

} // namespace

sync_replicas_optimizer::sync_replicas_optimizer(update_rule rule, sync_options options,
                                                 learning_rate_schedule schedule)
  : sync_replicas_optimizer(update_plan{.rule = rule, .schedule = std::move(schedule)}, options) {}

sync_replicas_optimizer::sync_replicas_optimizer(update_plan plan, sync_options options,
                                                 average_choice averages)
  : plan_(std::make_shared<update_plan>(std::move(plan))),
    averages_(std::make_shared<average_choice>(std::move(averages))), options_(options) {
  auto with_average = *plan_;
  if (averages_->variable_averages) with_average.average = averages_->variable_averages;
  value_or_throw(validate(with_average));
  value_or_throw(options.validate());
}

origin sync_replicas_optimizer::origin_of(const replica_context& context) {
  return {.replica = context.place_.replica,
          .examples = context.examples_,
          .local_step = context.local_step(),
          .iteration = context.iteration(),
          .compute = context.compute_time_,
          .waited = context.waited_,
          .loss = context.loss_};
}

task<computed_gradients> sync_replicas_optimizer::compute_gradients(replica_context& context,
                                                                    loss_function loss,
                                                                    std::vector<variable> variables,
                                                                    double grad_loss) const {
  return troupe::compute_gradients(context, std::move(loss), std::move(variables), grad_loss);
}

task<apply_outcome> sync_replicas_optimizer::minimize(replica_context& context, loss_function loss,
                                                      uint32_t examples) const {
  return minimize(context, std::move(loss), context.strategy().trainable_variables(), examples);
}

task<apply_outcome> sync_replicas_optimizer::minimize(replica_context& context, loss_function loss,
                                                      std::vector<variable> variables,
                                                      uint32_t examples, double grad_loss) const {
  auto computing = compute_gradients(context, std::move(loss), std::move(variables), grad_loss);
  auto computed = co_await computing;
  context.report(options_.losses_are_sums ? computed.loss / examples : computed.loss, examples);
  auto applying = apply_gradients(context, std::move(computed.gradients_and_variables));
  auto outcome = co_await applying;
  co_return outcome;
}

update_plan sync_replicas_optimizer::plan_for(const variable& trained) const {
  auto plan = *plan_;
  const auto& chosen = averages_->variables_to_average;
  auto is_chosen = chosen.empty() || std::ranges::find(chosen, trained) != chosen.end();
  if (averages_->variable_averages && is_chosen) plan.average = averages_->variable_averages;
  return plan;
}

task<apply_outcome>
sync_replicas_optimizer::apply_gradients(replica_context& context,
                                         std::vector<gradient_and_variable> gradients_and_variables,
                                         apply_options options) const {
  if (!context.place_.actors)
    throw_failure(errc::wrong_context,
                  "apply_gradients of a sync_replicas_optimizer needs a job, whose replicas take "
                  "tokens; give the function to `train`, or use `optimizer` in a run");
  const auto& actors = *context.place_.actors;
  if (options.read_aggregates) check_aggregates(options_, gradients_and_variables);
  if (auto arrays = arrays_for_host(gradients_and_variables, options_.require_finite);
      !arrays.empty()) {
    auto bringing = context.bring_to_host(std::move(arrays));
    co_await bringing;
  }
  auto pushes = make_pushes(actors, origin_of(context), gradients_and_variables);
  std::vector<size_t> counts(pushes.alone.size(), 1); // of variables, by reply
  for (const auto& [collector, bundle] : pushes.bundled)
    counts.push_back(bundle.gradients.size());
  gradients_and_variables.clear(); // from here on the messages hold the gradients
  context.has_token_ = false;
  // Asked before the push, so that the step cannot be over before the question is there.
  std::shared_ptr<activity::pending_replies<msg<wire::Aggregate>>> aggregates;
  if (options.read_aggregates)
    aggregates = context.activity_.begin_requests<msg<wire::Aggregate>>(
      make_awaits(pushes.alone, context.local_step()));
  if (traits_of(options_.policy).cancels())
    context.activity_.when_cancelled(recall_of(pushes.alone));
  auto pushing = push_all(context.activity_, std::move(pushes));
  auto replies = co_await pushing;
  context.activity_.when_cancelled({});
  auto verdicts = verdicts_of(std::move(replies), counts);
  apply_outcome outcome{.accepted = verdicts.accepted, .stale = verdicts.stale};
  auto not_before = asynchronous_rule::join(options_.policy, verdicts.next_steps);
  // A replica that waits for a step's mean gives it no second gradient: a second token of that step
  // would be lost to the others.
  if (aggregates && verdicts.accepted > 0 && traits_of(options_.policy).counts_tokens())
    not_before = std::max(not_before, context.local_step() + 1);
  auto waiting = take_token(context, not_before);
  outcome.global_step = co_await waiting;
  if (!aggregates) co_return outcome;
  auto summing = context.activity_.settled(aggregates);
  auto sums = co_await summing;
  for (const auto& sum : sums)
    outcome.aggregates.push_back(gradient_of(sum));
  co_return outcome;
}

task<apply_outcome> sync_replicas_optimizer::apply_gradients(replica_context& context,
                                                             troupe::gradient gradient,
                                                             troupe::variable variable) const {
  std::vector<gradient_and_variable> only;
  only.push_back({std::move(gradient), std::move(variable)});
  return apply_gradients(context, std::move(only));
}

task<uint64_t> sync_replicas_optimizer::take_token(replica_context& context,
                                                   uint64_t not_before) const {
  context.has_token_ = false;
  auto began = context.activity_.world().now();
  auto taking = context.activity_.request<msg<wire::Token>>(
    context.place_.actors->tokens, make_take_token(context.place_.replica, context.local_step(),
                                                   not_before, ++context.questions_));
  auto token = value_or_throw(co_await taking);
  auto step = token.reader().getStep();
  context.activity_.set_local_step(step);
  context.place_.actors->hear(step);
  context.waited_ = context.activity_.world().now() - began;
  context.has_token_ = true;
  ++context.tokens_taken_;
  co_return step;
}

task<void> sync_replicas_optimizer::push_nothing(replica_context& context) const {
  const auto& actors = *context.place_.actors;
  auto nothing = make_push_gradient(origin_of(context), {});
  pushes_of_step pushes;
  for (size_t i = 0; i < actors.accumulators.size(); ++i)
    if (actors.bundle_of(i) == nullptr) pushes.alone.emplace_back(actors.accumulators[i], nothing);
  for (const auto& bundle : actors.bundles)
    pushes.bundled.emplace_back(bundle.collector,
                                push_bundle{std::vector(bundle.variables.size(), nothing)});
  auto pushing = push_all(context.activity_, std::move(pushes));
  co_await pushing;
}

} // namespace troupe
