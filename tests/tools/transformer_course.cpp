// SPDX-License-Identifier: Apache-2.0
// Trains a small transformer with a replica and Adam, and writes down all that another program
// needs to do the same: transformer_course TEXT FILE.
//
// FILE begins with a line of JSON: extents of the variables, windows, context, heads and steps.
// Then come the variables (f32) and, for each step, the windows, the bytes after each of their
// positions (i64) and the loss (f64).
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"
#include "tools/language/language_model.hpp"

#include <fmt/ranges.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace troupe;

namespace {

constexpr uint64_t course_steps = 50, windows = 4;
const language_model_config model{.kind = model_kind::transformer,
                                  .context = 16,
                                  .hidden_dropout = 0,
                                  .layers = 2,
                                  .heads = 2,
                                  .width = 32};

std::string whole_file(const char* path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

void write_bytes(std::ostream& to, const tensor& values) {
  to.write(static_cast<const char*>(values.data()), static_cast<std::streamsize>(values.bytes()));
}

/// The batch of a step, and its loss.
struct learned_batch {
  text_batch batch;
  double loss = 0;
};

std::vector<learned_batch> learn(const std::vector<initial_variable>& initial,
                                 const std::string& text) {
  std::vector<learned_batch> course;
  auto world = world::virtual_time({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = 1}};
  for (const auto& [name, value] : initial)
    strategy.make_variable(name, value);
  sync_replicas_optimizer optimizer{rules::adam{.learning_rate = 0.001},
                                    {1, 1, sync_policy::latest_token}};
  std::vector<variable> variables{strategy.variables().begin(), strategy.variables().end()};
  auto step = [&](replica_context& context) -> task<void> {
    auto reading = context.read(variables);
    auto values = co_await reading;
    auto batch = draw_batch(model, text, windows, context.random("batch"));
    auto computed = value_or_throw(differentiate(model, values, batch, context.random("dropout")));
    context.report(computed.loss, windows);
    course.push_back({batch, computed.loss});
    std::vector<gradient_and_variable> gradients;
    for (size_t i = 0; i < variables.size(); ++i)
      gradients.push_back({std::move(computed.gradients[i]), variables[i]});
    auto applying = optimizer.apply_gradients(context, std::move(gradients));
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = course_steps});
  if (report.failure) throw failure{*report.failure};
  course.resize(course_steps); // a replica may have begun one more
  return course;
}

} // namespace

int main(int, char** arguments) {
  const auto initial = initial_values(variables_of(model), 1);
  const auto course = learn(initial, whole_file(arguments[1]));
  std::ofstream file{arguments[2], std::ios::binary};
  auto extents
    = mapped(initial, [](const auto& variable) { return variable.value.extents().dims(); });
  file << fmt::format("{{\"extents\": [{}], \"windows\": {}, \"context\": {}, \"heads\": {}, "
                      "\"steps\": {}}}\n",
                      fmt::join(extents, ", "), windows, model.context, model.heads, course_steps);
  for (const auto& variable : initial)
    write_bytes(file, variable.value);
  for (const auto& [batch, loss] : course) {
    write_bytes(file, batch.contexts);
    write_bytes(file, batch.next);
    file.write(reinterpret_cast<const char*>(&loss), sizeof loss);
  }
  return file.flush() ? 0 : 1;
}
