// SPDX-License-Identifier: Apache-2.0
// Distributes datasets, and gives each replica its element of a step.
#include "strategies/data/distributed_dataset.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/element_rows.hpp"
#include "strategies/data/position.hpp"
#include "strategies/data/rebatch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace troupe {

namespace {

bool may_end_early(const dataset& elements) {
  return elements.size() != dataset::infinite && !has_fixed_extents(elements);
}

uint64_t local_replicas(const input_context& context) {
  return std::max<uint64_t>(context.num_replicas_in_sync / context.num_input_pipelines, 1);
}

// Batches for single replicas, of global ones. Pipelines that divide elements need as many of each
// batch as there are replicas.
dataset for_replicas(const dataset& global_batches, const input_context& context,
                     bool is_by_elements) {
  if (context.num_replicas_in_sync == 1) return global_batches;
  const auto batch_size = batch_size_of(global_batches);
  if (batch_size <= 0 || is_by_elements)
    return legacy_rebatch(global_batches, context.num_replicas_in_sync);
  return rebatch(global_batches, batch_sizes_for_pipeline(
                                   static_cast<uint64_t>(batch_size), context.num_input_pipelines,
                                   local_replicas(context), context.input_pipeline_id));
}

dataset read_ahead(const dataset& elements, uint64_t replicas,
                   const input_distribution& distribution) {
  return elements.prefetch(replicas * distribution.options.per_replica_buffer_size,
                           distribution.elsewhere);
}

// Every pipeline reads everything, which costs more the more of them there are.
void warn(const input_distribution& distribution, const std::string& reason) {
  auto line = fmt::format(
    "{}; AUTO has divided the elements, so that each of the {} pipelines reads "
    "all of the data and uses a part of it",
    reason.substr(0, reason.find(": take")), distribution.context.num_input_pipelines);
  static std::atomic_flag has_told;
  if (distribution.options.on_warning)
    distribution.options.on_warning(line);
  else if (!has_told.test_and_set())
    std::fprintf(stderr, "%s\n", line.c_str());
}

distributed_dataset one_part(const dataset& global_batches, const input_distribution& distribution,
                             uint64_t pipeline) {
  auto context = distribution.context;
  context.input_pipeline_id = pipeline;
  const auto pipelines = context.num_input_pipelines;
  std::string by_elements;
  const auto policy = chosen_policy(global_batches, distribution.policy, pipelines, &by_elements);
  const bool is_by_elements = policy == auto_shard_policy::data && pipelines > 1;
  const auto mine = auto_shard(for_replicas(global_batches, context, is_by_elements), policy,
                               pipelines, pipeline, context.num_replicas_in_sync);
  if (!by_elements.empty() && pipeline == distribution.context.input_pipeline_id)
    warn(distribution, by_elements);
  const auto replicas = local_replicas(context);
  return {{read_ahead(mine, replicas, distribution)}, replicas};
}

} // namespace

// ---- steps ----

distributed_dataset::distributed_dataset(std::vector<dataset> pipelines, uint64_t replicas)
  : pipelines_(std::move(pipelines)), replicas_(replicas) {
  TROUPE_ASSERT(replicas_ > 0);
  TROUPE_ASSERT(pipelines_.size() == 1 || pipelines_.size() == replicas_, pipelines_.size());
  has_partial_steps_ = std::ranges::all_of(pipelines_, may_end_early);
  steps_ = has_partial_steps_ ? begun_steps() : whole_steps();
  const auto first
    = std::ranges::find_if(pipelines_, [](const dataset& pipeline) { return pipeline.size() > 0; });
  if (first != pipelines_.end()) model_ = *first;
}

uint64_t distributed_dataset::whole_steps() const {
  uint64_t steps = dataset::infinite;
  for (const auto& pipeline : pipelines_)
    if (pipeline.size() != dataset::infinite)
      steps = std::min(steps, pipeline.size() / replicas_of_each());
  return steps;
}

uint64_t distributed_dataset::begun_steps() const {
  uint64_t steps = 0;
  const auto each = replicas_of_each();
  for (const auto& pipeline : pipelines_)
    steps = std::max(steps, pipeline.size() / each + (pipeline.size() % each != 0));
  return steps;
}

pipeline_extent distributed_dataset::extent() const {
  return {has_partial_steps_, model_.has_value(),
          has_partial_steps_ ? begun_steps() : dataset::infinite, whole_steps()};
}

void distributed_dataset::end_with(std::span<const pipeline_extent> all) {
  has_partial_steps_ = std::ranges::all_of(all, &pipeline_extent::has_partial_steps);
  steps_ = has_partial_steps_
             ? std::ranges::max(all, {}, &pipeline_extent::begun_steps).begun_steps
             : std::ranges::min(all, {}, &pipeline_extent::whole_steps).whole_steps;
}

void end_together(std::vector<distributed_dataset>& parts) {
  std::vector<pipeline_extent> all;
  std::optional<dataset> model;
  for (const auto& part : parts) {
    all.push_back(part.extent());
    if (!model) model = part.model_;
  }
  for (auto& part : parts) {
    part.end_with(all);
    if (!part.model_) part.model_ = model;
  }
}

distributed_iterator distributed_dataset::iterate(uint64_t pass) const {
  return {*this, pass};
}

distributed_iterator::distributed_iterator(const distributed_dataset& source, uint64_t pass)
  : source_(source), pass_(pass) {
  for (const auto& pipeline : source_.pipelines_)
    pipelines_.push_back(pipeline.iterate(pass));
}

// All elements of the step are read, even behind one that cannot be: the next step begins where it
// should.
expected<std::optional<std::vector<element>>> distributed_iterator::next() {
  if (delivered_ == source_.steps_) return std::nullopt;
  ++delivered_;
  std::vector<std::optional<element>> step;
  expected<void> done;
  for (auto& pipeline : pipelines_) {
    for (uint64_t i = 0; i < source_.replicas_of_each(); ++i) {
      auto one = pipeline.next();
      if (!one && done) done = tl::unexpected(one.error());
      step.push_back(one ? std::move(*one) : std::nullopt);
    }
  }
  if (done) done = fill(step);
  if (!done) return tl::unexpected(done.error());
  std::vector<element> elements;
  elements.reserve(step.size());
  for (auto& one : step)
    elements.push_back(std::move(*one));
  return elements;
}

// Gives an element without rows to the replicas that have none.
expected<void> distributed_iterator::fill(std::vector<std::optional<element>>& step) {
  const auto has_value = [](const auto& one) { return one.has_value(); };
  if (std::ranges::all_of(step, has_value)) return {};
  const auto found = std::ranges::find_if(step, has_value);
  if (!without_rows_) {
    auto model = found != step.end() ? expected<std::optional<element>>{*found} : first_of_all();
    if (!model) return tl::unexpected(model.error());
    const bool is_example = std::ranges::any_of(source_.pipelines_, come_of_examples);
    if (auto rows = rows_of(**model, is_example); !rows) return tl::unexpected(rows.error());
    without_rows_ = slice_rows(**model, 0, 0);
  }
  for (auto& one : step)
    if (!one) one = without_rows_;
  return {};
}

// There is one, or there would be no step.
expected<std::optional<element>> distributed_iterator::first_of_all() const {
  TROUPE_ASSERT(source_.model_);
  return source_.model_->iterate().next();
}

tensor distributed_iterator::position() const {
  return make_position({delivered_, pass_}, source_.steps_);
}

expected<void> distributed_iterator::restore(const tensor& position) {
  const auto at = read_position(position, source_.steps_, "steps");
  if (!at) return tl::unexpected(at.error());
  for (size_t i = 0; i < pipelines_.size(); ++i) {
    const auto size = source_.pipelines_[i].size();
    const auto elements
      = std::min(saturated_product(at->delivered, source_.replicas_of_each()), size);
    auto there = make_position({elements, at->pass}, size);
    if (auto done = pipelines_[i].restore(there); !done) return done;
  }
  delivered_ = at->delivered;
  pass_ = at->pass;
  return {};
}

// ---- ways to distribute ----

distributed_dataset distribute(const dataset& global_batches,
                               const input_distribution& distribution) {
  check(distribution.context);
  if (distribution.options.replication_mode == input_replication_mode::per_replica)
    throw_failure(errc::unimplemented,
                  "distribute: the replication mode per_replica needs a function that makes "
                  "the dataset of each replica");
  std::vector<distributed_dataset> parts;
  for (uint64_t i = 0; i < distribution.context.num_input_pipelines; ++i)
    parts.push_back(one_part(global_batches, distribution, i));
  const auto has_elements = [](const auto& part) { return part.extent().has_elements; };
  const auto empty = std::ranges::find(parts, false, has_elements) - parts.begin();
  const bool is_empty = std::ranges::none_of(parts, has_elements);
  end_together(parts);
  if (global_batches.size() == dataset::infinite && parts.front().steps() == 0)
    throw_failure(errc::invalid_argument,
                  "distribute: the dataset has no end, but not every one of {} pipelines has a "
                  "file, so that no step would be whole: take the policy DATA, or more files",
                  distribution.context.num_input_pipelines);
  if (!is_empty && parts.front().steps() == 0)
    throw_failure(errc::invalid_argument,
                  "distribute: pipeline {} of {} has no elements, so that every step would be left "
                  "out: take the policy DATA, more files, or batch() without drop_remainder",
                  empty, parts.size());
  return parts[distribution.context.input_pipeline_id];
}

distributed_dataset
distribute_from_function(const std::function<dataset(const input_context&)>& make,
                         const input_distribution& distribution) {
  check(distribution.context);
  check(distribution.options);
  require(make != nullptr, "distribute: the function that makes a dataset is empty");
  const auto replicas = local_replicas(distribution.context);
  if (distribution.options.replication_mode == input_replication_mode::per_worker)
    return {{read_ahead(make(distribution.context), replicas, distribution)}, replicas};
  if (distribution.context.num_input_pipelines > 1)
    throw_failure(errc::unimplemented,
                  "distribute: the replication mode per_replica is for the replicas of one "
                  "pipeline");
  std::vector<dataset> pipelines;
  for (uint64_t i = 0; i < replicas; ++i)
    pipelines.push_back(read_ahead(make({replicas, i, replicas}), 1, distribution));
  const auto empty = std::ranges::find(pipelines, 0U, &dataset::size) - pipelines.begin();
  distributed_dataset all{std::move(pipelines), replicas};
  if (all.steps() == 0 && all.extent().has_elements)
    throw_failure(errc::invalid_argument,
                  "distribute: the dataset of replica {} has no elements, so that every step would "
                  "be left out; give each replica at least one",
                  empty);
  return all;
}

} // namespace troupe
