// SPDX-License-Identifier: Apache-2.0
// Refuses leaves that do not fit, or that no message can carry.
#include "strategies/values/closure_leaves.hpp"

#include "messages/checks/limits.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"

namespace troupe {

size_t closure_leaves::length() {
  auto length = next<int64_t>("a length");
  if (length < 0 || length > static_cast<int64_t>(limits::list_elements_max)) refuse("a length");
  return static_cast<size_t>(length);
}

void closure_leaves::end() const {
  if (next_ < leaves_.size()) refuse("no more");
}

worker_room& closure_leaves::room() const {
  TROUPE_ASSERT(room_ != nullptr, next_);
  return *room_;
}

void closure_leaves::refuse(const char* kind) const {
  throw_failure(errc::type_mismatch,
                "value {} of {} is not {}, as the function has it here; start all processes with "
                "the same program",
                next_, leaves_.size(), kind);
}

void check_leaves(std::span<const closure_value> leaves) {
  if (leaves.size() > limits::list_elements_max)
    throw_failure(errc::limit_exceeded,
                  "a function takes or returns {} values; at most {} can travel", leaves.size(),
                  limits::list_elements_max);
  for (const auto& leaf : leaves) {
    if (const auto* text = std::get_if<std::string>(&leaf);
        text && text->size() > limits::text_bytes_max)
      throw_failure(
        errc::limit_exceeded,
        "a text of {} bytes cannot travel to another process, only {}; send it as an array",
        text->size(), limits::text_bytes_max);
    if (const auto* array = std::get_if<tensor>(&leaf);
        array && array->extents().rank() > limits::rank_max)
      throw_failure(
        errc::limit_exceeded,
        "an array of {} dimensions cannot travel to another process, only {}; reshape it",
        array->extents().rank(), limits::rank_max);
  }
}

} // namespace troupe
