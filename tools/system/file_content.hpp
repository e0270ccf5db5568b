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

/// Ends a line about a file that is not there, because a job may go on in another folder:
/// "; it is looked for in /home/me". Empty for a path that is not relative.
[[nodiscard]] std::string searched_folder(const std::filesystem::path& path);

} // namespace troupe
