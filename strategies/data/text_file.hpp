// SPDX-License-Identifier: Apache-2.0
// The lines of a text file as a dataset.
#pragma once

#include "actors/recording/input_file.hpp"
#include "strategies/data/dataset.hpp"

#include <filesystem>

namespace troupe {

/// One element for each line: one text, without its line end ("\n" or "\r\n"). Bytes are not
/// checked for any encoding.
/// Cost: one pass over the file when it is opened; then a system call for each line.
/// Errors: throws `failure`: those of `input_file::open`, `resource`.
[[nodiscard]] dataset text_file(const std::filesystem::path& path);

/// The same for an open file, or bytes in memory. Errors: as `input_file::read_at`.
[[nodiscard]] expected<dataset> text_dataset(const input_file& file);

} // namespace troupe
