// SPDX-License-Identifier: Apache-2.0
// Makes a job that trains the model of the options on their data.
#include "tools/train/command.hpp"

#include "messages/errors/failure.hpp"
#include "tools/job/job.hpp"
#include "tools/job/job_request.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/train/checks.hpp"
#include "tools/train/command_line.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/plan.hpp"
#include "tools/train/saved_job.hpp"

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace troupe {

namespace {

std::string announcement_of(const train_options& options, const learning_problem& problem) {
  auto lines = fmt::format("{:<9} {}: {}\n"
                           "model     {}: {} parameters\n",
                           problem.data.kind, problem.data.place, problem.data.sizes,
                           problem.model.description, element_count(problem.model.variables));
  if (options.precision != product_precision::full)
    lines += fmt::format("precision {}: operands of matrix products are rounded to it, sums and "
                         "variables are f32\n",
                         to_string(options.precision));
  return lines;
}

// The parts of a job that depend on the problem. @param options, problem Outlive the job.
job_subject subject_of(const train_options& options, const learning_problem& problem) {
  return {.announcement = announcement_of(options, problem),
          .steps = step_count(options, problem),
          .measure = problem.measure,
          .evaluate = problem.evaluate,
          .notes = notes_of(problem),
          .can_resume
          = [&](const found_checkpoint& found) { return can_resume(found, options, problem); },
          .can_evaluate
          = [&](const found_checkpoint& found) { return can_evaluate(found, problem); },
          .agreement = fmt::format("a {} of {}", problem.data.kind, problem.data.fingerprint),
          .own_options = {"text", "data"}};
}

void train_model(job& job, const train_options& options, const learning_problem& problem) {
  std::vector<variable> variables;
  for (const auto& [name, value] : initial_values(problem.model.variables, options.seed))
    variables.push_back(job.strategy().make_variable(name, value));
  const auto plan = value_or_throw(plan_of(options, step_count(options, problem)));
  const auto optimizer = job.optimizer(plan, options.clip_global_norm);
  job.train(optimizer, training_step(problem.work, static_cast<uint32_t>(options.batch), optimizer,
                                     variables, options.precision));
}

} // namespace

int train_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_train_options(argument_count, arguments);
  if (auto code = answered("troupe train", command)) return *code;
  auto& options = command->options;
  command_options described;
  add_options(described, options);
  job job{job_request{.program = "troupe train",
                      .command = *command,
                      .options = options,
                      .described = described,
                      .config = [&] { return config_text(options, command->origins, false); }}};
  if (auto found = job.find_cluster(); !found) return refuse("troupe train", found.error());
  auto problem = load_problem(options, command->origins);
  if (!problem) return refuse("troupe train", problem.error());
  auto subject = subject_of(options, *problem);
  if (auto fits = check_warm_up(options, command->origins, subject.steps); !fits)
    return refuse("troupe train", fits.error());
  if (job.is_chief()) {
    auto simple_methods = problem->compare();
    if (!simple_methods) return refuse("troupe train", simple_methods.error());
    subject.others = std::move(simple_methods->lines);
    subject.baselines = std::move(simple_methods->baselines);
  }
  job.describe(std::move(subject));
  return job.run([&] { train_model(job, options, *problem); });
}

} // namespace troupe
