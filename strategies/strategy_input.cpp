// SPDX-License-Identifier: Apache-2.0
// Distributing datasets over the replicas of a strategy.
#include "strategies/strategy_input.hpp"

#include "actors/failure.hpp"
#include "strategies/strategy.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

distribution distribution_for(const strategy& of, const input_options& options) {
  distribution how{.options = options};
  how.context.num_replicas_in_sync = of.num_replicas_in_sync();
  how.elsewhere
    = [world = &of.world()](std::function<void()> work) { world->submit_io(std::move(work)); };
  return how;
}

} // namespace

strategy_iterator strategy_dataset::iterate() const {
  context_check::cross_replica("iterate", *strategy_);
  return {*strategy_, elements_.iterate()};
}

std::optional<distributed_value<element>> strategy_iterator::next() {
  context_check::cross_replica("next", *strategy_);
  auto step = value_or_throw(elements_.next());
  if (!step) return std::nullopt;
  return regroup(std::move(*step));
}

void strategy_iterator::restore(const tensor& position) {
  value_or_throw(elements_.restore(position));
}

strategy_dataset strategy::experimental_distribute_dataset(const dataset& global_batches,
                                                           const input_options& options,
                                                           auto_shard_policy policy) {
  context_check::cross_replica("experimental_distribute_dataset", *this);
  auto how = distribution_for(*this, options);
  how.policy = policy;
  return {*this, distribute(global_batches, how)};
}

strategy_dataset strategy::distribute_datasets_from_function(
  const std::function<dataset(const input_context&)>& make, const input_options& options) {
  context_check::cross_replica("distribute_datasets_from_function", *this);
  if (options.replication_mode == input_replication_mode::per_replica && !layout_.mirrors_variables)
    throw failure{{errc::unimplemented,
                   fmt::format("a {} strategy does not call the function for each replica; use the "
                               "mode per_worker, or a mirrored strategy",
                               layout_.name)}};
  return {*this, distribute_from_function(make, distribution_for(*this, options))};
}

} // namespace troupe
