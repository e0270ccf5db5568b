// SPDX-License-Identifier: Apache-2.0
// A search for a learning rate, after population-based training. One process has trainers made in
// all of them, each of which makes some steps with a rate of its own. Then the worst go on from
// where the best are, with rates a little off theirs. Each round takes the answers that come in
// time: a trainer that is late, or gone with its process, is left out.
//
//   troupe launch -n 3 -- population_search
//
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
#include <iterator>
#include <vector>

using namespace troupe;
using population::Attempt;

namespace {

constexpr size_t trainers_of_a_process = 4, rounds = 60;

struct attempt {
  double learning_rate = 0;
  tensor line = zeros({2}); // y = line[0] x + line[1]
  double loss = INFINITY;
};

msg<Attempt> make_attempt(const attempt& attempt) {
  own_message_builder<Attempt> builder;
  builder.body.setLearningRate(attempt.learning_rate);
  builder.body.setLoss(attempt.loss);
  write_tensor(*builder.storage, builder.body.initLine(), attempt.line);
  return std::move(builder).finish();
}

attempt read_attempt(const msg<Attempt>& message) {
  auto body = message.reader();
  return {body.getLearningRate(), read_tensor(body.getLine(), message.owner()), body.getLoss()};
}

using trainer_actor = caf::typed_actor<caf::replies_to<msg<Attempt>>::with<msg<Attempt>>>;

struct trainer_state {
  static inline const char* name = "trainer";
  uint64_t steps = 0;
};

// One step, or none with a rate of 0, on points of y = 3 x + 1. @returns The loss before it.
double step(tensor& line, double rate, const random_key& key) {
  auto numbers = line.mutable_values<float>();
  random_stream points{key};
  double loss = 0, by_slope = 0, by_height = 0;
  for (int i = 0; i < 32; ++i) {
    auto x = points.uniform();
    auto error = numbers[0] * x + numbers[1] - (3 * x + 1);
    loss += error * error / 32;
    by_slope += 2 * error * x / 32;
    by_height += 2 * error / 32;
  }
  numbers[0] -= static_cast<float>(rate * by_slope);
  numbers[1] -= static_cast<float>(rate * by_height);
  return loss;
}

trainer_actor::behavior_type trainer(observed_pointer<trainer_actor, trainer_state> self) {
  return {[self](const msg<Attempt>& message) {
    auto own = read_attempt(message);
    own.line = own.line.clone();
    for (int i = 0; i < 10; ++i)
      step(own.line, own.learning_rate, {1, "points", 0, self->state.steps++});
    own.loss = step(own.line, 0, {1, "held out"});
    return make_attempt(own);
  }};
}

// The worst quarter goes on from the best quarter.
void replace_the_worst(std::vector<attempt>& population, uint64_t round) {
  std::ranges::stable_sort(population, {}, &attempt::loss);
  random_stream draw{{1, "rates", 0, round}};
  for (size_t i = 0; i < population.size() / 4; ++i) {
    auto& worst = population[population.size() - 1 - i];
    worst = population[i];
    worst.learning_rate *= draw.uniform() < 0.5 ? 0.8 : 1.25;
  }
}

void search(world& world, server& server) {
  auto tasks = server.trainers();
  std::vector<attempt> population(tasks.size() * trainers_of_a_process);
  for (size_t i = 0; i < population.size(); ++i) // from 0.0001 to nearly 1
    population[i].learning_rate
      = std::pow(10, 4.0 * static_cast<double>(i) / static_cast<double>(population.size()) - 4);
  auto attempts = [&] {
    std::vector<msg<Attempt>> messages;
    std::ranges::transform(population, std::back_inserter(messages), make_attempt);
    return messages;
  };
  auto trainers
    = value_or_throw(spawn_group<trainer_actor>(world, server, "trainer", tasks, attempts()));
  for (size_t round = 1; round <= rounds; ++round) {
    std::rotate(population.begin(), population.begin() + 1,
                population.end()); // new rates for all trainers in turn
    auto asking = trainers.ask_each<msg<Attempt>>(attempts(), {.limit = std::chrono::seconds{10}});
    auto answers = asking.wait();
    for (size_t i = 0; i < population.size(); ++i) {
      population[i].loss = INFINITY; // for an answer that is lost or late
      if (answers.replies[i]) population[i] = read_attempt(*answers.replies[i]);
    }
    if (answers.counted().empty()) throw failure{answers.why_not_enough()};
    replace_the_worst(population, round);
    const auto& best = population.front();
    std::printf("round %zu: loss %.6f with rate %.4f, of %zu trainers\n", round, best.loss,
                best.learning_rate, answers.counted().size());
  }
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  network_messages known;
  known.add<Attempt>("population.Attempt");
  server server{world, cluster, {.messages = known}};
  auto offered
    = server.offer<Attempt>("trainer", [&](const msg<Attempt>& /*start*/) -> trainer_actor {
        return world.system().spawn(trainer);
      });
  if (server.is_chief()) search(world, server);
  if (auto joined = server.join(); !joined) { // the chief's process does not wait
    std::fprintf(stderr, "%s\n", joined.error().message.c_str());
    return static_cast<int>(exit_code_of_join(joined.error().code));
  }
  return 0;
}

} // namespace

int main() {
  return run_main(take_part);
}
