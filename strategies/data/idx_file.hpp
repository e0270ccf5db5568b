// SPDX-License-Identifier: Apache-2.0
// The rows of an IDX file, the format of MNIST, as a dataset.
#pragma once

#include "actors/recording/input_file.hpp"
#include "strategies/data/dataset.hpp"

#include <filesystem>
#include <optional>

namespace troupe {

/// One element for each image, label, ... with one tensor. All numbers are big-endian:
///
/// | bytes  | meaning                                                                           |
/// |--------|-----------------------------------------------------------------------------------|
/// | 2      | 0                                                                                 |
/// | 1      | 8: natural numbers of a byte; 9, 11, 12: integers of 1, 2, 4; 13, 14: f32, f64    |
/// | 1      | the number of dimensions                                                          |
/// | 4 each | the dimensions, outermost first                                                   |
/// | rest   | the numbers, row by row                                                           |
///
///     auto examples = dataset::zip({idx_file("train-images", dtype::f32),
///     idx_file("train-labels")});
///
/// @param type The tensors' type; if not said, i32 for bytes and integers, else the file's own.
/// Floating numbers are rounded to it.
/// Cost: one read for each element.
/// Errors: throws `failure`: those of `input_file::open`; `malformed` with what is wrong, among it
/// a file that is still compressed; `type_mismatch` for integers that `type` cannot hold.
/// Source: http://yann.lecun.com/exdb/mnist, "The IDX file format".
[[nodiscard]] dataset idx_file(const std::filesystem::path& path, std::optional<dtype> type = {});

/// The same for an open file, or bytes in memory. Errors: as `idx_file`.
[[nodiscard]] expected<dataset> idx_dataset(const input_file& file, std::optional<dtype> type = {});

} // namespace troupe
