// SPDX-License-Identifier: Apache-2.0
// Compares checkpoints with the model, the data and the options of a job.
#include "tools/train/saved_job.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

// Whether a checkpoint is of these data.
bool is_of(const found_checkpoint& found, const learned_data& data) {
  auto note = found.notes.find(data.note);
  return note != found.notes.end() && note->second == data.fingerprint;
}

// The names of a checkpoint's notes that describe its model, and the part of the data that is
// trained on. Checkpoints of earlier versions have no such part.
constexpr const char* model_note = "troupe.model";
constexpr const char* split_note = "troupe.split";

constexpr const char* leave_options = "leave the model's options as they were; if you gave none, "
                                      "the config.toml of that run is damaged";

// The text of a checkpoint's note, if it has the note and another text than this one.
std::optional<std::string> other_note(const found_checkpoint& found, const char* name,
                                      const std::string& here) {
  auto note = found.notes.find(name);
  if (note == found.notes.end() || note->second == here) return std::nullopt;
  return note->second;
}

// The model that a checkpoint names, if that is another one.
std::optional<std::string> other_model(const found_checkpoint& found, const learned_model& model) {
  return other_note(found, model_note, model.description);
}

// Evaluation on text that was trained on would be too good. @param mend Ends the line.
expected<void> check_split(const found_checkpoint& found, const learned_data& data,
                           const char* mend) {
  auto other = other_note(found, split_note, data.split);
  if (!other) return {};
  return fail(errc::failed_precondition,
              fmt::format("that run trains on {} of the {}, not on {}; {}", *other, data.kind,
                          data.split, mend));
}

// The saved state of a model's variable; null if it was saved with another shape or element type,
// or not at all.
const variable_snapshot* saved_variable(const job_snapshot& saved, const model_variable& variable) {
  auto found = std::ranges::find(saved.variables, variable.name, &variable_snapshot::name);
  if (found == saved.variables.end()) return nullptr;
  const auto& value = found->state.value;
  return value.type() == dtype::f32 && value.extents() == variable.extents ? &*found : nullptr;
}

// "shape [2, 3] of f32, but [3] of f64 in the checkpoint".
std::string difference(const job_snapshot& saved, const model_variable& variable) {
  auto found = std::ranges::find(saved.variables, variable.name, &variable_snapshot::name);
  auto there = found == saved.variables.end()
                 ? "is not"
                 : fmt::format("{} of {}", to_string(found->state.value.extents()),
                               to_string(found->state.value.type()));
  return fmt::format("shape {} of {} here, but {} in the checkpoint", to_string(variable.extents),
                     to_string(dtype::f32), there);
}

// Whether a checkpoint has the seed, the variables and the optimizer that the options ask for.
expected<void> check_saved(const train_options& options, const learned_model& model,
                           const job_snapshot& saved) {
  if (saved.seed != options.seed)
    return fail(errc::failed_precondition,
                fmt::format("its checkpoints are of seed {}, not {}; leave --seed as it was",
                            saved.seed, options.seed));
  for (const auto& variable : model.variables) {
    const auto* found = saved_variable(saved, variable);
    if (found == nullptr)
      return fail(errc::failed_precondition,
                  fmt::format("variable '{}' has {}; {}", variable.name,
                              difference(saved, variable), leave_options));
    if (found->state.optimizer != options.optimizer)
      return fail(errc::failed_precondition,
                  fmt::format("its checkpoints were made with the optimizer {}, not {}",
                              found->state.optimizer, options.optimizer));
  }
  return {};
}

} // namespace

std::map<std::string, std::string> notes_of(const learning_problem& problem) {
  std::map<std::string, std::string> notes{{problem.data.note, problem.data.fingerprint},
                                           {model_note, problem.model.description}};
  if (!problem.data.split.empty()) notes.emplace(split_note, problem.data.split);
  return notes;
}

expected<std::vector<tensor>> model_in(const found_checkpoint& found, const learned_model& model,
                                       std::string_view mend) {
  if (auto other = other_model(found, model))
    return fail(errc::failed_precondition, fmt::format("the checkpoint is of a {}, not of a {}; {}",
                                                       *other, model.description, mend));
  std::vector<tensor> values;
  for (const auto& variable : model.variables) {
    const auto* saved = saved_variable(found.snapshot, variable);
    if (saved == nullptr)
      return fail(errc::failed_precondition,
                  fmt::format("variable '{}' has {}; {}", variable.name,
                              difference(found.snapshot, variable), mend));
    values.push_back(saved->state.value);
  }
  return values;
}

expected<void> can_evaluate(const found_checkpoint& found, const learning_problem& problem) {
  const auto& data = problem.data;
  if (!is_of(found, data))
    return fail(errc::failed_precondition,
                fmt::format("the run trains on another {} than {}; give all tasks the same {}",
                            data.kind, data.place, data.option));
  if (auto same = check_split(found, data, "give all tasks the same --held-out"); !same)
    return same;
  return model_in(found, problem.model, "give all tasks the same options of the model")
    .map([](const auto&) {});
}

expected<void> can_resume(const found_checkpoint& found, const train_options& options,
                          const learning_problem& problem) {
  if (!found.notes.contains(problem.data.note))
    return fail(
      errc::failed_precondition,
      fmt::format("that run trained on no {}; leave --learn as it was", problem.data.kind));
  if (!is_of(found, problem.data))
    return fail(errc::failed_precondition, fmt::format("that run trained on another {} than {}",
                                                       problem.data.kind, problem.data.place));
  if (auto same = check_split(found, problem.data, "leave --held-out as it was"); !same)
    return same;
  if (auto other = other_model(found, problem.model))
    return fail(errc::failed_precondition, fmt::format("that run trains a {}, not a {}; {}", *other,
                                                       problem.model.description, leave_options));
  return check_saved(options, problem.model, found.snapshot);
}

} // namespace troupe
