// SPDX-License-Identifier: Apache-2.0
// A search for a learning rate, after population-based training: every process has trainers that
// make some steps each with a rate of its own. Then the worst of them go on from where the best
// are, with rates a little off theirs. Each round takes the answers that come in time: a trainer
// that is late, or gone with its process, is left out.
//
//   troupe launch -n 3 -- population_search
//   TF_CONFIG='{"cluster": {...}, "task": {...}}' population_search     once for each task
// Source: Jaderberg et al., "Population based training of neural networks", 2017.
#include "actors/net/network_messages.hpp"
#include "actors/observing/observed.hpp"
#include "examples/population.capnp.h"
#include "kernels/tensor/random.hpp"
#include "messages/own_message.hpp"
#include "messages/tensor_message.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server_groups.hpp"
#include "strategies/jobs/exit_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace troupe;

namespace {

constexpr size_t trainers_of_a_process = 4;
constexpr int rounds = 60;

struct attempt {
  double learning_rate = 0;
  tensor line = zeros({2}); // y = line[0] x + line[1]
  double loss = INFINITY;
};

msg<population::Attempt> make_attempt(const attempt& one) {
  own_message_builder<population::Attempt> made;
  made.body.setLearningRate(one.learning_rate);
  made.body.setLoss(one.loss);
  write_tensor(*made.storage, made.body.initLine(), one.line);
  return std::move(made).finish();
}

attempt read_attempt(const msg<population::Attempt>& said) {
  auto body = said.reader();
  return {body.getLearningRate(), read_tensor(body.getLine(), said.owner()), body.getLoss()};
}

// ---- a trainer ----

using trainer_actor
  = caf::typed_actor<caf::replies_to<msg<population::Attempt>>::with<msg<population::Attempt>>>;

struct trainer_state {
  static inline const char* name = "trainer";
  uint64_t steps = 0;
};

// One step, or none with a rate of 0, on points of y = 3 x + 1. @returns The loss before it.
double step(tensor& line, double rate, const random_key& key) {
  auto numbers = line.mutable_values<float>();
  random_stream points{key};
  double loss = 0;
  double gradient[2] = {0, 0};
  for (int i = 0; i < 32; ++i) {
    auto x = points.uniform();
    auto error = numbers[0] * x + numbers[1] - (3 * x + 1);
    loss += error * error / 32;
    gradient[0] += 2 * error * x / 32;
    gradient[1] += 2 * error / 32;
  }
  for (size_t i = 0; i < 2; ++i)
    numbers[i] -= static_cast<float>(rate * gradient[i]);
  return loss;
}

trainer_actor::behavior_type trainer(observed_pointer<trainer_actor, trainer_state> self,
                                     uint32_t index) {
  return {[self, index](const msg<population::Attempt>& told) {
    auto made = read_attempt(told);
    made.line = made.line.clone();
    for (int i = 0; i < 10; ++i)
      step(made.line, made.learning_rate, {1, "points", index, self->state.steps++});
    made.loss = step(made.line, 0, {1, "held out"});
    return make_attempt(made);
  }};
}

// ---- the process that searches ----

// The worst quarter goes on from the best quarter.
void replace_the_worst(std::vector<attempt>& population, uint64_t round) {
  std::ranges::stable_sort(population, {}, &attempt::loss);
  auto quarter = population.size() / 4;
  random_stream draw{{1, "rates", 0, round}};
  for (size_t i = 0; i < quarter; ++i) {
    auto& worst = population[population.size() - 1 - i];
    worst = population[i];
    worst.learning_rate *= draw.uniform() < 0.5 ? 0.8 : 1.25;
  }
}

void search(world& world, server& server) {
  auto trainers = value_or_throw(
    find_group<trainer_actor>(world, server, "trainer", server.trainers(), trainers_of_a_process));
  std::vector<attempt> population(trainers.size());
  for (size_t i = 0; i < population.size(); ++i) // from 0.0001 to nearly 1
    population[i].learning_rate
      = std::pow(10, 4.0 * static_cast<double>(i) / static_cast<double>(population.size()) - 4);
  for (int round = 1; round <= rounds; ++round) {
    std::vector<msg<population::Attempt>> told;
    for (const auto& one : population)
      told.push_back(make_attempt(one));
    auto asking = trainers.ask_each<msg<population::Attempt>>(std::move(told),
                                                              {.limit = std::chrono::seconds{10}});
    auto answers = asking.wait();
    for (size_t i = 0; i < population.size(); ++i) {
      population[i].loss = INFINITY; // nothing is known of what was lost or late
      if (answers.replies[i]) population[i] = read_attempt(*answers.replies[i]);
    }
    if (answers.counted().empty()) throw failure{answers.why_not_enough()};
    replace_the_worst(population, static_cast<uint64_t>(round));
    const auto& best = population.front();
    std::printf("round %d: loss %.6f with rate %.4f, of %zu trainers\n", round, best.loss,
                best.learning_rate, answers.counted().size());
  }
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  network_messages known;
  known.add<population::Attempt>("population.Attempt");
  server server{world, cluster, {.messages = known}};
  std::vector<trainer_actor> own;
  for (uint32_t i = 0; i < trainers_of_a_process; ++i)
    own.push_back(world.system().spawn(trainer, server.task().index * 100 + i));
  group here{world, "trainer", own};
  std::shared_ptr<void> end{nullptr, [&](void*) { here.end(); }}; // the world waits for them
  publish_members(server, "trainer", own);
  if (server.is_chief())
    search(world, server);
  else
    value_or_throw(server.join());
  return 0;
}

} // namespace

int main() {
  try {
    return take_part();
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return static_cast<int>(exit_code_of(failed.reason().code));
  }
}
