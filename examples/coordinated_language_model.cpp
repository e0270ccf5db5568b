// SPDX-License-Identifier: Apache-2.0
// A language model, which guesses each byte of a text from the three before, under a coordinator:
// the chief's process schedules steps, and workers make them without waiting for each other.
//
//   coordinated_language_model FILE                                 two workers in one process
//   troupe launch -n 3 --ps 2 -- coordinated_language_model FILE    worker 0 schedules, and works
#include "kernels/tape/tape.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/optimizers/optimizer.hpp"

#include <cstdio>
#include <fstream>
#include <numbers>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

namespace {

constexpr int64_t context_bytes = 3;
constexpr int64_t width = 24; // numbers that stand for a byte
constexpr int64_t hidden = 128;
constexpr size_t batch_size = 64;
constexpr int steps_per_epoch = 300;

struct text_batch {
  tensor before; // [examples, context_bytes] i64
  tensor next;   // [examples] i64
};

// The bytes at some places of a text, and those before each.
text_batch bytes_at(const std::string& text, const std::vector<size_t>& places) {
  auto rows = static_cast<int64_t>(places.size());
  text_batch batch{{dtype::i64, {rows, context_bytes}}, {dtype::i64, {rows}}};
  auto before = batch.before.mutable_values<int64_t>().begin();
  auto next = batch.next.mutable_values<int64_t>().begin();
  for (auto place : places) {
    for (auto at = place - context_bytes; at < place; ++at)
      *before++ = static_cast<unsigned char>(text[at]);
    *next++ = static_cast<unsigned char>(text[place]);
  }
  return batch;
}

expression loss_of(tape& t, std::span<const expression> weights, const text_batch& batch) {
  auto rows = batch.next.extents()[0];
  auto input = t.reshape(t.embedding(weights[0], batch.before), {rows, context_bytes * width});
  auto hidden_layer = t.gelu(t.linear(input, weights[1], weights[2]));
  return t.softmax_cross_entropy(t.matmul(hidden_layer, weights[3]), batch.next);
}

tensor random_values(const shape& extents, const std::string& name) {
  auto values = zeros(extents);
  random_stream numbers{{1, name}};
  for (auto& value : values.mutable_values<float>())
    value = static_cast<float>(0.1 * numbers.normal());
  return values;
}

// The mean loss of a batch, and its gradients.
std::pair<double, std::vector<gradient>> differentiate(const std::vector<tensor>& values,
                                                       const text_batch& batch) {
  tape t;
  std::vector<expression> weights;
  for (const auto& value : values)
    weights.push_back(t.parameter(value));
  auto loss = loss_of(t, weights, batch);
  auto gradients = value_or_throw(t.gradients(loss, weights));
  return {value_or_throw(t.value(loss)).values<float>()[0], std::move(gradients)};
}

int take_part(const std::string& text) {
  auto trained_bytes = text.size() * 9 / 10;
  auto cluster = resolve({}, process_environment());
  auto world = world::threads({.seed = 1});
  server server{world, cluster, {.replicas = cluster.is_alone() ? 2U : 0U}};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  std::vector<variable> weights{
    strategy.make_variable("embedding", random_values({256, width}, "embedding")),
    strategy.make_variable("hidden", random_values({context_bytes * width, hidden}, "hidden")),
    strategy.make_variable("bias", zeros({hidden})),
    strategy.make_variable("output", random_values({hidden, 256}, "output"))};
  optimizer adam{rules::adam{.learning_rate = 0.003}};

  // All processes make the same functions in the same order. A call draws its batch by its number.
  auto warn = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  cluster_coordinator coordinator{strategy, {.on_warning = warn}};
  auto step = coordinator.make_function("step", [=](closure_context& context) -> task<double> {
    auto reading = context.read(weights);
    auto values = co_await reading;
    random_stream numbers{context.random("batch")};
    std::vector<size_t> places;
    for (size_t i = 0; i < batch_size; ++i)
      places.push_back(context_bytes + numbers.below(trained_bytes - context_bytes));
    auto computing = context.compute(
      [=](std::stop_token) { return differentiate(values, bytes_at(text, places)); });
    auto [loss, computed] = co_await computing;
    std::vector<gradient_and_variable> gradients;
    for (size_t i = 0; i < weights.size(); ++i)
      gradients.push_back({computed[i], weights[i]});
    auto applying = adam.apply_gradients(context, std::move(gradients));
    co_await applying;
    co_return loss;
  });
  if (!coordinator.leads()) return coordinator.serve(), 0;

  std::vector<size_t> unseen(text.size() - trained_bytes);
  std::iota(unseen.begin(), unseen.end(), trained_bytes);
  double held_out = 8;
  for (int epoch = 1; epoch <= 4; ++epoch) {
    std::vector<remote_value<double>> losses;
    for (int i = 0; i < steps_per_epoch; ++i)
      losses.push_back(coordinator.schedule(step));
    coordinator.join();
    double loss = 0;
    for (auto nats : coordinator.fetch(losses))
      loss += nats / steps_per_epoch / std::numbers::ln2;
    std::vector<tensor> values;
    for (const auto& variable : weights)
      values.push_back(strategy.read(variable));
    held_out = differentiate(values, bytes_at(text, unseen)).first / std::numbers::ln2;
    std::printf("epoch %d: %.2f bits per byte, %.2f on text held out\n", epoch, loss, held_out);
  }
  std::printf("%u workers in %zu processes\n", coordinator.num_workers(), cluster.tasks.size());
  if (held_out < 4) return 0; // single bytes of English have more
  std::fprintf(stderr, "coordinated_language_model: it has learnt no English from this text\n");
  return 1;
}

} // namespace

int main(int count, char** arguments) {
  std::ostringstream read;
  if (count == 2) read << std::ifstream{arguments[1]}.rdbuf();
  auto text = read.str();
  if (text.size() < 1000) {
    std::fprintf(stderr, "coordinated_language_model FILE: give a text of at least 1000 bytes\n");
    return 2;
  }
  return run_main([&] { return take_part(text); }, "coordinated_language_model");
}
