// SPDX-License-Identifier: Apache-2.0
// Batches for a whole job, cut into batches for its replicas.
#pragma once

#include "strategies/data/dataset.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// The sizes in which one of several pipelines cuts global batches, in turn: all replicas together
/// take exactly one global batch in each step, and no replica takes two rows more than another.
/// Each pipeline begins elsewhere in the list, so that in a step the replicas of all pipelines have
/// one of its places each; over the whole list every pipeline gets one global batch.
///
///     batch_sizes_for_pipeline(10, 2, 2, 1)   // 3, 3, 2, 2 begins at place 2: 2, 2, 3, 3
///
/// @param batch_size Rows of a global batch. @param pipelines How many there are.
/// @param replicas_each Replicas of each pipeline. @param pipeline Which one.
/// Shape: [pipelines * replicas_each]
/// Errors: throws `failure`: invalid_argument if a number is 0 or negative, or there is no such
/// pipeline.
/// Source: TensorFlow, `batch_sizes_for_worker` of `data/experimental/ops/distribute.py`.
[[nodiscard]] std::vector<uint64_t> batch_sizes_for_pipeline(uint64_t batch_size,
                                                             uint64_t pipelines,
                                                             uint64_t replicas_each,
                                                             uint64_t pipeline);

/// Batches of these sizes, again and again, cut and joined across the batches of the input. A size
/// of 0 gives a batch without rows, even behind the last row; the last batch is smaller, or
/// dropped. An input without elements gives none.
/// Cost: a view of each batch that lies in one of the input, a copy of others; `batch_rows`.
/// Errors: throws `failure`: invalid_argument for no sizes or nothing but 0, a negative one, or
/// 2^63 rows or more together, and as `batch_rows`; elements that are no batches fail when they
/// are read.
/// Source: TensorFlow, `rebatch_dataset_op.cc`, version 2.
[[nodiscard]] dataset rebatch(const dataset& batches, const std::vector<uint64_t>& sizes,
                              bool drop_remainder = false);

/// Each batch in so many pieces: of a batch of b rows, pieces of ceil(b / pieces) as long as there
/// are rows, then such without rows. For batches of unknown sizes.
/// Errors: throws `failure`: invalid_argument for 0, for a negative number, and for elements known
/// to be no batches. Others that are none fail when they are read, and so do texts alone that a map
/// makes of examples without setting `element::rows`.
/// Source: TensorFlow, `rebatch_dataset_op.cc`, version 1.
[[nodiscard]] dataset legacy_rebatch(const dataset& batches, uint64_t pieces);

} // namespace troupe
