// SPDX-License-Identifier: Apache-2.0
// The function that every fuzz target defines and its driver calls.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::fuzz {

/// Gives bytes to a parser of Troupe, as a peer, a file or a user could, and asserts what must hold
/// whatever they are. Accepted input is looked through to its last byte, so that the
/// sanitizers see it. Each target is one file with this function, after which it is called.
/// @returns Whether the parser accepted them.
[[nodiscard]] bool accepts(std::span<const std::byte> input);

/// The input as text.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

} // namespace troupe::fuzz
