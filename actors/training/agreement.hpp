// SPDX-License-Identifier: Apache-2.0
// The settings that all processes of a job must have been given alike.
#pragma once

#include "messages/errors/errc.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// The first line of each text that the other does not have at that place; nothing if the texts are
/// equal. A text that has no more lines gives an empty one.
[[nodiscard]] std::optional<std::pair<std::string_view, std::string_view>>
first_difference(std::string_view left, std::string_view right);

/// The refusal of a process with other settings than the chief's; nothing if they are the same.
/// @param name The process. @param theirs, ours Its settings, and the chief's, by
/// `short_agreement`.
[[nodiscard]] std::optional<error> check_agreement(std::string_view name, std::string_view theirs,
                                                   std::string_view ours);

/// A line of a difference as it is printed: "nothing there" for an empty one.
[[nodiscard]] std::string_view line_or_nothing(std::string_view line);

/// The mend of a difference between two lines: how to start all processes. Processes of one build
/// have lines for the same options, so that another option, or none, is of another build.
/// @param both "options and variables": the mend is the same ones, if the build is the same.
[[nodiscard]] std::string mend_of(std::string_view left, std::string_view right,
                                  std::string_view both);

/// The refusal of a process with one other setting: failed_precondition, with both.
/// @param name The process. @param theirs, ours Its setting ("seed = 7"), and the chief's; empty:
/// it has none.
[[nodiscard]] error differing_setting(std::string_view name, std::string_view theirs,
                                      std::string_view ours);

/// The refusal of a process that is not in the job's list: invalid_argument.
[[nodiscard]] error unknown_member();

/// The text as a message holds it. A text of more than `limits::text_bytes_max` is cut to its first
/// lines and a line with the checksum of all, so that no difference is missed.
[[nodiscard]] std::string short_agreement(std::string text);

} // namespace troupe
