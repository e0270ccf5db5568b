// SPDX-License-Identifier: Apache-2.0
// The rows of a CSV file as a dataset.
#pragma once

#include "actors/recording/input_file.hpp"
#include "strategies/data/dataset.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Which columns one tensor of an element consists of, in this order.
/// Shape: [] for one column, [columns] for several.
struct csv_tensor {
  std::vector<std::string> columns;
  dtype type = dtype::f32;
};

/// How a row becomes an element.
struct csv_options {
  std::vector<csv_tensor> tensors; ///< If there are neither these nor texts: all columns as f32.
  std::vector<std::string> texts;  ///< Columns that become texts of the element.
  bool has_header = true;          ///< Without a header columns are named "0", "1", ...
  char separator = ',';
};

/// One element for each row. Fields may be in quotes, and then hold separators, line ends and
/// doubled quotes; lines end in "\n" or "\r\n", not in "\r" alone; empty lines are passed over.
///
///     csv_file("iris.csv", {.tensors = {{{"sepal_length", "sepal_width"}}, {{"kind"},
///     dtype::i32}}})
///
/// Cost: one pass over the file when it is opened; then one read for each row.
/// Errors: throws `failure`: those of `input_file::open`; `malformed` for a quoted field without
/// end, and for "\r" alone; `not_found` for a column that is not there; `invalid_argument` for one
/// that is there twice. A row with too few or too many fields, or with a field that is no number,
/// fails when it is read; the error names row, column and byte. Rows count from 0, behind the
/// header.
/// Source: RFC 4180, section 2.
[[nodiscard]] dataset csv_file(const std::filesystem::path& path, const csv_options& options = {});

/// The same for an open file, or bytes in memory. Errors: as `csv_file`.
[[nodiscard]] expected<dataset> csv_dataset(const input_file& file,
                                            const csv_options& options = {});

} // namespace troupe
