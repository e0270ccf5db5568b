// SPDX-License-Identifier: Apache-2.0
// A small job of the language model, in the host's memory or on a GPU, which may be emulated.
#pragma once

#include "actors/gpu/cuda_device.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/reduce/named_devices.hpp"
#include "tests/tools/small_language.hpp"
#include "tools/language/language_step.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

[[nodiscard]] inline std::shared_ptr<compute_device> gpu_of(int index, uint32_t streams) {
  auto opened = open_cuda_device(index, streams);
  REQUIRE_MESSAGE(opened, (opened ? std::string{} : opened.error().message));
  return *opened;
}

/// The GPU that each test takes.
[[nodiscard]] inline std::shared_ptr<compute_device> first_gpu(uint32_t streams) {
  return gpu_of(0, streams);
}

/// The first GPUs, without NCCL.
[[nodiscard]] inline gpu_source gpus_here() {
  return {.open =
            [](std::span<const device> named, uint32_t streams) {
              std::vector<std::shared_ptr<compute_device>> opened;
              for (const auto& one : named)
                opened.push_back(gpu_of(one.index, streams));
              return expected<std::vector<std::shared_ptr<compute_device>>>{std::move(opened)};
            },
          .open_collectives = []() -> expected<std::shared_ptr<collective_library>> {
            return fail(errc::resource, "NCCL is left out");
          }};
}

/// A language model, the devices that train it, and how.
struct language_job {
  language_model_config model = small_model();
  std::vector<std::shared_ptr<compute_device>> devices{}; ///< None: in the host's memory.
  std::vector<std::shared_ptr<compute_device>> holding{}; ///< Where variables lie, in turn.
  product_precision precision = product_precision::full;
  bool is_mirrored = false; ///< Replicas meet in each step; else a chief counts their gradients.
};

/// The losses of a job, and the variables that it left.
struct language_course {
  std::vector<double> losses; ///< By step, the mean of its replicas.
  std::vector<tensor> variables;
  std::optional<error> failure;
};

inline constexpr uint32_t learning_replicas = 3;

[[nodiscard]] inline std::unique_ptr<strategy> make_strategy(world& in, const language_job& job) {
  if (job.is_mirrored)
    return std::make_unique<mirrored_strategy>(
      in, mirrored_options{.devices = cpu_devices(learning_replicas),
                           .compute_devices = job.devices,
                           .gpus = gpus_here(),
                           .variable_devices = job.holding});
  return std::make_unique<parameter_server_strategy>(
    in, parameter_server_options{.replicas = learning_replicas,
                                 .compute_devices = job.devices,
                                 .variable_devices = job.holding});
}

/// Three replicas, all of which a step needs.
[[nodiscard]] inline language_course learn(const language_job& job, uint64_t steps) {
  auto world = world::threads({.seed = 7, .threads = 2});
  auto made = make_strategy(world, job);
  auto& strategy = *made;
  for (const auto& [name, value] : initial_values(variables_of(job.model), 7))
    strategy.make_variable(name, value);
  const rules::adam rule{.learning_rate = 0.01};
  sync_replicas_optimizer counting{
    rule, {learning_replicas, learning_replicas, sync_policy::latest_token}};
  optimizer meeting{{.rule = rule}, {.aggregation = reduce_op::mean}};
  std::vector<variable> variables{strategy.variables().begin(), strategy.variables().end()};
  auto step_of = [&](const job_optimizer& by) {
    return training_step(language_step({job.model, 16, small_text}), 16, by, variables,
                         job.precision);
  };
  language_course seen;
  training_options options{.steps = steps};
  options.on_step = [&](const step_record& step) {
    double sum = 0;
    for (const auto& one : step.accepted)
      sum += one.loss;
    seen.losses.push_back(sum / static_cast<double>(step.accepted.size()));
  };
  auto report = job.is_mirrored ? train(strategy, step_of(meeting), options)
                                : train(strategy, counting, step_of(counting), options);
  seen.failure = report.failure;
  for (const auto& variable : variables)
    seen.variables.push_back(strategy.read(variable));
  return seen;
}

} // namespace troupe::test
