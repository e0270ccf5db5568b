// SPDX-License-Identifier: Apache-2.0
// Has gnuplot draw pictures, each of which is there as a whole or not at all afterwards.
#pragma once

#include "messages/errors/errc.hpp"

#include <chrono>
#include <filesystem>
#include <span>
#include <string>

namespace troupe {

/// Runs gnuplot on the scripts NAME.gp in `folder`, which draw NAME.svg there of files beside them.
/// @param timeout For all pictures together; gnuplot is killed after it.
/// Errors: `not_found` if this machine has no gnuplot, `resource` if it has not written all of a
/// picture, else as `run` of child_process.hpp. Pictures that are not whole are removed.
[[nodiscard]] expected<void> draw_pictures(const std::filesystem::path& folder,
                                           std::span<const std::string> names,
                                           std::chrono::milliseconds timeout);

} // namespace troupe
