// SPDX-License-Identifier: Apache-2.0
// Datasets: where examples come from, and in which order.
#pragma once

#include "kernels/tensor/random.hpp"
#include "strategies/data/element.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// Something that runs a function elsewhere, such as
/// `[&](auto work) { world.submit(std::move(work)); }`. It may also run it at once, or never; one
/// that throws counts as one that never runs it.
using executor = std::function<void(std::function<void()>)>;

/// Reads element `index` of pass `epoch` through a dataset; belongs to one iterator.
using element_reader = std::function<expected<element>(uint64_t epoch, uint64_t index)>;

class dataset_iterator;
struct dataset_stage;

/// A trainer that dies must go on with the very next example, in the order it was in: so a dataset
/// is not a stream that has to be drained again, but a function from places to elements. Each stage
/// below asks the one before it for the elements it needs, by number; orders are drawn from named
/// random streams. A position is one number, and going there costs no reading.
///
///     auto batches = csv_file("flowers.csv", {...}).shuffle(1000, seed).batch(32).repeat();
///     auto examples = batches.iterate();
///     while (auto batch = value_or_throw(examples.next())) ...
///
/// The stages mean what those of TensorFlow's `tf.data.Dataset` mean. A cheap value; what it reads
/// from is shared and never written. Thread: any.
/// Errors: stages and sources throw `failure`; iterators return what goes wrong with an element.
class dataset {
public:
  /// The size of a dataset without end.
  static constexpr uint64_t infinite = UINT64_MAX;

  /// For `shard`: the number of shards, and which one, are told when the dataset is distributed.
  static constexpr uint64_t shard_hint = UINT64_MAX;

  /// A source of one's own.
  /// @param open Makes a reader for a new iterator; readers of two iterators are used at the same
  /// time. Errors: throws `failure` with invalid_argument if it is empty.
  dataset(uint64_t size, std::function<element_reader()> open);

  /// A stage of one's own, with what `auto_shard` and `rebatch` may know of it.
  dataset(uint64_t size, std::function<element_reader()> open, dataset_stage made_by);

  // A move copies, so that a handle that was moved from still means the same.
  dataset(const dataset&) = default;
  dataset& operator=(const dataset&) = default;

  /// One element with these tensors.
  [[nodiscard]] static dataset from_tensors(std::vector<tensor> tensors);

  /// As many elements as the tensors have rows: views that share their memory.
  /// Errors: invalid_argument for scalars and for tensors that differ in the number of rows.
  [[nodiscard]] static dataset from_tensor_slices(std::vector<tensor> tensors);

  /// Element i of the result holds the tensors and texts of all element i; where these are batches
  /// of as many rows, the texts of each row stand together. Ends with the shortest.
  [[nodiscard]] static dataset zip(const std::vector<dataset>& datasets);

  /// Elements in one pass, or `infinite`.
  [[nodiscard]] uint64_t size() const { return size_; }

  /// The last stage, and through its inputs all others.
  [[nodiscard]] const dataset_stage& made_by() const { return *made_by_; }

  /// The order of `shuffle_order`. Each pass over the data has another order, unless
  /// `reshuffle_each_iteration` is false.
  /// Cost: 8 bytes for each place of the buffer; the elements themselves are not held. One shuffle
  /// on top of another seeks for every element.
  /// Errors: invalid_argument for a buffer of 0.
  [[nodiscard]] dataset shuffle(uint64_t buffer_size, uint64_t seed,
                                bool reshuffle_each_iteration = true) const;

  /// `stack`s elements by n; the last batch is smaller, or dropped.
  /// Errors: invalid_argument for 0; elements that cannot be stacked fail when they are read.
  [[nodiscard]] dataset batch(uint64_t n, bool drop_remainder = false) const;

  /// The elements so many times, for ever if not said otherwise.
  [[nodiscard]] dataset repeat(uint64_t count = infinite) const;

  /// Every `num_shards`-th element, beginning with number `index`. Or, for `shard_hint` twice, the
  /// place where `distribute` shall put such a stage; until then elements fail with
  /// failed_precondition.
  /// Errors: invalid_argument unless index < num_shards.
  [[nodiscard]] dataset shard(uint64_t num_shards, uint64_t index) const;

  /// The first `count` elements.
  [[nodiscard]] dataset take(uint64_t count) const;

  /// All but the first `count` elements.
  [[nodiscard]] dataset skip(uint64_t count) const;

  /// These elements, then those of `other`. Errors: invalid_argument if this one has no end.
  [[nodiscard]] dataset concatenate(const dataset& other) const;

  /// Applies `function` to each element. It must give the same for the same element at any time;
  /// if it throws, reading the element fails. Iterators on several threads call it at once.
  /// Errors: throws `failure` with invalid_argument if it is empty.
  [[nodiscard]] dataset map(std::function<element(element)> function) const;

  /// `map` with random numbers: their key names the seed, the pass and the element, so they are
  /// the same after a restart.
  [[nodiscard]] dataset map(std::function<element(element, const random_key&)> function,
                            uint64_t seed) const;

  /// Reads up to `count` elements ahead by means of `elsewhere`, one at a time and in order; what
  /// comes out is the same. Without an executor nothing is read ahead.
  /// Errors: invalid_argument for a negative number.
  [[nodiscard]] dataset prefetch(uint64_t count, executor elsewhere = {}) const;

  /// An iterator at the first element. @param pass Over the data, of which each has other orders
  /// and random numbers: give another one to each, or let `repeat` count them.
  [[nodiscard]] dataset_iterator iterate(uint64_t pass = 0) const;

  /// A reader for a stage of one's own. @pre It is asked for elements below `size()`.
  [[nodiscard]] element_reader open() const { return open_(); }

private:
  [[nodiscard]] dataset shard_when_distributed() const;

  uint64_t size_;
  std::function<element_reader()> open_;
  std::shared_ptr<const dataset_stage> made_by_;
};

/// Reads a dataset from one end to the other. Thread: one owner at a time.
class dataset_iterator {
public:
  dataset_iterator(const dataset& source, element_reader read, uint64_t pass)
    : size_(source.size()), read_(std::move(read)), pass_(pass) {}

  /// The next element; nothing after the last one. An element that cannot be read counts as
  /// delivered: the next call goes on behind it.
  /// Errors: those of the source, of `map` (`user_code` if the function threw) and of `batch`.
  [[nodiscard]] expected<std::optional<element>> next();

  /// Where this iterator stands, as a checkpoint can hold it (`replica_context::keep`): elements
  /// delivered, elements of the whole dataset, -1 for one without end, and the pass.
  /// Shape: [3] i64
  [[nodiscard]] tensor position() const;

  /// Goes to a position of this dataset, saved by any iterator over it: what follows is what would
  /// have followed there. Cost: for each shuffle, as a jump of `shuffle_order`; nothing is read.
  /// Errors: `invalid_argument` if it is no position, or one of a dataset of another size.
  [[nodiscard]] expected<void> restore(const tensor& position);

private:
  uint64_t size_;
  element_reader read_;
  uint64_t pass_;
  uint64_t delivered_ = 0;
};

} // namespace troupe
