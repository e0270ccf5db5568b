// SPDX-License-Identifier: Apache-2.0
// A job in which one process is faulty: faulty_job STRATEGY STEPS [throws] [HOLDERS].
// Where it throws, the function of this process's replicas does so in its twentieth step. Whatever
// process gets SIGUSR1 ends at once, with exit code 0, as a program does that calls `exit` too
// early; after SIGTERM all end in good order. And an evaluator beside another job; its function
// throws, too, if it is to: faulty_job evaluator FOLDER [throws].
//
// STRATEGY: backup and all train by parameter servers, with one gradient less than there are
// replicas, and with all; meeting by a multi_worker_mirrored_strategy; coordinator by closures.
// HOLDERS: how many parameter servers hold each variable, 1 or 2.
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/sidecar_evaluator.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tools/system/signal_watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace troupe;

namespace {

/// The arguments of this process, and its stop token.
struct faulty_options {
  std::string strategy;
  uint64_t steps = 0;
  bool throws = false;
  uint32_t holders = 1;
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

parameter_server_options served_by(server& server, const faulty_options& options) {
  return {.replicas = server.replicas(),
          .placement = server.placement(),
          .replicate_owners = options.holders};
}

int train_with_owners(world& world, const resolved_cluster& cluster,
                      const faulty_options& options) {
  server server{world, cluster, {.replicate_owners = options.holders}};
  parameter_server_strategy strategy{world, served_by(server, options)};
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
  server server{world, cluster, {.replicate_owners = options.holders}};
  parameter_server_strategy strategy{world, served_by(server, options)};
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

int evaluate(const std::string& folder, bool throws) {
  auto world = world::threads();
  sidecar_evaluator evaluator{
    world,
    {.checkpoint_dir = folder, .evaluate = [throws](const found_checkpoint& found) -> double {
       if (throws) throw std::runtime_error{"the examples are gone"};
       say("evaluated " + std::to_string(found.snapshot.step));
       return 0;
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
  std::vector<std::string> words{arguments + 1, arguments + count};
  auto throws = std::ranges::count(words, "throws") > 0;
  uint32_t holders = words.size() > 2 && words.back() == "2" ? 2 : 1;
  try {
    if (words.at(0) == "evaluator") return evaluate(words.at(1), throws);
    return take_part({words.at(0), std::stoul(words.at(1)), throws, holders, signals.token()});
  } catch (const failure& failed) {
    return exit_code_for(failed.reason());
  }
}
