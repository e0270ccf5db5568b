// SPDX-License-Identifier: Apache-2.0
// A replica's side of a synchronous step: push, then wait for a token.
#include "strategies/sync_replicas_optimizer.hpp"

#include "messages/training_message.hpp"
#include "strategies/training_cast.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using push = std::pair<accumulator_actor, msg<wire::PushGradient>>;

std::vector<push> make_pushes(const training_cast& cast, const origin& from,
                              const std::vector<gradient_and_variable>& gradients) {
  std::vector<push> pushes;
  pushes.reserve(gradients.size());
  for (const auto& [gradient, variable] : gradients)
    pushes.emplace_back(value_or_throw(cast.accumulator_of(variable)),
                        make_push_gradient(from, to_payload(gradient)));
  if (pushes.empty())
    throw failure{{errc::invalid_argument,
                   "Must supply at least one variable: apply_gradients got no gradient"}};
  return pushes;
}

} // namespace

expected<accumulator_actor> training_cast::accumulator_of(const variable& trained) const {
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i] == trained) return accumulators[i];
  return fail(errc::not_found,
              fmt::format("this job does not train variable '{}'", trained.name()));
}

sync_replicas_optimizer::sync_replicas_optimizer(update_rule rule, sync_options options,
                                                 learning_rate_schedule schedule)
  : rule_(rule), schedule_(schedule), options_(options) {
  value_or_throw(validate(rule));
  value_or_throw(options.validate());
}

task<apply_outcome> sync_replicas_optimizer::apply_gradients(
  replica_context& context, std::vector<gradient_and_variable> gradients_and_variables) const {
  origin from{.replica = context.place_.replica,
              .examples = context.examples_,
              .local_step = context.local_step(),
              .iteration = context.iteration(),
              .compute = context.compute_time_,
              .waited = context.waited_,
              .loss = context.loss_};
  auto pushes = make_pushes(*context.place_.cast, from, gradients_and_variables);
  gradients_and_variables.clear(); // from here on the messages hold the gradients
  context.has_token_ = false;
  auto pushing = context.activity_.request_all<msg<wire::PushReply>>(std::move(pushes));
  auto replies = co_await pushing;
  apply_outcome outcome;
  for (auto& reply : replies) {
    auto judged = value_or_throw(std::move(reply));
    ++(judged.reader().getVerdict() == wire::Verdict::ACCEPTED ? outcome.accepted : outcome.stale);
  }
  auto waiting = take_token(context);
  outcome.global_step = co_await waiting;
  co_return outcome;
}

task<apply_outcome> sync_replicas_optimizer::apply_gradients(replica_context& context,
                                                             troupe::gradient gradient,
                                                             troupe::variable variable) const {
  std::vector<gradient_and_variable> only;
  only.push_back({std::move(gradient), std::move(variable)});
  return apply_gradients(context, std::move(only));
}

task<uint64_t> sync_replicas_optimizer::take_token(replica_context& context) const {
  context.has_token_ = false;
  auto began = context.activity_.world().now();
  auto taking = context.activity_.request<msg<wire::Token>>(
    context.place_.cast->tokens, make_take_token(context.place_.replica, context.local_step()));
  auto token = value_or_throw(co_await taking);
  auto step = token.reader().getStep();
  context.activity_.set_local_step(step);
  context.waited_ = context.activity_.world().now() - began;
  context.has_token_ = true;
  ++context.tokens_taken_;
  co_return step;
}

} // namespace troupe
