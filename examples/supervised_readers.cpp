// SPDX-License-Identifier: Apache-2.0
// Readers that fail and are restarted: replicas get their batches from actors that read records,
// and some records are broken. A supervisor restarts a reader that has failed, behind the broken
// record; until it is back, the answer of the other reader is enough.
#include "actors/groups/group.hpp"
#include "actors/observing/observed.hpp"
#include "actors/supervision/supervisor.hpp"
#include "kernels/tensor/random.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>

using namespace troupe;

namespace {

constexpr uint32_t replicas = 3;
constexpr uint64_t steps = 300;

// ---- messages within the process: plain structs ----

struct next_batch {
  uint32_t examples = 0;
};

struct batch {
  std::vector<float> places;
  std::vector<float> heights;
};

} // namespace

TROUPE_LOCAL_MESSAGE(next_batch)
TROUPE_LOCAL_MESSAGE(batch)

namespace {

// ---- a reader ----

using reader_actor = caf::typed_actor<caf::replies_to<next_batch>::with<batch>>;

struct reader_state {
  static inline const char* name = "reader";
  uint64_t record = 0;
};

// The record of that number: a point of y = 3 x + 1. Every 5,000th is broken.
std::pair<float, float> read_record(uint64_t number) {
  if (number % 5000 == 4999)
    throw std::runtime_error{"record " + std::to_string(number) + " is broken"};
  random_stream draw{random_key{1, "record", 0, number}};
  auto place = static_cast<float>(draw.uniform());
  return {place, 3 * place + 1};
}

reader_actor::behavior_type reader(observed_pointer<reader_actor, reader_state> self,
                                   const child_start& start, uint64_t first) {
  auto kept = start.state->kept();
  self->state.record = kept.has_value() ? std::any_cast<uint64_t>(kept) : first;
  return {[self, position = start.state](const next_batch& request) {
    batch result;
    for (uint32_t i = 0; i < request.examples; ++i) {
      auto number = self->state.record++;
      position->keep(self->state.record); // where the next reader goes on, should this one fail
      auto [place, height] = read_record(number);
      result.places.push_back(place);
      result.heights.push_back(height);
    }
    return result;
  }};
}

// ---- the trainer ----

// The gradient of the mean of (a x + b - y)^2.
tensor gradient_of(const tensor& line, const batch& examples) {
  auto a = line.values<float>()[0];
  auto b = line.values<float>()[1];
  auto count = static_cast<float>(examples.places.size());
  float by_a = 0;
  float by_b = 0;
  for (size_t i = 0; i < examples.places.size(); ++i) {
    auto error = a * examples.places[i] + b - examples.heights[i];
    by_a += 2 * error * examples.places[i] / count;
    by_b += 2 * error / count;
  }
  return make_tensor({2}, {by_a, by_b});
}

// The first answer of either reader. Both may have failed at once: then it asks again in a moment.
task<batch> read_batch(replica_context& context, group<reader_actor> readers) {
  for (;;) {
    auto asking = readers.ask<batch>(next_batch{32}, {.first = 1});
    auto answering = asking.by(context);
    auto answers = co_await answering;
    if (answers.is_enough()) co_return answers.counted().front();
    auto waiting = context.compute([](std::stop_token) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      return true;
    });
    co_await waiting;
  }
}

} // namespace

int main() {
  std::atomic<int> restarts = 0; // outlives the world: its actors count here
  auto world = world::threads({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto line = strategy.make_variable("line", zeros({2}));
  sync_replicas_optimizer optimizer{
    rules::momentum{.learning_rate = 0.1},
    {.replicas_to_aggregate = replicas, .policy = sync_policy::latest_token}};

  restart_options restart{.restarts = 1000};
  restart.backoff = restart.backoff_max = std::chrono::milliseconds{1};
  auto on_warning = [&](const std::string&) { ++restarts; };
  supervisor boss{world, "readers", {.restart = restart, .on_warning = on_warning}};
  std::vector<reader_actor> members;
  for (uint64_t i = 0; i < 2; ++i)
    members.push_back(
      boss.add<reader_actor>("reader " + std::to_string(i), [&world, i](const child_start& start) {
        return world.system().spawn(reader, start, 2500 * i); // they do not fail at once
      }));
  group readers{world, "reader", members};

  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(line);
    auto value = co_await reading;
    auto asking = read_batch(context, readers);
    auto examples = co_await asking;
    auto computing = context.compute([=](std::stop_token) { return gradient_of(value, examples); });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, line);
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = steps});
  if (report.failure) return static_cast<int>(exit_code_of(report));

  auto trained = strategy.read(line);
  std::printf("after %lu steps: y = %.3f x + %.3f; readers began anew %d times\n",
              static_cast<unsigned long>(report.step), trained.values<float>()[0],
              trained.values<float>()[1], restarts.load());
}
