// SPDX-License-Identifier: Apache-2.0
// Spawns the actor of a conditional accumulator, and asks it.
#include "strategies/optimizers/conditional_accumulator.hpp"

#include "actors/training/accumulator.hpp"
#include "actors/world/ask.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/reduce/on_host.hpp"

#include <limits>
#include <string_view>

namespace troupe {

namespace {

// The remedy for a call that blocks a step function.
constexpr std::string_view awaited_instead
  = "await the one that takes the context that your function was given";

msg<wire::PushGradient> make_push(const gradient& value, uint64_t local_step) {
  check_on_host(value);
  return make_push_gradient({.local_step = local_step}, value);
}

verdict verdict_of(expected<msg<wire::PushReply>> reply) {
  return static_cast<verdict>(value_or_throw(std::move(reply)).reader().getVerdict());
}

aggregated_gradient aggregate_of(expected<msg<wire::Aggregate>> reply) {
  auto aggregate = value_or_throw(std::move(reply));
  auto reader = aggregate.reader();
  return {*read_gradient(reader.getGradient(), aggregate.owner()), reader.getCount(),
          reader.getStep()};
}

accumulator_config to_config(troupe::world& world, const accumulator_options& options,
                             accumulator_form::layout layout) {
  accumulator_config config;
  config.world = &world;
  config.form = accumulator_form{options.name, options.type, layout, options.shape};
  config.reduction_type = options.reduction_type;
  return config;
}

uint32_t positive_count(int64_t num_required) {
  if (num_required < 1)
    throw_failure(errc::invalid_argument, "Argument num_required must be positive, but it is {}",
                  num_required);
  if (num_required > std::numeric_limits<uint32_t>::max())
    throw_failure(errc::invalid_argument,
                  "num_required is {}; at most {} gradients can be required", num_required,
                  std::numeric_limits<uint32_t>::max());
  return static_cast<uint32_t>(num_required);
}

uint32_t count_of(expected<msg<wire::AccumulatorStatus>> reply) {
  return value_or_throw(std::move(reply)).reader().getAccumulated();
}

} // namespace

/// The actor, which ends with it.
class conditional_accumulator_base::spawned {
public:
  spawned(troupe::world& world, const accumulator_options& options, accumulator_form::layout layout)
    : world(world), actor(world.system().spawn(accumulator, to_config(world, options, layout))) {}

  spawned(const spawned&) = delete;
  spawned& operator=(const spawned&) = delete;

  ~spawned() { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); }

  troupe::world& world;
  accumulator_actor actor;
};

conditional_accumulator_base::conditional_accumulator_base(troupe::world& world,
                                                           const accumulator_options& options,
                                                           accumulator_form::layout layout) {
  if (!is_floating(options.type))
    throw_failure(errc::type_mismatch, "accumulator '{}': {} has no mean; use a floating dtype",
                  options.name, to_string(options.type));
  spawned_ = std::make_shared<spawned>(world, options, layout);
}

uint32_t conditional_accumulator_base::num_accumulated() {
  context_check::waiting("num_accumulated", awaited_instead);
  return count_of(
    ask<msg<wire::AccumulatorStatus>>(spawned_->world, spawned_->actor, make_read_accumulator()));
}

task<uint32_t> conditional_accumulator_base::num_accumulated(replica_context& context) {
  auto asking
    = context.request<msg<wire::AccumulatorStatus>>(spawned_->actor, make_read_accumulator());
  co_return count_of(co_await asking);
}

void conditional_accumulator_base::set_global_step(uint64_t step) {
  caf::anon_send(spawned_->actor, make_set_step(step));
}

verdict conditional_accumulator_base::apply(const gradient& value, uint64_t local_step) {
  context_check::waiting("apply_grad", awaited_instead);
  return verdict_of(
    ask<msg<wire::PushReply>>(spawned_->world, spawned_->actor, make_push(value, local_step)));
}

task<verdict> conditional_accumulator_base::apply(replica_context& context, gradient value,
                                                  uint64_t local_step) {
  auto pushing
    = context.request<msg<wire::PushReply>>(spawned_->actor, make_push(value, local_step));
  co_return verdict_of(co_await pushing);
}

aggregated_gradient conditional_accumulator_base::take(int64_t num_required,
                                                       const std::stop_token& stop) {
  context_check::waiting("take_grad", awaited_instead);
  auto required = positive_count(num_required);
  auto tell = [to = spawned_->actor](caf::event_based_actor* asker) {
    asker->send(to, make_cancel_takes());
  };
  return aggregate_of(ask<msg<wire::Aggregate>>(
    spawned_->world, spawned_->actor, make_take_aggregate(required), {stop, std::move(tell)}));
}

task<aggregated_gradient> conditional_accumulator_base::take(replica_context& context,
                                                             int64_t num_required) {
  auto required = positive_count(num_required);
  auto taking
    = context.request<msg<wire::Aggregate>>(spawned_->actor, make_take_aggregate(required));
  co_return aggregate_of(co_await taking);
}

// ---- dense ----

conditional_accumulator::conditional_accumulator(troupe::world& world,
                                                 const accumulator_options& options)
  : conditional_accumulator_base(world, options, accumulator_form::layout::dense) {}

verdict conditional_accumulator::apply_grad(const tensor& grad, uint64_t local_step) {
  return apply(grad, local_step);
}

task<verdict> conditional_accumulator::apply_grad(replica_context& context, tensor grad,
                                                  uint64_t local_step) {
  return apply(context, std::move(grad), local_step);
}

aggregated_gradient conditional_accumulator::take_grad(int64_t num_required,
                                                       const std::stop_token& stop) {
  return take(num_required, stop);
}

task<aggregated_gradient> conditional_accumulator::take_grad(replica_context& context,
                                                             int64_t num_required) {
  return take(context, num_required);
}

// ---- sparse ----

sparse_conditional_accumulator::sparse_conditional_accumulator(troupe::world& world,
                                                               const accumulator_options& options)
  : conditional_accumulator_base(world, options, accumulator_form::layout::sparse) {}

verdict sparse_conditional_accumulator::apply_indexed_slices_grad(indexed_slices grad,
                                                                  uint64_t local_step) {
  return apply(with_wide_indices(std::move(grad)), local_step);
}

task<verdict> sparse_conditional_accumulator::apply_indexed_slices_grad(replica_context& context,
                                                                        indexed_slices grad,
                                                                        uint64_t local_step) {
  return apply(context, with_wide_indices(std::move(grad)), local_step);
}

verdict sparse_conditional_accumulator::apply_grad(tensor indices, tensor values,
                                                   const std::optional<shape>& dense_shape,
                                                   uint64_t local_step) {
  return apply_indexed_slices_grad(
    {std::move(indices), std::move(values), dense_shape.value_or(shape{})}, local_step);
}

aggregated_gradient
sparse_conditional_accumulator::take_indexed_slices_grad(int64_t num_required,
                                                         const std::stop_token& stop) {
  return take(num_required, stop);
}

task<aggregated_gradient>
sparse_conditional_accumulator::take_indexed_slices_grad(replica_context& context,
                                                         int64_t num_required) {
  return take(context, num_required);
}

} // namespace troupe
