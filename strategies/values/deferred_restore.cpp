// SPDX-License-Identifier: Apache-2.0
// Checks that the saved state fits a new variable, and cuts it for shards.
#include "strategies/values/deferred_restore.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

namespace troupe {

namespace {

void check_form(const variable_form& made, const tensor& saved, uint64_t step) {
  constexpr auto remedy = "make it as it was saved, or under another name";
  if (saved.type() != made.type)
    throw_failure(
      errc::type_mismatch,
      "variable '{}' is made as {}, but the checkpoint of step {}, which was restored before, "
      "has it as {}; {}",
      made.name, to_string(made.type), step, to_string(saved.type()), remedy);
  if (saved.extents() != made.extents)
    throw_failure(
      errc::invalid_argument,
      "variable '{}' is made with shape {}, but the checkpoint of step {}, which was restored "
      "before, has it with {}; {}",
      made.name, to_string(made.extents), step, to_string(saved.extents()), remedy);
}

} // namespace

variable_payload rows_of_state(const variable_payload& whole, int64_t begin, int64_t end) {
  auto part = whole;
  part.value = whole.value.slice(begin, end);
  for (auto& slot : part.slots)
    slot.value = slot.value.slice(begin, end);
  if (part.average) part.average->value = part.average->value.slice(begin, end);
  return part;
}

void deferred_restore::keep(uint64_t step, std::vector<variable_snapshot> variables) {
  step_ = step;
  saved_.clear();
  for (auto& [name, state] : variables)
    saved_.emplace(std::move(name), std::move(state));
}

// Everything that an owner would refuse is refused here, where the name is known and no caller
// waits.
std::optional<variable_payload> deferred_restore::of(const variable_form& form) const {
  auto found = saved_.find(form.name);
  if (found == saved_.end()) return std::nullopt;
  const auto& state = found->second;
  check_form(form, state.value, step_);
  for (const auto& slot : state.slots)
    check_form(form, slot.value, step_);
  if (state.average) check_form(form, state.average->value, step_);
  return state;
}

void deferred_restore::cut(const variable_form& table, std::span<const std::string> parts,
                           std::span<const int64_t> offsets) {
  TROUPE_ASSERT(offsets.size() == parts.size() + 1, offsets.size(), parts.size());
  auto whole = of(table);
  if (!whole) return;
  for (size_t i = 0; i < parts.size(); ++i)
    saved_.insert_or_assign(parts[i], rows_of_state(*whole, offsets[i], offsets[i + 1]));
  forget(table.name);
}

std::vector<std::string> deferred_restore::names() const {
  return mapped(saved_, [](const auto& variable) { return variable.first; });
}

} // namespace troupe
