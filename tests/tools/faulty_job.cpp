// SPDX-License-Identifier: Apache-2.0
// A job in which one process does what it must not: faulty_job STRATEGY STEPS [throws]. With the
// last word the function of this process's replicas throws in its twentieth step. Whatever process
// gets SIGUSR1 ends at once, with exit code 0, as a program does that calls `exit` too early; after
// SIGTERM all end in good order. And an evaluator beside another job, whose function throws:
// faulty_job evaluator FOLDER.
//
// STRATEGY: backup and all train by parameter servers, with one gradient less than there are
// replicas, and with all; meeting by a multi_worker_mirrored_strategy; coordinator by closures.
#include "actors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster_coordinator.hpp"
#include "strategies/exit_codes.hpp"
#include "strategies/mirrored_strategy.hpp"
#include "strategies/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizer.hpp"
#include "strategies/server.hpp"
#include "strategies/sidecar_evaluator.hpp"
#include "strategies/training.hpp"
#include "tools/signal_watch.hpp"

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <unistd.h>

using namespace troupe;

namespace {

/// What this process was told to do.
struct faulty_options {
  std::string strategy;
  uint64_t steps = 0;
  bool throws = false;
  std::stop_token stop;
};

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

int exit_code_for(const std::optional<error>& why) {
  if (!why) return 0;
  say("ended: " + why->message);
  return static_cast<int>(exit_code_of(why->code));
}

// Counts the calls of this process.
auto work_of(const faulty_options& options) {
  return [throws = options.throws, calls = std::make_shared<std::atomic<int>>()](std::stop_token) {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    if (++*calls == 20 && throws) throw std::runtime_error{"the examples are gone"};
    return make_tensor({}, {1.0F});
  };
}

training_options training_of(const faulty_options& options) {
  training_options training{.steps = options.steps, .stop = options.stop};
  training.on_warning = say;
  training.on_step = [](const step_record& record) {
    if (record.step % 50 == 0) say("step " + std::to_string(record.step));
  };
  return training;
}

int train_with_owners(world& world, const resolved_cluster& cluster,
                      const faulty_options& options) {
  server server{world, cluster};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  auto weight = strategy.make_variable("weight", zeros({}));
  auto needed = server.replicas() - (options.strategy == "backup" ? 1 : 0);
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.1},
                                    {needed, server.replicas(), sync_policy::latest_token}};
  auto step = [=, work = work_of(options)](replica_context& context) -> task<void> {
    auto computing = context.compute(work);
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, weight);
    co_await applying;
  };
  return exit_code_for(train(strategy, optimizer, step, training_of(options)).failure);
}

int train_where_replicas_meet(world& world, const resolved_cluster& cluster,
                              const faulty_options& options) {
  server server{world, cluster, {.workers_meet = true}};
  multi_worker_mirrored_strategy strategy{
    world,
    {.devices = cpu_devices(1), .placement = server.placement(), .workers = server.trainers()}};
  auto weight = strategy.make_variable("weight", zeros({}));
  optimizer rule{rules::sgd{.learning_rate = 0.1}};
  auto step = [=, work = work_of(options)](replica_context& context) -> task<void> {
    auto computing = context.compute(work);
    auto gradient = co_await computing;
    std::vector<gradient_and_variable> pairs{{gradient, weight}};
    auto applying = rule.apply_gradients(context, std::move(pairs));
    co_await applying;
  };
  return exit_code_for(train(strategy, step, training_of(options)).failure);
}

int coordinate(world& world, const resolved_cluster& cluster, const faulty_options& options) {
  server server{world, cluster};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  auto counter = strategy.make_variable("counter", zeros({}));
  cluster_coordinator coordinator{strategy, {.on_warning = say}};
  auto step = coordinator.make_function(
    "step", [=, work = work_of(options)](closure_context& context) -> task<int> {
      auto computing = context.compute(work);
      auto one = co_await computing;
      auto adding = context.assign_add(counter, one);
      co_await adding;
      co_return 0;
    });
  if (!coordinator.leads()) {
    coordinator.serve();
    return 0;
  }
  for (uint64_t done = 0; done < options.steps && !options.stop.stop_requested(); done += 50) {
    for (int i = 0; i < 50; ++i)
      static_cast<void>(coordinator.schedule(step));
    coordinator.join();
    say("step " + std::to_string(done + 50));
  }
  return 0;
}

int evaluate(const std::string& folder) {
  auto world = world::threads();
  sidecar_evaluator evaluator{
    world, {.checkpoint_dir = folder, .evaluate = [](const found_checkpoint&) -> double {
              throw std::runtime_error{"the examples are gone"};
            }}};
  return exit_code_for(evaluator.start().failure);
}

int take_part(const faulty_options& options) {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  if (options.strategy == "meeting") return train_where_replicas_meet(world, cluster, options);
  if (options.strategy == "coordinator") return coordinate(world, cluster, options);
  return train_with_owners(world, cluster, options);
}

} // namespace

int main(int count, char** arguments) {
  signal_watch signals;
  signals.on_user_signal([] { _exit(0); });
  try {
    if (count == 3 && arguments[1] == std::string{"evaluator"}) return evaluate(arguments[2]);
    return take_part({count > 1 ? arguments[1] : "all", count > 2 ? std::stoul(arguments[2]) : 100,
                      count > 3 && arguments[3] == std::string{"throws"}, signals.token()});
  } catch (const failure& failed) {
    return exit_code_for(failed.reason());
  }
}
