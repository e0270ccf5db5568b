// SPDX-License-Identifier: Apache-2.0
// The settings that all processes of a job must have been given alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// The first line of each text that the other does not have at that place; nothing if the texts are
/// equal. A text that has no more lines gives an empty one.
[[nodiscard]] std::optional<std::pair<std::string_view, std::string_view>>
first_difference(std::string_view left, std::string_view right);

/// The text as a message holds it. A text of more than `limits::text_bytes_max` is cut to its first
/// lines and a line with the checksum of all, so that no difference is missed.
[[nodiscard]] std::string short_agreement(std::string text);

} // namespace troupe
