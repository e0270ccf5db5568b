// SPDX-License-Identifier: Apache-2.0
// Reads a whole file.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

/// All bytes of the regular file (or pipe) at `path`.
/// Errors: `not_found` if there is none, `invalid_argument` for a folder, `limit_exceeded` for more
/// than `bytes_max`, `resource` if the system refuses; each message names the path.
[[nodiscard]] expected<std::string> file_content(const std::string& path, uint64_t bytes_max);

/// The reason why a file or a folder could not be read, with the folder that it is looked for in
/// if a relative path leads to none: a job may go on in another folder.
/// "cannot read a.txt: No such file or directory; it is looked for in /home/me"
[[nodiscard]] std::string unreadable_reason(const error& reason, const std::filesystem::path& path);

} // namespace troupe
