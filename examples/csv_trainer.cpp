// SPDX-License-Identifier: Apache-2.0
// A trainer that learns from a file: replicas with rows of their own find the slope of a plane.
#include "strategies/data/csv_file.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdio>

using namespace troupe;

// The gradient of the mean of (east * a + north * b + c - height)^2 over a batch, by (a, b, c).
tensor gradient_of(const tensor& plane, const element& batch) {
  auto coefficients = plane.values<float>();
  auto places = batch.tensors[0].values<float>();
  auto heights = batch.tensors[1].values<float>();
  auto result = zeros({3});
  auto sums = result.mutable_values<float>();
  for (size_t i = 0; i < heights.size(); ++i) {
    const float features[] = {places[2 * i], places[2 * i + 1], 1};
    float error = -heights[i];
    for (size_t k = 0; k < 3; ++k)
      error += coefficients[k] * features[k];
    for (size_t k = 0; k < 3; ++k)
      sums[k] += 2 * error * features[k] / static_cast<float>(heights.size());
  }
  return result;
}

// @returns The exit code. Errors: throws `failure` for a file that has no such columns.
int train_on(const char* file) {
  constexpr uint32_t replicas = 4;
  auto world = world::threads({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto plane = strategy.make_variable("plane", zeros({3}));
  sync_replicas_optimizer optimizer{rules::momentum{.learning_rate = 0.05},
                                    {.replicas_to_aggregate = 3,
                                     .total_num_replicas = replicas,
                                     .policy = sync_policy::latest_token}};

  csv_options columns{.tensors = {{.columns = {"east", "north"}}, {.columns = {"height"}}}};
  auto points = csv_file(file, columns);
  // Each replica has every fourth row, in another order each time, and two batches in advance.
  auto elsewhere = [&](std::function<void()> work) { world.submit(std::move(work)); };
  auto batches = std::make_shared<std::vector<dataset_iterator>>();
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    auto rows = points.shard(replicas, replica).shuffle(1000, world.seed());
    batches->push_back(rows.batch(8).repeat().prefetch(2, elsewhere).iterate());
  }

  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(plane);
    auto value = co_await reading;
    // Every checkpoint has the position that was kept before computing: a resumed job begins there.
    auto& mine = (*batches)[context.replica_id_in_sync_group()];
    if (auto place = context.kept("batches")) value_or_throw(mine.restore(*place));
    auto batch = value_or_throw(mine.next());
    if (!batch) throw std::runtime_error{"the file has fewer rows than there are replicas"};
    context.keep("batches", mine.position());

    auto computing
      = context.compute([value, batch](std::stop_token) { return gradient_of(value, *batch); });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, plane);
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = 300});
  if (report.failure) return static_cast<int>(exit_code_of(report));

  auto trained = strategy.read(plane);
  auto slope = trained.values<float>();
  std::printf("after %lu steps: height = %.2f east %+.2f north %+.2f\n",
              static_cast<unsigned long>(report.step), slope[0], slope[1], slope[2]);
  return 0;
}

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fprintf(stderr, "usage: csv_trainer FILE   (with columns east, north and height)\n");
    return 2;
  }
  try {
    return train_on(arguments[1]);
  } catch (const failure& refused) {
    std::fprintf(stderr, "csv_trainer: %s\n", refused.what());
    return 2;
  }
}
