// SPDX-License-Identifier: Apache-2.0
// The cost of messages: a round trip, a barrier, a whole step, and the memory that a step holds.
//
// A machine that others use too is slow in bursts: so every figure is a median over many
// repetitions, and figures to compare are measured in turns in the same run.
#include "actors/training/token_queue.hpp"
#include "actors/world/ask.hpp"
#include "benchmarks/resident_memory.hpp"
#include "benchmarks/stopwatch.hpp"
#include "messages/training_message.hpp"
#include "strategies/jobs/training.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;

namespace {

// ---- a round trip ----

// The round trip of two threads that wake each other: the machine's own limit.
double thread_round_trip() {
  constexpr int count = 2000;
  std::binary_semaphore there{0};
  std::binary_semaphore back{0};
  std::jthread other{[&] {
    for (int i = 0; i < count; ++i) {
      there.acquire();
      back.release();
    }
  }};
  auto begin = clock_type::now();
  for (int i = 0; i < count; ++i) {
    there.release();
    back.acquire();
  }
  return seconds_since(begin) / count;
}

// Asks an actor again and again from another, under one of CAF's scheduling policies.
double actor_round_trip(const char* policy) {
  constexpr int count = 2000;
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom_from_string(policy));
  caf::actor_system system{config};
  auto queue = system.spawn(token_queue, token_queue_config{sync_policy::latest_token, 0});
  auto status = make_read_queue_status();
  std::promise<double> measured;
  system.spawn([&](caf::event_based_actor* self) {
    auto left = std::make_shared<int>(count);
    auto next = std::make_shared<std::function<void()>>();
    auto begin = clock_type::now();
    *next = [=, &measured] {
      if ((*left)-- == 0) {
        measured.set_value(seconds_since(begin) / count);
        *next = nullptr;
        return;
      }
      self
        ->request(queue, caf::infinite, status) // the queue lives as long as the system
        .then([next](const msg<wire::QueueStatus>&) {
          auto step = *next;
          step();
        });
    };
    auto step = *next;
    step();
  });
  auto result = measured.get_future().get();
  caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
  return result;
}

void measure_round_trips() {
  std::vector<double> threads;
  std::vector<double> sharing;
  std::vector<double> stealing;
  for (int turn = 0; turn < 7; ++turn) {
    threads.push_back(thread_round_trip());
    sharing.push_back(actor_round_trip("sharing"));
    stealing.push_back(actor_round_trip("stealing"));
  }
  std::printf("local round trip            us\n"
              "  two threads, semaphores %6.2f\n"
              "  two actors, sharing     %6.2f   (ours)\n"
              "  two actors, stealing    %6.2f   (CAF's default)\n\n",
              1e6 * median(threads), 1e6 * median(sharing), 1e6 * median(stealing));
}

// ---- barriers and steps ----

enum class work : uint8_t { tokens_only, whole_step };

step_function make_step(const sync_replicas_optimizer& optimizer, const variable& weight,
                        work kind) {
  auto gradient = zeros(weight.extents());
  return [=](replica_context& context) -> task<void> {
    if (kind == work::whole_step) {
      auto reading = context.read(weight);
      auto value = co_await reading;
    }
    auto applying = optimizer.apply_gradients(context, gradient, weight);
    co_await applying;
  };
}

std::vector<double> step_seconds(uint32_t replicas, sync_policy policy, work kind) {
  auto world = world::threads();
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto weight = strategy.make_variable("only", zeros({1}));
  sync_replicas_optimizer optimizer{rules::sgd{}, {replicas, replicas, policy}};
  std::vector<double> times;
  training_options options;
  options.steps = std::max<uint64_t>(100, 40'000 / replicas);
  options.on_step = [&](const step_record& step) {
    times.push_back(std::chrono::duration<double>(step.ended - step.began).count());
  };
  train(strategy, optimizer, make_step(optimizer, weight, kind), options);
  return times;
}

void measure_steps() {
  std::printf("a step of empty replicas          median      p90   tokens/s   steps/s\n");
  for (uint32_t replicas : {4U, 1000U}) {
    for (auto kind : {work::tokens_only, work::whole_step}) {
      for (auto policy : {sync_policy::latest_token, sync_policy::tensorflow}) {
        auto times = step_seconds(replicas, policy, kind);
        std::printf("  %4u replicas, %-10s, %-12s %6.2f ms %6.2f ms %9.0f %9.0f\n", replicas,
                    kind == work::tokens_only ? "push+token" : "whole step",
                    std::string{to_string(policy)}.c_str(), 1e3 * median(times),
                    1e3 * quantile(times, 0.9), replicas / median(times), 1 / median(times));
      }
    }
  }
  std::printf("\n");
}

// ---- memory ----

void reset_resident_max() {
  std::ofstream{"/proc/self/clear_refs"} << 5;
}

void measure_memory(const char* name, const update_rule& rule) {
  constexpr int64_t elements = 25'000'000; // 100 MB
  constexpr uint32_t replicas = 4;
  cpu_pool().trim();
  reset_resident_max();
  auto world = world::threads();
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto large = strategy.make_variable("large", zeros({elements}));
  sync_replicas_optimizer optimizer{rule, {replicas, replicas, sync_policy::latest_token}};
  auto step = [=](replica_context& context) -> task<void> {
    auto computing = context.compute([](std::stop_token) { return zeros({elements}); });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, std::move(gradient), large);
    co_await applying;
  };
  train(strategy, optimizer, step, {.steps = 5});
  auto parameter_megabytes = static_cast<double>(elements) * sizeof(float) / 1e6;
  auto allowed = static_cast<double>(replicas + slot_count(rule) + 2) * parameter_megabytes + 200;
  std::printf("  %-9s %5.0f MB of %5.0f MB allowed, (k + slots + 2) x P + 200 MB\n", name,
              resident_megabytes_max(), allowed);
}

} // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  measure_round_trips();
  measure_steps();
  std::printf("memory of a job with P = 100 MB of parameters and k = 4 gradients\n");
  measure_memory("momentum", rules::momentum{});
  measure_memory("adam", rules::adam{});
}
