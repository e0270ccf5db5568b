// SPDX-License-Identifier: Apache-2.0
// A job of four replicas that can compute, and have its variables, in the host's memory or on a
// GPU.
#pragma once

#include "actors/training/optimizer_settings.hpp"
#include "actors/world/compute_device.hpp"
#include "kernels/math/cast.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/contexts/gradient_buckets.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/small_job.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// Opens a handle to one and the same GPU. @param streams Streams of the handle.
using gpu_opener = std::function<std::shared_ptr<compute_device>(uint32_t streams)>;

/// Where a job computes, and where its variables lie.
struct placed_job_layout {
  bool computes_on_gpu = false;
  bool has_variables_on_gpu = false;
};

/// All ways but that of a job without a GPU.
inline constexpr std::array<placed_job_layout, 3> ways_with_gpu{
  placed_job_layout{true, true}, placed_job_layout{false, true}, placed_job_layout{true, false}};

/// The variables at the end of a job, to compare: value, slots and average of each.
using placed_outcome = std::map<std::string, numbers>;

inline const shape placed_extents{6, 33};

inline tensor ascending(double first, const shape& size) {
  tensor result{dtype::f32, size};
  for (auto& value : result.mutable_values<float>())
    value = static_cast<float>(first += 0.125);
  return result;
}

inline tensor drawn(random_stream& noise, const shape& size) {
  tensor result{dtype::f32, size};
  for (auto& value : result.mutable_values<float>())
    value = static_cast<float>(noise.normal());
  return result;
}

// The value and a number for each element.
inline tensor dense(compute_stream& on, const tensor& value, random_stream& noise) {
  const tensor terms[] = {value, value_or_throw(on.to_device(drawn(noise, value.extents())))};
  return value_or_throw(on.sum(terms));
}

// Rows of its own for each replica; one occurs twice.
inline indexed_slices rows(compute_stream& on, uint32_t replica, random_stream& noise) {
  tensor numbers{dtype::i64, {3}};
  auto which = numbers.mutable_values<int64_t>();
  which[0] = which[2] = replica % placed_extents[0];
  which[1] = (replica + 3) % placed_extents[0];
  auto values = value_or_throw(on.to_device(drawn(noise, {3, placed_extents[1]})));
  return {numbers, values, placed_extents};
}

inline std::vector<gradient> placed_gradients(compute_stream& on, const std::vector<tensor>& values,
                                              uint32_t replica, random_key key) {
  auto there = value_or_throw(on.resident(values));
  random_stream noise{key};
  std::vector<gradient> made{dense(on, there[0], noise), rows(on, replica, noise)};
  if (replica % 2 == 0)
    made.emplace_back(dense(on, there[2], noise));
  else
    made.emplace_back(rows(on, replica, noise));
  made.emplace_back(dense(on, there[3], noise));
  made.emplace_back(dense(on, there[4], noise));
  return made;
}

/// Makes a variable with dense gradients, one with sparse ones, and one that gets some of each; and
/// two with dense gradients that are copied into their messages.
[[nodiscard]] inline std::vector<variable> placed_variables(strategy& of) {
  std::vector<variable> made;
  double first = 0;
  for (const auto* name : {"dense", "sparse", "mixed"})
    made.push_back(of.make_variable(name, ascending(++first, placed_extents)));
  made.push_back(of.make_variable("bias", ascending(++first, {1})));
  made.push_back(of.make_variable("line", ascending(++first, {16})));
  return made;
}

/// Gradients that depend on their variables, made and left where the replica computes.
[[nodiscard]] inline task<std::vector<gradient_and_variable>>
compute_placed_gradients(replica_context& context, std::vector<variable> variables) {
  auto reading = context.read_on_device(variables);
  auto values = co_await reading;
  auto work
    = [values, replica = context.replica_id_in_sync_group(), key = context.random("gradient")](
        std::stop_token, compute_stream& on) { return placed_gradients(on, values, replica, key); };
  auto computing = context.compute(std::move(work));
  auto made = co_await computing;
  values.clear();
  std::vector<gradient_and_variable> pairs;
  for (size_t i = 0; i < variables.size(); ++i)
    pairs.push_back({std::move(made[i]), variables[i]});
  co_return pairs;
}

/// The values of variables.
[[nodiscard]] inline placed_outcome outcome_of(strategy& in, const std::vector<variable>& wanted) {
  placed_outcome all;
  for (const auto& one : wanted)
    all[one.name()] = numbers_of(in.read(one));
  return all;
}

/// A job of a parameter server strategy, with those variables and gradients.
class placed_job {
public:
  placed_job(troupe::world in, const gpu_opener& open, const placed_job_layout& where,
             const update_plan& plan, const sync_options& sync)
    : world_(std::move(in)), strategy_(world_, options_of(open, where, sync.total_num_replicas)),
      optimizer_(plan, sync), variables_(placed_variables(strategy_)) {}

  /// @param options But for the pace, which is that of the replicas here.
  course run(training_options options) {
    auto step = [this](replica_context& context) -> task<void> {
      auto computing = compute_placed_gradients(context, variables_);
      auto gradients = co_await computing;
      auto applying = optimizer_.apply_gradients(context, std::move(gradients));
      co_await applying;
    };
    return play(strategy_, optimizer_, step, std::move(options));
  }

  [[nodiscard]] placed_outcome outcome() {
    auto all = outcome_of(strategy_, variables_);
    for (const auto& [name, values] : optimizer_.variables(strategy_))
      all[name] = numbers_of(values);
    return all;
  }

  [[nodiscard]] parameter_server_strategy& strategy() { return strategy_; }

  [[nodiscard]] const std::vector<variable>& variables() const { return variables_; }

private:
  static parameter_server_options options_of(const gpu_opener& open, const placed_job_layout& where,
                                             uint32_t replicas) {
    parameter_server_options options{.replicas = replicas};
    if (where.computes_on_gpu) options.compute_devices = {open(replicas)};
    if (where.has_variables_on_gpu) options.variable_devices = {open(2)};
    return options;
  }

  troupe::world world_;
  parameter_server_strategy strategy_;
  sync_replicas_optimizer optimizer_;
  std::vector<variable> variables_;
};

/// Five steps in which all replicas of a strategy meet. @returns The values of its variables then.
[[nodiscard]] inline placed_outcome run_placed(strategy& in, const optimizer& by) {
  const auto variables = placed_variables(in);
  for (int step = 0; step < 5; ++step)
    in.run([&](replica_context& context) -> task<void> {
      auto computing = compute_placed_gradients(context, variables);
      auto gradients = co_await computing;
      gradients.erase(gradients.begin() + 2); // rows of some replicas only, which are not reduced
      auto applying = by.apply_gradients(context, std::move(gradients));
      co_await applying;
    });
  return outcome_of(in, variables);
}

/// Plans that take every way through an update: rules with and without slots, clips, an average.
[[nodiscard]] inline std::vector<update_plan> placed_plans() {
  return {{.rule = rules::sgd{.learning_rate = 0.05}},
          {.rule = rules::adam{.learning_rate = 0.05},
           .clip = {.norm_max = 3},
           .average = moving_average{.decay = 0.9}},
          {.rule = rules::momentum{.learning_rate = 0.05},
           .clip = {.value_max = 1},
           .sparse_exact = true,
           .average = moving_average{.decay = 0.9, .num_updates = true}}};
}

/// How gradients are given.
enum class giving : uint8_t { all_at_once, in_buckets };

/// Applies gradients that are the last of their step.
[[nodiscard]] inline task<void> apply_by(replica_context& context, giving how, optimizer by,
                                         gradient_buckets buckets,
                                         std::vector<gradient_and_variable> gradients) {
  if (how == giving::all_at_once) {
    auto applying = by.apply_gradients(context, std::move(gradients));
    co_await applying;
    co_return;
  }
  auto marker = buckets.begin(context);
  for (const auto& [gradient, of] : gradients)
    marker.ready(of, gradient);
  gradients.clear();
  auto reducing = buckets.reduced(context);
  auto sums = co_await reducing;
  auto applying = by.apply_reduced_gradients(context, std::move(sums));
  co_await applying;
}

/// Trains all but the variable that gets rows of some replicas and arrays of others, which
/// processes cannot add; in buckets, those that get arrays.
[[nodiscard]] inline placed_outcome trained_placed(strategy& in, giving how) {
  const auto all = placed_variables(in);
  std::vector<variable> given{all[0], all[3], all[4]};
  if (how == giving::all_at_once) given.push_back(all[1]);
  const optimizer by{placed_plans()[1], {.aggregation = reduce_op::mean}};
  const gradient_buckets buckets{in, given, 1};
  for (int step = 0; step < 5; ++step)
    in.run([&](replica_context& context) -> task<void> {
      auto computing = compute_placed_gradients(context, all);
      auto gradients = co_await computing;
      std::erase_if(gradients,
                    [&](const auto& one) { return std::ranges::count(given, one.variable) == 0; });
      auto applying = apply_by(context, how, by, buckets, std::move(gradients));
      co_await applying;
    });
  return outcome_of(in, given);
}

/// The sum of 16-bit gradients that replicas leave where they compute: as many as there are, and
/// 2047, though f16 has no such number.
[[nodiscard]] inline float sum_of_narrow_gradients(strategy& of, giving how) {
  auto weights = of.make_variable("w", zeros({1}));
  const optimizer sgd{rules::sgd{.learning_rate = 1}};
  const gradient_buckets buckets{of, {weights}};
  of.run([=](replica_context& context) -> task<void> {
    auto own = context.replica_id_in_sync_group() == 0 ? 2048 : 1;
    auto here = cast(filled(dtype::f32, {1}, own), dtype::f16);
    auto work
      = [here](std::stop_token, compute_stream& on) { return value_or_throw(on.to_device(here)); };
    auto computing = context.compute(std::move(work));
    auto gradient = co_await computing;
    auto applying = apply_by(context, how, sgd, buckets, {{gradient, weights}});
    co_await applying;
  });
  return -of.read(weights).values<float>()[0];
}

/// Training by a gradient that is the variable itself, left where a replica computes.
struct resident_training {
  explicit resident_training(troupe::strategy& of) : strategy(of) {}

  void step(giving how) {
    strategy.run([&, how](replica_context& context) -> task<void> {
      auto reading = context.read_on_device({weights});
      auto values = co_await reading;
      auto work
        = [values](std::stop_token, compute_stream& on) { return value_or_throw(on.sum(values)); };
      auto computing = context.compute(std::move(work));
      auto gradient = co_await computing;
      values.clear();
      auto applying = apply_by(context, how, by, buckets, {{gradient, weights}});
      co_await applying;
    });
  }

  troupe::strategy& strategy;
  variable weights = strategy.make_variable("w", zeros({1000}));
  optimizer by{rules::adam{}};
  gradient_buckets buckets{strategy, {weights}};
};

} // namespace troupe::test
