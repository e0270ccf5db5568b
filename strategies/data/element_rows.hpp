// SPDX-License-Identifier: Apache-2.0
// Cuts batches by rows, and joins them.
#pragma once

#include "strategies/data/element.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// How many examples a batch holds: the first extent of all its tensors. Its texts belong to the
/// rows in equal shares. Without tensors the batch says it itself (`element::rows`); one that does
/// not has a row for each text.
/// @param comes_of_example Whether nothing but `element::rows` can tell texts alone from an example
/// (`come_of_examples`).
/// Errors: `invalid_argument` for what is no batch: a scalar, tensors of different first extents,
/// texts that cannot be shared, texts alone of an example.
[[nodiscard]] expected<uint64_t> rows_of(const element& batch, bool comes_of_example = false);

/// The parts of an example, or of a batch, side by side: all tensors, and the texts of each row,
/// part by part.
[[nodiscard]] element side_by_side(std::vector<element> parts);

/// Rows [begin, end) of a batch: views, and copies of texts.
/// @pre `rows_of(batch)`, and begin <= end <= rows.
[[nodiscard]] element slice_rows(const element& batch, uint64_t begin, uint64_t end);

/// Batches as one. Shape: tensors [rows..., extents...]. Cost: a copy of all tensors, unless there
/// is but one batch.
/// Errors: `invalid_argument` if they differ in more than their rows.
/// @pre There is at least one batch, each with `rows_of`.
[[nodiscard]] expected<element> join_rows(std::span<const element> batches);

} // namespace troupe
