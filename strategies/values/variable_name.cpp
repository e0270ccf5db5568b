// SPDX-License-Identifier: Apache-2.0
// Refuses names of variables.
#include "strategies/values/variable_name.hpp"

#include "actors/checkpoint/safetensors_header.hpp"
#include "messages/errors/printable.hpp"
#include "messages/errors/throw_failure.hpp"

#include <algorithm>

namespace troupe {

void check_variable_name(const std::string& name) {
  if (name.empty()) throw_failure(errc::invalid_argument, "a variable needs a name");
  if (!is_utf8(name)) {
    auto shown = name;
    std::ranges::replace_if(
      shown, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    throw_failure(errc::invalid_argument,
                  "the variable name '{}' is not UTF-8, and no checkpoint could hold it; write it "
                  "in UTF-8",
                  shown);
  }
  if (auto shown = printable(name); shown != name)
    throw_failure(errc::invalid_argument,
                  "the variable name '{}' has control characters, shown as '?'; leave them out",
                  shown);
  if (name == safetensors_metadata_key)
    throw_failure(errc::invalid_argument,
                  "no variable can be named '{}': checkpoints keep something else by this name; "
                  "choose another",
                  name);
}

} // namespace troupe
