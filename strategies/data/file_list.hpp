// SPDX-License-Identifier: Apache-2.0
// The records of many files as one dataset.
#pragma once

#include "strategies/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// Large data comes in many files. This is one dataset of all of them, one after the other, that
/// `auto_shard` can divide by files: no file is then read by two.
///
///     read_files({"a.txt", "b.txt"}, text_file).shuffle(1000, seed).batch(32)
///
/// @param open Makes a dataset of one file: a source, perhaps with stages.
/// @param shuffle_seed If given, the files come in another order in every pass; divided among
/// several pipelines, each shuffles its own.
/// Cost: opens all files.
/// Errors: throws what `open` throws; `invalid_argument` if there is no file, or one without end,
/// or `open` is empty.
/// Source: `Dataset.list_files(...).flat_map(...)` of TensorFlow.
[[nodiscard]] dataset read_files(const std::vector<std::filesystem::path>& paths,
                                 const std::function<dataset(const std::filesystem::path&)>& open,
                                 std::optional<uint64_t> shuffle_seed = {});

/// The same for datasets of open files; an empty list gives no element.
[[nodiscard]] dataset files_in_turn(std::vector<dataset> files,
                                    std::optional<uint64_t> shuffle_seed = {});

} // namespace troupe
