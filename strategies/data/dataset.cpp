// SPDX-License-Identifier: Apache-2.0
// The stages of a dataset: the size of each, and its elements made of those of the stage before.
#include "strategies/data/dataset.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/data/called.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/element_rows.hpp"
#include "strategies/data/position.hpp"
#include "strategies/data/prefetch.hpp"
#include "strategies/data/shuffle_order.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace troupe {

namespace {

uint64_t saturated_sum(uint64_t a, uint64_t b) {
  return a > dataset::infinite - b ? dataset::infinite : a + b;
}

// Opens a stage with readers that need nothing but a reader of the stage before.
template <class Reader>
std::function<element_reader()> after(std::function<element_reader()> before, Reader reader) {
  return [before = std::move(before), reader = std::move(reader)]() -> element_reader {
    return [read = before(), reader](uint64_t epoch, uint64_t index) {
      return reader(read, epoch, index);
    };
  };
}

// How a stage of one dataset was made: `make` makes it after another one.
template <class Make>
dataset_stage made(stage_kind kind, const dataset& before, Make make,
                   const std::vector<uint64_t>& numbers = {}, bool drop_remainder = false) {
  return {.kind = kind,
          .inputs = {before},
          .again = [make = std::move(make)](const auto& inputs) { return make(inputs.front()); },
          .numbers = numbers,
          .drop_remainder = drop_remainder};
}

// Opens a source that has the same reader every time.
template <class Reader>
std::function<element_reader()> always(Reader reader) {
  return [reader = std::move(reader)]() -> element_reader { return reader; };
}

} // namespace

dataset::dataset(uint64_t size, std::function<element_reader()> open)
  : dataset(size, std::move(open), dataset_stage{}) {}

dataset::dataset(uint64_t size, std::function<element_reader()> open, dataset_stage made_by)
  : size_(size), open_(std::move(open)),
    made_by_(std::make_shared<const dataset_stage>(std::move(made_by))) {
  require(open_ != nullptr, "a dataset needs a function that opens it; it was given an empty one");
}

// ---- sources ----

dataset dataset::from_tensors(std::vector<tensor> tensors) {
  for (auto& tensor : tensors)
    tensor = tensor.as_read_only();
  return {1, always([tensors = std::move(tensors)](uint64_t, uint64_t) -> expected<element> {
            return element{tensors, {}};
          }),
          dataset_stage{.gives_equal_extents = true}};
}

dataset dataset::from_tensor_slices(std::vector<tensor> tensors) {
  require(!tensors.empty(), "from_tensor_slices: there is no tensor");
  for (auto& tensor : tensors) {
    require(tensor.rank() > 0, "from_tensor_slices: a scalar has no rows");
    require(tensor.extents()[0] == tensors[0].extents()[0],
            fmt::format("from_tensor_slices: tensors of {} and {} rows", tensors[0].extents()[0],
                        tensor.extents()[0]));
    tensor = tensor.contiguous().as_read_only();
  }
  const auto rows = static_cast<uint64_t>(tensors[0].extents()[0]);
  dataset_stage made_by{.gives_examples = std::ranges::any_of(
                          tensors, [](const tensor& rows) { return rows.rank() == 1; }),
                        .gives_equal_extents = true};
  auto open = always([tensors = std::move(tensors)](uint64_t, uint64_t index) {
    element row;
    for (const auto& tensor : tensors) {
      const auto begin = static_cast<int64_t>(index);
      const auto& dims = tensor.extents().dims();
      row.tensors.push_back(
        tensor.slice(begin, begin + 1).reshape(shape{std::vector(dims.begin() + 1, dims.end())}));
    }
    return expected<element>{std::move(row)};
  });
  return {rows, std::move(open), std::move(made_by)};
}

// ---- stages of several datasets ----

dataset dataset::zip(const std::vector<dataset>& datasets) {
  require(!datasets.empty(), "zip: there is no dataset");
  auto size = dataset::infinite;
  for (const auto& one : datasets)
    size = std::min(size, one.size_);
  dataset_stage made_by{.kind = stage_kind::zip, .inputs = datasets, .again = zip};
  return {size,
          [datasets]() -> element_reader {
            auto readers = mapped(datasets, [](const auto& one) { return one.open_(); });
            return [readers](uint64_t epoch, uint64_t index) -> expected<element> {
              std::vector<element> parts;
              for (const auto& read : readers) {
                auto part = read(epoch, index);
                if (!part) return part;
                parts.push_back(std::move(*part));
              }
              return side_by_side(std::move(parts));
            };
          },
          std::move(made_by)};
}

dataset dataset::concatenate(const dataset& other) const {
  require(size_ != dataset::infinite, "concatenate: nothing comes after a dataset without end");
  dataset_stage made_by{
    .kind = stage_kind::concatenate, .inputs = {*this, other}, .again = [](const auto& inputs) {
      return inputs[0].concatenate(inputs[1]);
    }};
  return {saturated_sum(size_, other.size_),
          [first = open_, second = other.open_, size = size_]() -> element_reader {
            return
              [read_first = first(), read_second = second(), size](uint64_t epoch, uint64_t index) {
                return index < size ? read_first(epoch, index) : read_second(epoch, index - size);
              };
          },
          std::move(made_by)};
}

// ---- stages of one dataset ----

dataset dataset::shuffle(uint64_t buffer_size, uint64_t seed, bool reshuffle_each_iteration) const {
  require(buffer_size > 0, "shuffle: a buffer of 0 elements gives none");
  require_not_negative("shuffle: buffer_size", buffer_size);
  auto made_by = made(stage_kind::shuffle, *this, [=](const dataset& before) {
    return before.shuffle(buffer_size, seed, reshuffle_each_iteration);
  });
  return {size_,
          [=, before = open_, size = size_]() -> element_reader {
            auto order = std::make_shared<shuffle_order>(seed, buffer_size, size);
            return [=, read = before()](uint64_t epoch, uint64_t index) {
              return read(epoch, order->at(reshuffle_each_iteration ? epoch : 0, index));
            };
          },
          std::move(made_by)};
}

dataset dataset::batch(uint64_t n, bool drop_remainder) const {
  require(n > 0, "batch: a batch of 0 elements is none");
  require_not_negative("batch: n", n);
  const auto whole = size_ / n;
  const auto rest = size_ % n != 0 && !drop_remainder ? 1 : 0;
  const auto size = size_ == dataset::infinite ? dataset::infinite : whole + rest;
  auto made_by = made(
    stage_kind::batch, *this,
    [=](const dataset& before) { return before.batch(n, drop_remainder); }, {n}, drop_remainder);
  return {size,
          after(open_,
                [n, source_size = size_](const element_reader& read, uint64_t epoch,
                                         uint64_t index) -> expected<element> {
                  std::vector<element> elements;
                  const auto begin = saturated_product(index, n);
                  const auto end = std::min(saturated_sum(begin, n), source_size);
                  if (begin == end)
                    return fail(errc::limit_exceeded,
                                "batch: elements beyond number 2^64 are asked for");
                  for (auto i = begin; i < end; ++i) {
                    auto source = read(epoch, i);
                    if (!source) return source;
                    elements.push_back(std::move(*source));
                  }
                  return stack(elements);
                }),
          std::move(made_by)};
}

// A pass through the result is several passes through the source. Its numbers must differ from
// those of all other passes of ours; without an end there are 2^32 for each.
dataset dataset::repeat(uint64_t count) const {
  const auto size = saturated_product(size_, count);
  const auto passes = std::min(count, uint64_t{1} << 32);
  auto made_by = made(stage_kind::repeat, *this,
                      [=](const dataset& before) { return before.repeat(count); }, {count});
  return {size,
          after(open_,
                [passes, source_size = size_](const element_reader& read, uint64_t epoch,
                                              uint64_t index) {
                  return read(epoch * passes + index / source_size, index % source_size);
                }),
          std::move(made_by)};
}

dataset dataset::shard(uint64_t num_shards, uint64_t index) const {
  if (num_shards == shard_hint && index == shard_hint) return shard_when_distributed();
  require_not_negative("shard: num_shards", num_shards);
  require_not_negative("shard: index", index);
  require(index < num_shards,
          fmt::format("shard: there is no shard {} of {}, they count from 0", index, num_shards));
  const auto behind = size_ > index ? size_ - index : 0;
  const auto size = size_ == dataset::infinite ? dataset::infinite
                                               : behind / num_shards + (behind % num_shards != 0);
  auto made_by = made(stage_kind::shard, *this,
                      [=](const dataset& before) { return before.shard(num_shards, index); });
  return {size,
          after(open_, [num_shards, first = index](
                         const element_reader& read, uint64_t epoch,
                         uint64_t number) { return read(epoch, number * num_shards + first); }),
          std::move(made_by)};
}

dataset dataset::shard_when_distributed() const {
  return {size_, always([](uint64_t, uint64_t) -> expected<element> {
            return fail(errc::failed_precondition,
                        "shard: the shard of shard_hint is not known: distribute the "
                        "dataset with the policy hint");
          }),
          made(stage_kind::shard_hint, *this,
               [](const dataset& before) { return before.shard_when_distributed(); })};
}

dataset dataset::take(uint64_t count) const {
  return {std::min(size_, count), open_,
          made(stage_kind::take, *this, [=](const dataset& before) { return before.take(count); })};
}

dataset dataset::skip(uint64_t count) const {
  const auto skips_all = count >= size_ || static_cast<int64_t>(count) < 0;
  const auto rest = size_ == dataset::infinite ? dataset::infinite : size_ - count;
  const auto size = skips_all ? 0 : rest;
  auto made_by
    = made(stage_kind::skip, *this, [=](const dataset& before) { return before.skip(count); });
  return {size,
          after(open_, [count](const element_reader& read, uint64_t epoch,
                               uint64_t index) { return read(epoch, index + count); }),
          std::move(made_by)};
}

dataset dataset::map(std::function<element(element)> function) const {
  require(function != nullptr, "map: the function is empty");
  auto made_by = made(stage_kind::map, *this,
                      [function](const dataset& before) { return before.map(function); });
  return {size_,
          after(open_,
                [function = std::move(function)](const element_reader& read, uint64_t epoch,
                                                 uint64_t index) {
                  auto source = read(epoch, index);
                  if (!source) return source;
                  return called("map: the function", [&] { return function(std::move(*source)); });
                }),
          std::move(made_by)};
}

dataset dataset::map(std::function<element(element, const random_key&)> function,
                     uint64_t seed) const {
  require(function != nullptr, "map: the function is empty");
  auto made_by = made(stage_kind::map, *this, [function, seed](const dataset& before) {
    return before.map(function, seed);
  });
  return {
    size_,
    after(open_,
          [function = std::move(function), seed](const element_reader& read, uint64_t epoch,
                                                 uint64_t index) {
            auto source = read(epoch, index);
            if (!source) return source;
            const auto epoch_seed = random_stream{random_key{seed, "map", 0, epoch}}.next_u64();
            const random_key key{epoch_seed, "map", 0, index};
            return called("map: the function", [&] { return function(std::move(*source), key); });
          }),
    std::move(made_by)};
}

dataset dataset::prefetch(uint64_t count, executor elsewhere) const {
  require_not_negative("prefetch: count", count);
  if (count == 0 || !elsewhere) return *this;
  auto made_by = made(stage_kind::prefetch, *this, [count, elsewhere](const dataset& before) {
    return before.prefetch(count, elsewhere);
  });
  return {
    size_,
    [count, elsewhere = std::move(elsewhere), before = open_, size = size_]() -> element_reader {
      auto ahead = std::make_shared<prefetcher>(before(), size, count, elsewhere);
      return [ahead](uint64_t epoch, uint64_t index) { return ahead->at(epoch, index); };
    },
    std::move(made_by)};
}

// ---- iterating ----

dataset_iterator dataset::iterate(uint64_t pass) const {
  return {*this, open_(), pass};
}

expected<std::optional<element>> dataset_iterator::next() {
  if (delivered_ == size_) return std::nullopt;
  return called(reader_name, [&] { return read_(pass_, delivered_++); }).map([](element&& one) {
    return std::optional{std::move(one)};
  });
}

tensor dataset_iterator::position() const {
  return make_position({delivered_, pass_}, size_);
}

expected<void> dataset_iterator::restore(const tensor& position) {
  return read_position(position, size_, "elements").map([this](const data_position& at) {
    delivered_ = at.delivered;
    pass_ = at.pass;
  });
}

} // namespace troupe
