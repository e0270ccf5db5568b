// SPDX-License-Identifier: Apache-2.0
// The rows of an array that NumPy saved, as a dataset.
#pragma once

#include "actors/recording/input_file.hpp"
#include "strategies/data/dataset.hpp"

#include <filesystem>
#include <optional>

namespace troupe {

/// One element with one tensor for each row of an array that `numpy.save` wrote: floating numbers,
/// integers and truth values of either byte order, in C order.
/// @param type The tensors' type; if not said, the one that holds the numbers without loss: i32 for
/// small integers and truth values, else the file's own. Floating numbers are rounded to it.
/// Cost: one read for each element.
/// Errors: throws `failure`: those of `input_file::open`; `malformed` with what is wrong;
/// `unimplemented` for arrays in Fortran order and for types without a counterpart (texts,
/// u8, complex numbers); `type_mismatch` for integers that `type` cannot hold.
/// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3.
[[nodiscard]] dataset npy_file(const std::filesystem::path& path, std::optional<dtype> type = {});

/// The same for an open file, or bytes in memory. Errors: as `npy_file`.
[[nodiscard]] expected<dataset> npy_dataset(const input_file& file, std::optional<dtype> type = {});

} // namespace troupe
