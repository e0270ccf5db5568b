// SPDX-License-Identifier: Apache-2.0
// A step of parameter-server training in which there is nothing to do: replicas read sixteen
// numbers, and give one gradient for each. Its time is coordination alone.
//
// null_step                                      a table of medians
// null_step REPLICAS VARIABLES ELEMENTS STEPS    the seconds of each step, by momentum
//
// The table has the step twice more with variables, replicas and gradients on a device: a part of
// the processor that plays a GPU, so that the messages by way of its actors are measured. Once a
// chief counts gradients, and once replicas meet, as those of a mirrored strategy do.
//
// The last column has the published time of TensorFlow's step with each worker on a machine of its
// own: 1.8 ms with one worker, 8.8 ms with a hundred, and a straight line between.
// Source: Abadi et al., "TensorFlow: A System for Large-Scale Machine Learning", OSDI 2016,
// figure 6, curve "scalar": a number on each of 16 parameter servers.
#include "actors/gpu/cpu_device.hpp"
#include "benchmarks/stopwatch.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

using namespace troupe;

namespace {

struct job_size {
  uint32_t workers = 1;
  int variables = 16;
  int64_t elements = 1; ///< Elements of each variable.
  uint64_t steps = 500;
  bool on_device = false;
};

constexpr size_t warm_up_steps = 50;

constexpr double published_ms(uint32_t workers) {
  return 1.8 + (8.8 - 1.8) / 99 * (workers - 1);
}

std::shared_ptr<compute_device> played_gpu(uint32_t streams) {
  return std::make_shared<cpu_device>(0, cpu_device_options{.streams = streams, .plays_gpu = true});
}

gpu_source played_gpus() {
  return {.open = [](std::span<const device> named, uint32_t streams) {
    std::vector<std::shared_ptr<compute_device>> opened(named.size(), played_gpu(streams));
    return expected<std::vector<std::shared_ptr<compute_device>>>{std::move(opened)};
  }};
}

// Makes the variables. @returns A function that makes a replica's step with an optimizer.
auto null_step(strategy& strategy, const job_size& size) {
  for (int i = 0; i < size.variables; ++i)
    strategy.make_variable(fmt::format("v{}", i), zeros({size.elements}));
  std::vector<variable> all{strategy.variables().begin(), strategy.variables().end()};
  auto gradient = zeros({size.elements});
  if (size.on_device) gradient = *played_gpu(1)->stream(0).to_device(gradient);
  return [=](const auto& optimizer) {
    return [=](replica_context& context) -> task<void> {
      auto reading = context.read_on_device(all);
      auto values = co_await reading;
      std::vector<gradient_and_variable> gradients;
      for (const auto& each : all)
        gradients.push_back({gradient, each});
      auto applying = optimizer.apply_gradients(context, std::move(gradients));
      co_await applying;
    };
  };
}

// @param train_job Trains with the options that it is given.
template <class Train>
std::vector<double> seconds_of(const job_size& size, size_t left_out, Train train_job) {
  std::vector<double> seconds;
  training_options training{.steps = size.steps};
  training.on_step = [&](const step_record& record) {
    if (record.step > left_out)
      seconds.push_back(std::chrono::duration<double>(record.ended - record.began).count());
  };
  auto report = train_job(training);
  if (report.failure) throw failure{*report.failure};
  return seconds;
}

std::vector<double> seconds_of_steps(const job_size& size, const update_rule& rule,
                                     size_t left_out) {
  auto workers = size.workers;
  auto world = world::threads({.observed = false});
  parameter_server_options options{.replicas = workers};
  if (size.on_device) {
    options.compute_devices = {played_gpu(workers)};
    options.variable_devices = {played_gpu(1)};
  }
  parameter_server_strategy strategy{world, options};
  auto step = null_step(strategy, size);
  sync_replicas_optimizer optimizer{rule, {workers, workers, sync_policy::latest_token}};
  return seconds_of(size, left_out, [&](const training_options& training) {
    return train(strategy, optimizer, step(optimizer), training);
  });
}

std::vector<double> seconds_of_meetings(const job_size& size, const update_rule& rule,
                                        size_t left_out) {
  auto world = world::threads({.observed = false});
  mirrored_strategy strategy{world,
                             {.devices = cpu_devices(size.workers),
                              .compute_devices = {played_gpu(size.workers)},
                              .gpus = played_gpus(),
                              .variable_devices = {played_gpu(1)}}};
  auto step = null_step(strategy, size);
  return seconds_of(size, left_out, [&](const training_options& training) {
    return train(strategy, step(optimizer{rule}), training);
  });
}

} // namespace

int main(int count, char** arguments) {
  if (count == 5) {
    job_size size{static_cast<uint32_t>(std::atoi(arguments[1])), std::atoi(arguments[2]),
                  std::atoll(arguments[3]), static_cast<uint64_t>(std::atoll(arguments[4]))};
    for (auto seconds : seconds_of_steps(size, rules::momentum{.learning_rate = 0.01}, 0))
      fmt::print("{:.9f}\n", seconds);
    return 0;
  }
  fmt::print("null step, {} scalar variables, all gradients needed; milliseconds\n",
             job_size{}.variables);
  fmt::print("{:>8} {:>8} {:>8} {:>12} {:>16} {:>24}\n", "workers", "median", "p90", "on a device",
             "meeting on one", "TensorFlow, published");
  for (uint32_t workers = 1; workers <= 64; workers *= 2) {
    const rules::sgd rule{.learning_rate = 0.1};
    auto seconds = seconds_of_steps({workers}, rule, warm_up_steps);
    const job_size on_device{.workers = workers, .on_device = true};
    auto there = seconds_of_steps(on_device, rule, warm_up_steps);
    auto meeting = seconds_of_meetings(on_device, rule, warm_up_steps);
    fmt::print("{:>8} {:>8.3f} {:>8.3f} {:>12.3f} {:>16.3f} {:>24.2f}\n", workers,
               1e3 * median(seconds), 1e3 * quantile(seconds, 0.9), 1e3 * median(there),
               1e3 * median(meeting), published_ms(workers));
  }
}
