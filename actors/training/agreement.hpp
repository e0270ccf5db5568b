// SPDX-License-Identifier: Apache-2.0
// The settings that all processes of a job must have been given alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// The first lines in which two texts differ, that of one before that of the other; nothing if they
/// are equal. Where a text has no line, it is empty.
[[nodiscard]] std::optional<std::pair<std::string_view, std::string_view>>
first_difference(std::string_view one, std::string_view other);

/// The text as it may be sent: of one beyond `limits::text_bytes_max`, the first lines and a line
/// with the checksum of all, so that no difference is missed.
[[nodiscard]] std::string short_agreement(std::string text);

} // namespace troupe
