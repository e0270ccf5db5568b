// SPDX-License-Identifier: Apache-2.0
// Distributes datasets over the replicas of a strategy.
#include "strategies/contexts/strategy_input.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/strategy.hpp"

#include <algorithm>

namespace troupe {

namespace {

input_distribution distribution_for(const strategy& strategy, const input_options& options) {
  input_distribution distribution{.options = options};
  distribution.context.num_replicas_in_sync = strategy.num_replicas_in_sync();
  if (const auto& group = strategy.layout().group) {
    distribution.context.num_input_pipelines = group->size;
    distribution.context.input_pipeline_id = group->rank;
  }
  distribution.elsewhere = [world = &strategy.world()](std::function<void()> work) {
    world->submit_io(std::move(work));
  };
  return distribution;
}

constexpr int64_t numbers_each = 4;

tensor to_tensor(const pipeline_extent& extent) {
  tensor numbers{dtype::i64, {1, numbers_each}};
  auto to = numbers.mutable_values<int64_t>();
  to[0] = extent.has_partial_steps ? 1 : 0;
  to[1] = extent.has_elements ? 1 : 0;
  to[2] = static_cast<int64_t>(extent.begun_steps); // an endless one is -1, and back
  to[3] = static_cast<int64_t>(extent.whole_steps);
  return numbers;
}

std::vector<pipeline_extent> to_extents(const tensor& gathered) {
  std::vector<pipeline_extent> extents;
  auto from = gathered.values<int64_t>();
  for (size_t i = 0; i + numbers_each <= from.size(); i += numbers_each)
    extents.push_back({from[i] != 0, from[i + 1] != 0, static_cast<uint64_t>(from[i + 2]),
                       static_cast<uint64_t>(from[i + 3])});
  return extents;
}

// Each process has made a dataset of its own, and all end together. An error in one of them is
// thrown by all.
void end_with_others(strategy& strategy, distributed_dataset& dataset) {
  auto own = to_tensor(dataset.extent());
  auto gathered = strategy.cross_replica([own](cross_replica_context& context) {
    return context.reducing().gather_rows("distribute_datasets_from_function", {own});
  });
  auto extents = to_extents(gathered.front());
  dataset.end_with(extents);
  auto empty = std::ranges::find(extents, false, &pipeline_extent::has_elements);
  if (empty == extents.end() || std::ranges::none_of(extents, &pipeline_extent::has_elements))
    return;
  throw_failure(errc::invalid_argument,
                "the dataset of {} has no elements, so {}; give each process at least one",
                strategy.layout().group->names[static_cast<size_t>(empty - extents.begin())],
                dataset.steps() == 0 ? "every step would be left out"
                                     : "the shape of a batch without rows is not known there");
}

} // namespace

strategy_iterator strategy_dataset::iterate() const {
  context_check::cross_replica("iterate", *strategy_);
  return {*strategy_, elements_.iterate((*next_pass_)++), next_pass_};
}

std::optional<distributed_value<element>> strategy_iterator::next() {
  context_check::cross_replica("next", *strategy_);
  auto step = value_or_throw(elements_.next());
  if (!step) return std::nullopt;
  return regroup(std::move(*step));
}

void strategy_iterator::restore(const tensor& position) {
  value_or_throw(elements_.restore(position));
  *next_pass_ = elements_.pass() + 1;
}

strategy_dataset strategy::experimental_distribute_dataset(const dataset& global_batches,
                                                           const input_options& options,
                                                           auto_shard_policy policy) {
  context_check::cross_replica("experimental_distribute_dataset", *this);
  auto distribution = distribution_for(*this, options);
  distribution.policy = policy;
  return {*this, distribute(global_batches, distribution)};
}

strategy_dataset strategy::distribute_datasets_from_function(
  const std::function<dataset(const input_context&)>& make, const input_options& options) {
  context_check::cross_replica("distribute_datasets_from_function", *this);
  if (options.replication_mode == input_replication_mode::per_replica
      && !layout_.makes_input_per_replica)
    throw_failure(errc::unimplemented,
                  "a {} strategy does not call the function for each replica; use the mode "
                  "per_worker, or a mirrored strategy",
                  layout_.name);
  if (!layout_.group)
    return {*this, distribute_from_function(make, distribution_for(*this, options))};
  context_check::blocking("distribute_datasets_from_function", *this, "nothing there");
  auto elements = distribute_from_function(make, distribution_for(*this, options));
  end_with_others(*this, elements);
  return {*this, elements};
}

} // namespace troupe
