// SPDX-License-Identifier: Apache-2.0
// Finding, choosing and removing checkpoint files.
#include "actors/checkpoint/checkpoint_directory.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/system_reason.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "checkpoint-";
constexpr std::string_view suffix = ".safetensors";

std::string name_of(uint64_t step) {
  return fmt::format("{}{}{}", prefix, step, suffix);
}

// The step of a file named as by `name_of`, without leading zeros or signs; nothing for others.
std::optional<uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
  uint64_t step = 0;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
  if (name != name_of(step)) return {};
  return step;
}

bool is_leftover(std::string_view name) {
  constexpr std::string_view ending = ".partial";
  return name.starts_with('.') && name.ends_with(ending)
         && step_of(name.substr(1, name.size() - 1 - ending.size()));
}

tl::unexpected<error> system_failure(std::string_view action, const fs::path& path,
                                     const std::error_code& problem) {
  return fail(errc::resource, fmt::format("cannot {} {}: {}", action, path.native(),
                                          system_reason(problem.value())));
}

// Whether a checkpoint holds nothing to go on with. Any other error leaves that open: the disk, a
// permission or a limit kept it from being read.
bool is_damaged_or_gone(const error& reason) {
  return reason.code == errc::malformed || reason.code == errc::not_found;
}

expected<std::vector<std::string>> names_in(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code problem;
  auto entry = fs::directory_iterator{path, problem};
  for (; !problem && entry != fs::directory_iterator{}; entry.increment(problem))
    names.push_back(entry->path().filename().native());
  if (problem) return system_failure("read", path, problem);
  return names;
}

} // namespace

expected<checkpoint_directory> checkpoint_directory::open(fs::path path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (problem) return system_failure("make", path, problem);
    return fail(errc::failed_precondition, path.native() + " is not a folder");
  }
  auto names = names_in(path);
  if (!names) return tl::unexpected(names.error());
  for (const auto& name : *names) {
    if (!is_leftover(name)) continue;
    fs::remove(path / name, problem);
    if (problem) return system_failure("remove", path / name, problem);
  }
  return checkpoint_directory{std::move(path)};
}

checkpoint_directory checkpoint_directory::look_at(fs::path path) {
  return checkpoint_directory{std::move(path)};
}

fs::path checkpoint_directory::path_of(uint64_t step) const {
  return path_ / name_of(step);
}

expected<bool> checkpoint_directory::is_there() const {
  std::error_code problem;
  if (fs::exists(fs::status(path_, problem))) return true;
  if (problem == std::errc::no_such_file_or_directory) return false;
  return system_failure("look at", path_, problem);
}

expected<std::vector<uint64_t>> checkpoint_directory::steps() const {
  auto names = names_in(path_);
  if (!names) return tl::unexpected(names.error());
  std::vector<uint64_t> steps;
  for (const auto& name : *names)
    if (auto step = step_of(name)) steps.push_back(*step);
  std::ranges::sort(steps);
  return steps;
}

expected<void> checkpoint_directory::write(uint64_t step, std::span<const named_tensor> tensors,
                                           const safetensors_metadata& metadata) {
  auto done = write_safetensors(path_of(step), tensors, metadata);
  if (done) written_.insert(step);
  return done;
}

expected<checkpoint> checkpoint_directory::read(uint64_t step) const {
  const auto path = path_of(step);
  auto content = read_safetensors(path);
  if (!content) return tl::unexpected<error>(content.error());
  if (!content->has_checksum)
    return fail(errc::malformed, path.native() + ": it has no checksum of ours");
  return checkpoint{step, std::move(*content)};
}

expected<newest_checkpoint> checkpoint_directory::newest_valid(std::optional<uint64_t> end) const {
  auto steps = this->steps();
  if (!steps) return tl::unexpected(steps.error());
  std::erase_if(*steps, [end](uint64_t step) { return end && step >= *end; });
  newest_checkpoint result;
  for (size_t i = steps->size(); i-- > 0 && !result.found;) {
    auto content = read((*steps)[i]);
    if (content)
      result.found = std::move(*content);
    else if (is_damaged_or_gone(content.error()))
      result.warnings.push_back("checkpoint passed over: " + content.error().message);
    else
      return fail(content.error().code,
                  fmt::format("{}; no older checkpoint is taken in its place: mend that, name "
                              "another folder, or move it away",
                              content.error().message));
  }
  return result;
}

// Errors: as `read`, but for files that are damaged or gone.
expected<bool> checkpoint_directory::is_whole(uint64_t step) const {
  if (written_.contains(step)) return true;
  auto content = read(step);
  if (content || is_damaged_or_gone(content.error())) return content.has_value();
  return tl::unexpected(content.error());
}

expected<void> checkpoint_directory::keep(size_t count) {
  TROUPE_ASSERT(count > 0);
  auto steps = this->steps();
  if (!steps) return tl::unexpected(steps.error());
  if (steps->size() <= count) return {};
  const auto oldest_kept = steps->end() - static_cast<ptrdiff_t>(count);
  // The files that this object wrote are looked at first: they need not be read.
  bool is_safe = std::any_of(oldest_kept, steps->end(),
                             [this](uint64_t step) { return written_.contains(step); });
  expected<void> done;
  for (size_t i = steps->size(); i-- > 0;) {
    const auto step = (*steps)[i];
    if (!is_safe) {
      const auto whole = is_whole(step);
      is_safe = whole.value_or(false);
      if (is_safe || !whole) continue; // one that cannot be read may be whole
    }
    if (i >= steps->size() - count) continue;
    std::error_code problem;
    fs::remove(path_of(step), problem);
    if (!problem)
      written_.erase(step);
    else if (done)
      done = system_failure("remove", path_of(step), problem);
  }
  return done;
}

} // namespace troupe
