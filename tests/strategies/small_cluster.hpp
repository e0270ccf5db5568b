// SPDX-License-Identifier: Apache-2.0
// A small job as several processes run it, each played by a thread with a world of its own.
#pragma once

#include "actors/net/cluster_placement.hpp"
#include "kernels/tensor/random.hpp"
#include "strategies/jobs/training.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_network.hpp"
#include "tests/strategies/refusal.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace troupe::test {

/// The outcome of one process of a job.
struct process_outcome {
  job_report report;
  std::optional<error> thrown;           ///< The error that `train`, or the code before it, threw.
  std::map<std::string, numbers> values; ///< Where the chief stands: variables and slots.
  std::vector<step_record> steps;
};

/// The settings of a job that differ between processes or tests.
struct cluster_job {
  cluster_layout layout;
  uint32_t aggregate = 0; ///< 0: all replicas.
  uint64_t steps = 12;
  bool has_sockets = false;  ///< Else parcels are handed over.
  bool has_placement = true; ///< Else it is a job that knows of no cluster.
  uint32_t replicate_owners = 1;
  uint32_t trainings = 1; ///< Calls of `train`, one after the other.
  job_time start_deadline = std::chrono::seconds{20};
  std::set<node_index> missing; ///< Processes that are never started.
  /// Changes what a process is started with.
  std::function<void(node_index, training_options&)> prepare = [](node_index, training_options&) {};
  /// Called by each process with its strategy, before it trains.
  std::function<void(node_index, strategy&)> begin = [](node_index, strategy&) {};
  /// Called by a replica at the beginning of each of its steps.
  std::function<task<void>(replica_context&)> step
    = [](replica_context&) -> task<void> { co_return; };
  std::function<uint64_t(node_index)> seed = [](node_index) { return 5; };
};

/// Runs all processes of a job, and waits for their ends.
class small_cluster {
public:
  explicit small_cluster(cluster_job job)
    : job_(std::move(job)), played_(job_.layout, job_.has_sockets), network(played_.direct) {}

  std::map<node_index, process_outcome> run() {
    std::map<node_index, process_outcome> outcomes;
    for (node_index node = 0; node < job_.layout.node_count(); ++node)
      if (!job_.missing.contains(node)) outcomes[node];
    std::vector<std::thread> processes;
    for (auto& [node, outcome] : outcomes)
      processes.push_back(start(node, outcome));
    for (auto& process : processes)
      process.join();
    if (second_life_.joinable()) second_life_.join();
    return outcomes;
  }

  /// Starts one process again, after its node is lost.
  void start_again(node_index node) {
    second_life_ = std::thread{[this, node] {
      start(node, returned).join();
      has_returned = true;
    }};
  }

  process_outcome returned; ///< The outcome of the process that was started again.
  std::atomic<bool> has_returned = false;

private:
  std::thread start(node_index node, process_outcome& outcome) {
    return std::thread{[this, node, &outcome] {
      try {
        run_process(node, outcome);
      } catch (const failure& failed) {
        outcome.thrown = failed.reason();
      }
    }};
  }

  void run_process(node_index node, process_outcome& outcome) {
    auto world = world::threads({.seed = job_.seed(node), .threads = 1});
    auto membership = played_.join(world.system(), node);
    cluster_placement placement{job_.layout, *membership, job_.start_deadline};
    parameter_server_strategy strategy{world,
                                       {.replicas = job_.layout.replica_count(),
                                        .placement = job_.has_placement ? &placement : nullptr,
                                        .replicate_owners = job_.replicate_owners}};
    for (int i = 0; i < 5; ++i)
      strategy.make_variable(fmt::format("w{}", i),
                             array({3 + i, 7}, numbers(static_cast<size_t>(7 * (3 + i)), 0.1 * i)));
    std::vector<variable> variables{strategy.variables().begin(), strategy.variables().end()};
    job_.begin(node, strategy);
    auto replicas = job_.layout.replica_count();
    sync_replicas_optimizer optimizer{
      rules::momentum{.learning_rate = 0.1},
      {job_.aggregate == 0 ? replicas : job_.aggregate, replicas, sync_policy::latest_token}};
    training_options options;
    options.steps = job_.steps;
    options.variables = variables;
    std::mutex mutex;
    options.on_step = [&](const step_record& record) {
      std::lock_guard guard{mutex};
      outcome.steps.push_back(record);
    };
    job_.prepare(node, options);
    for (uint32_t i = 0; i < job_.trainings; ++i)
      outcome.report
        = train(strategy, optimizer, step_of(optimizer, variables, job_.step), options);
    if (!placement.leads() || outcome.report.failure || outcome.report.step == 0) return;
    for (const auto& variable : strategy.variables())
      outcome.values[variable.name()] = numbers_of(strategy.read(variable));
    for (const auto& [name, slot] : optimizer.variables(strategy))
      outcome.values[name] = numbers_of(slot);
  }

  // Gradients depend on variables, replica and iteration, and on what a replica has kept.
  static step_function step_of(const sync_replicas_optimizer& optimizer,
                               const std::vector<variable>& variables,
                               const std::function<task<void>(replica_context&)>& beside) {
    return [=](replica_context& context) -> task<void> {
      auto doing = beside(context);
      co_await doing;
      auto reading = context.read(variables);
      auto values = co_await reading;
      auto kept = context.kept("drawn");
      auto drawn = kept ? kept->values<float>()[0] : 0.0F;
      context.keep("drawn", scalar(drawn + 1));
      auto key = context.random("gradient");
      auto computing = context.compute([=](std::stop_token) {
        random_stream noise{key};
        std::vector<gradient_and_variable> gradients;
        for (size_t i = 0; i < values.size(); ++i) {
          auto result = zeros(values[i].extents());
          auto from = values[i].values<float>();
          auto to = result.mutable_values<float>();
          for (size_t j = 0; j < to.size(); ++j)
            to[j] = from[j] + static_cast<float>(noise.uniform()) + 0.01F * drawn;
          gradients.push_back({std::move(result), variables[i]});
        }
        return gradients;
      });
      auto gradients = co_await computing;
      auto applying = optimizer.apply_gradients(context, std::move(gradients));
      co_await applying;
    };
  }

  cluster_job job_;
  played_network played_;
  std::thread second_life_;

public:
  direct_network& network;
};

} // namespace troupe::test
