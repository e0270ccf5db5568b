// SPDX-License-Identifier: Apache-2.0
// The stages of a dataset, for code that makes another one of it.
#pragma once

#include "strategies/data/dataset.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace troupe {

/// The stages that a dataset can consist of.
enum class stage_kind : uint8_t {
  source, ///< Rows in memory, or a source of one's own.
  file,   ///< The records of one file.
  files,  ///< The records of several files (`read_files`); the inputs are the files.
  batch,
  rebatch,        ///< Batches of other sizes (`rebatch`).
  legacy_rebatch, ///< Batches in a fixed number of pieces (`legacy_rebatch`).
  map,
  shuffle,
  repeat,
  shard,
  shard_hint, ///< The place of a shard that is not chosen yet.
  take,
  skip,
  concatenate,
  zip,
  prefetch,
};

/// A dataset is a function from places to elements, and a function cannot be looked into. But to
/// divide a dataset among replicas, a shard has to go behind the source of its files, and what
/// follows must go on as before. So each stage remembers what it was made after, and how to make it
/// again after something else: a rewrite walks down the inputs, changes one, and makes the others
/// again on its way back.
struct dataset_stage {
  stage_kind kind = stage_kind::source;

  /// The datasets that the stage reads; a source has none.
  std::vector<dataset> inputs = {};

  /// The same stage after other inputs; empty for sources. @pre As many inputs, but for `files`.
  std::function<dataset(const std::vector<dataset>&)> again = {};

  /// Sizes of the batches, in turn (`batch`, `rebatch`); pieces of each batch (`legacy_rebatch`);
  /// passes (`repeat`).
  std::vector<uint64_t> numbers = {};

  /// Whether `batch` or `rebatch` drops a last, smaller batch.
  bool drop_remainder = false;

  /// Whether a source's elements are known to be single examples, such as lines or scalars.
  bool gives_examples = false;

  /// Whether all elements of a source are known to have the same extents.
  bool gives_equal_extents = false;
};

/// The answer of `batch_size_of` if it does not know the batches of a dataset.
inline constexpr int64_t unknown_batch_size = -1;

/// Rows of each element but the last, as far as the stages tell: 0 if the elements are known to be
/// no batches, `unknown_batch_size` behind a `map`, behind batches of different sizes, and for
/// sources that may give batches of their own.
/// Source: TensorFlow, `compute_batch_size_op.cc`.
[[nodiscard]] int64_t batch_size_of(const dataset& batches);

/// Whether the elements are single examples, or what maps make of these: either examples again, or
/// batches of their own.
[[nodiscard]] bool come_of_examples(const dataset& elements);

/// True if no element can have fewer rows than another: then a step that lacks some has no
/// elements of the right shape to put there. A `map` is taken to keep the rows of batches; what it
/// makes of other elements may be batches of any size.
[[nodiscard]] bool has_fixed_extents(const dataset& elements);

/// The records of a file; one reader reads them for all iterators.
/// @param gives_examples As `dataset_stage::gives_examples`.
[[nodiscard]] dataset records_of_file(uint64_t size, element_reader read,
                                      bool gives_examples = true);

/// Refuses a negative number, which has become one beyond 2^63 - 1 on its way here.
/// @param argument Names it in the error: "batch: n".
/// Errors: throws `failure` with invalid_argument.
void require_not_negative(std::string_view argument, uint64_t value);

/// So many elements, so many times: `dataset::infinite` if no number holds them.
[[nodiscard]] inline uint64_t saturated_product(uint64_t a, uint64_t b) {
  return a != 0 && b > dataset::infinite / a ? dataset::infinite : a * b;
}

} // namespace troupe
