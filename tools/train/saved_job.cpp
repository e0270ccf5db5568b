// SPDX-License-Identifier: Apache-2.0
// Finding a run's newest checkpoint, and judging whether it is of this job.
#include "tools/train/saved_job.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "messages/failure.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tools/run/run_directory.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace troupe {

namespace {

// What a checkpoint says of the text that it was trained on.
constexpr const char* text_note = "troupe.text";

// Whether what the options ask for is what is in the checkpoint.
expected<void> check_saved(const train_options& options, const job_snapshot& saved) {
  if (saved.seed != options.seed)
    return fail(
      errc::failed_precondition,
      fmt::format("--resume {}: its checkpoints are of seed {}, not {}; leave --seed as it was",
                  options.resume, saved.seed, options.seed));
  for (const auto& [name, value] : initial_variables(options.model, options.seed)) {
    auto found = std::ranges::find(saved.variables, name, &variable_snapshot::name);
    auto extents = found == saved.variables.end() ? shape{} : found->state.value.extents();
    if (extents != value.extents())
      return fail(
        errc::failed_precondition,
        fmt::format("--resume {}: variable '{}' was saved with shape {}, but this model's "
                    "has {}; leave the model's options as they were",
                    options.resume, name, to_string(extents), to_string(value.extents())));
    if (found->state.optimizer != options.optimizer)
      return fail(
        errc::failed_precondition,
        fmt::format("--resume {}: its checkpoints were made with the optimizer {}, not {}",
                    options.resume, found->state.optimizer, options.optimizer));
  }
  return {};
}

} // namespace

std::string fingerprint(const text_corpus& corpus) {
  auto bytes = std::as_bytes(std::span{corpus.whole()});
  return fmt::format("{} bytes, crc32c {:08x}", bytes.size(), cpu::crc32c(bytes));
}

std::map<std::string, std::string> notes_of(const text_corpus& corpus) {
  return {{text_note, fingerprint(corpus)}};
}

expected<std::vector<tensor>> model_in(const found_checkpoint& found, const train_options& options,
                                       const text_corpus& corpus) {
  auto text = found.notes.find(text_note);
  if (text == found.notes.end() || text->second != fingerprint(corpus))
    return fail(
      errc::failed_precondition,
      fmt::format("the run trains on another text than {}; give all tasks the same --text",
                  options.text));
  std::vector<tensor> values;
  for (const auto& [name, initial] : initial_variables(options.model, options.seed)) {
    auto saved = std::ranges::find(found.snapshot.variables, name, &variable_snapshot::name);
    auto is_there = saved != found.snapshot.variables.end();
    if (!is_there || saved->state.value.extents() != initial.extents())
      return fail(errc::failed_precondition,
                  fmt::format("variable '{}' has shape {} here, but {} in the checkpoint; give all "
                              "tasks the same options of the model",
                              name, to_string(initial.extents()),
                              is_there ? to_string(saved->state.value.extents()) : "is not"));
    values.push_back(saved->state.value);
  }
  return values;
}

expected<std::optional<job_snapshot>> find_resumed(const train_options& options,
                                                   const text_corpus& corpus, uint64_t steps) {
  if (options.resume.empty()) return std::nullopt;
  auto folder = std::filesystem::path{options.resume} / run_directory::checkpoint_folder;
  if (!std::filesystem::is_directory(folder))
    return fail(errc::not_found,
                fmt::format("--resume {}: no checkpoints are there", options.resume));
  try {
    auto warn = [](const std::string& line) { fmt::print(stderr, "troupe train: {}\n", line); };
    auto found = find_checkpoint(folder, warn);
    if (!found)
      return fail(errc::not_found, fmt::format("--resume {}: no whole checkpoint is in {}",
                                               options.resume, folder.string()));
    if (found->notes[text_note] != fingerprint(corpus))
      return fail(errc::failed_precondition,
                  fmt::format("--resume {}: that run trained on another text than {}",
                              options.resume, options.text));
    if (found->snapshot.step >= steps)
      return fail(errc::invalid_argument,
                  fmt::format("--resume {}: that run has made all its {} steps; ask for more with "
                              "--steps",
                              options.resume, found->snapshot.step));
    return check_saved(options, found->snapshot).map([&] {
      return std::optional{std::move(found->snapshot)};
    });
  } catch (const failure& failed) {
    return tl::unexpected<error>(failed.reason());
  }
}

} // namespace troupe
