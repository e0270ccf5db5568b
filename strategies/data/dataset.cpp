// SPDX-License-Identifier: Apache-2.0
// Each stage of a dataset: its size, and which elements of the stage before it an element is made
// of.
#include "strategies/data/dataset.hpp"

#include "actors/failure.hpp"
#include "strategies/data/prefetch.hpp"
#include "strategies/data/shuffle_order.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace troupe {

namespace {

constexpr uint64_t infinite = dataset::infinite;

void require(bool condition, std::string message) {
  if (!condition) throw failure{error{errc::invalid_argument, std::move(message)}};
}

uint64_t saturated_sum(uint64_t a, uint64_t b) {
  return a > infinite - b ? infinite : a + b;
}

uint64_t saturated_product(uint64_t a, uint64_t b) {
  return a != 0 && b > infinite / a ? infinite : a * b;
}

// Opens a stage whose readers need nothing but a reader of the stage before.
template <class Reader>
std::function<element_reader()> after(std::function<element_reader()> before, Reader reader) {
  return [before = std::move(before), reader = std::move(reader)]() -> element_reader {
    return [read = before(), reader](uint64_t epoch, uint64_t index) {
      return reader(read, epoch, index);
    };
  };
}

// Opens a source, all of whose readers are the same.
template <class Reader>
std::function<element_reader()> always(Reader reader) {
  return [reader = std::move(reader)]() -> element_reader { return reader; };
}

// The code of a user may throw; no exception goes further than here.
template <class Function>
expected<element> called(const Function& function) {
  try {
    return function();
  } catch (const failure& failed) {
    return tl::unexpected(failed.reason());
  } catch (const std::exception& thrown) {
    return fail(errc::user_code, fmt::format("map: the function threw: {}", thrown.what()));
  } catch (...) {
    return fail(errc::user_code, "map: the function threw something unknown");
  }
}

} // namespace

dataset::dataset(uint64_t size, std::function<element_reader()> open)
  : size_(size), open_(std::move(open)) {}

// ---- sources ----

dataset dataset::from_tensors(std::vector<tensor> tensors) {
  for (auto& one : tensors)
    one = one.as_read_only();
  return {1, always([tensors = std::move(tensors)](uint64_t, uint64_t) -> expected<element> {
            return element{tensors, {}};
          })};
}

dataset dataset::from_tensor_slices(std::vector<tensor> tensors) {
  require(!tensors.empty(), "from_tensor_slices: there is no tensor");
  for (auto& one : tensors) {
    require(one.rank() > 0, "from_tensor_slices: a scalar has no rows");
    require(one.extents()[0] == tensors[0].extents()[0],
            fmt::format("from_tensor_slices: tensors of {} and {} rows", tensors[0].extents()[0],
                        one.extents()[0]));
    one = one.contiguous().as_read_only();
  }
  const auto rows = static_cast<uint64_t>(tensors[0].extents()[0]);
  return {
    rows, always([tensors = std::move(tensors)](uint64_t, uint64_t index) {
      element row;
      for (const auto& one : tensors) {
        const auto begin = static_cast<int64_t>(index);
        const auto& dims = one.extents().dims();
        row.tensors.push_back(
          one.slice(begin, begin + 1).reshape(shape{std::vector(dims.begin() + 1, dims.end())}));
      }
      return expected<element>{std::move(row)};
    })};
}

// ---- stages of several datasets ----

dataset dataset::zip(const std::vector<dataset>& datasets) {
  require(!datasets.empty(), "zip: there is no dataset");
  auto size = infinite;
  for (const auto& one : datasets)
    size = std::min(size, one.size_);
  return {size, [datasets]() -> element_reader {
            std::vector<element_reader> readers;
            readers.reserve(datasets.size());
            for (const auto& one : datasets)
              readers.push_back(one.open_());
            return [readers](uint64_t epoch, uint64_t index) -> expected<element> {
              element all;
              for (const auto& read : readers) {
                auto part = read(epoch, index);
                if (!part) return part;
                std::ranges::move(part->tensors, std::back_inserter(all.tensors));
                std::ranges::move(part->texts, std::back_inserter(all.texts));
              }
              return all;
            };
          }};
}

dataset dataset::concatenate(const dataset& other) const {
  require(size_ != infinite, "concatenate: nothing comes after a dataset without end");
  return {saturated_sum(size_, other.size_),
          [first = open_, second = other.open_, size = size_]() -> element_reader {
            return
              [read_first = first(), read_second = second(), size](uint64_t epoch, uint64_t index) {
                return index < size ? read_first(epoch, index) : read_second(epoch, index - size);
              };
          }};
}

// ---- stages of one dataset ----

dataset dataset::shuffle(uint64_t buffer_size, uint64_t seed, bool reshuffle_each_iteration) const {
  require(buffer_size > 0, "shuffle: a buffer of 0 elements gives none");
  return {size_, [=, before = open_, size = size_]() -> element_reader {
            auto order = std::make_shared<shuffle_order>(seed, buffer_size, size);
            return [=, read = before()](uint64_t epoch, uint64_t index) {
              return read(epoch, order->at(reshuffle_each_iteration ? epoch : 0, index));
            };
          }};
}

dataset dataset::batch(uint64_t n, bool drop_remainder) const {
  require(n > 0, "batch: a batch of 0 elements is none");
  const auto whole = size_ / n;
  const auto rest = size_ % n != 0 && !drop_remainder ? 1 : 0;
  const auto size = size_ == infinite ? infinite : whole + rest;
  return {size, after(open_,
                      [n, source_size = size_](const element_reader& read, uint64_t epoch,
                                               uint64_t index) -> expected<element> {
                        std::vector<element> elements;
                        const auto end = saturated_sum(index * n, n);
                        for (auto i = index * n; i < std::min(end, source_size); ++i) {
                          auto one = read(epoch, i);
                          if (!one) return one;
                          elements.push_back(std::move(*one));
                        }
                        return stack(elements);
                      })};
}

// A pass through the result is several passes through the source. Its numbers must differ from
// those of all other passes of ours; without an end there are 2^32 for each.
dataset dataset::repeat(uint64_t count) const {
  const auto size = saturated_product(size_, count);
  const auto passes = std::min(count, uint64_t{1} << 32);
  return {size, after(open_, [passes, source_size = size_](const element_reader& read,
                                                           uint64_t epoch, uint64_t index) {
            return read(epoch * passes + index / source_size, index % source_size);
          })};
}

dataset dataset::shard(uint64_t num_shards, uint64_t index) const {
  require(index < num_shards,
          fmt::format("shard: there is no shard {} of {}, they count from 0", index, num_shards));
  const auto behind = size_ > index ? size_ - index : 0;
  const auto size = size_ == infinite ? infinite : behind / num_shards + (behind % num_shards != 0);
  return {size, after(open_, [num_shards, first = index](const element_reader& read, uint64_t epoch,
                                                         uint64_t number) {
            return read(epoch, number * num_shards + first);
          })};
}

dataset dataset::take(uint64_t count) const {
  return {std::min(size_, count), open_};
}

dataset dataset::skip(uint64_t count) const {
  const auto size = size_ == infinite ? infinite : size_ - std::min(size_, count);
  return {size, after(open_, [count](const element_reader& read, uint64_t epoch, uint64_t index) {
            return read(epoch, index + count);
          })};
}

dataset dataset::map(std::function<element(element)> function) const {
  return {size_, after(open_, [function = std::move(function)](const element_reader& read,
                                                               uint64_t epoch, uint64_t index) {
            auto source = read(epoch, index);
            if (!source) return source;
            return called([&] { return function(std::move(*source)); });
          })};
}

dataset dataset::map(std::function<element(element, const random_key&)> function,
                     uint64_t seed) const {
  return {size_, after(open_, [function = std::move(function),
                               seed](const element_reader& read, uint64_t epoch, uint64_t index) {
            auto source = read(epoch, index);
            if (!source) return source;
            const auto epoch_seed = random_stream{random_key{seed, "map", 0, epoch}}.next_u64();
            const random_key key{epoch_seed, "map", 0, index};
            return called([&] { return function(std::move(*source), key); });
          })};
}

dataset dataset::prefetch(uint64_t count, executor elsewhere) const {
  if (count == 0 || !elsewhere) return *this;
  return {
    size_,
    [count, elsewhere = std::move(elsewhere), before = open_, size = size_]() -> element_reader {
      auto ahead = std::make_shared<prefetcher>(before(), size, count, elsewhere);
      return [ahead](uint64_t epoch, uint64_t index) { return ahead->at(epoch, index); };
    }};
}

// ---- iterating ----

dataset_iterator dataset::iterate() const {
  return dataset_iterator{*this, open_()};
}

expected<std::optional<element>> dataset_iterator::next() {
  if (delivered_ == size_) return std::nullopt;
  return read_(0, delivered_++).map([](element&& one) { return std::optional{std::move(one)}; });
}

tensor dataset_iterator::position() const {
  tensor position{dtype::i64, {2}};
  position.mutable_values<int64_t>()[0] = static_cast<int64_t>(delivered_);
  position.mutable_values<int64_t>()[1] = static_cast<int64_t>(size_);
  return position;
}

expected<void> dataset_iterator::restore(const tensor& position) {
  if (position.type() != dtype::i64 || position.extents() != shape{2})
    return fail(errc::invalid_argument, "restore: this is not the position of a dataset");
  const auto saved = position.contiguous();
  const auto numbers = saved.values<int64_t>();
  const auto delivered = static_cast<uint64_t>(numbers[0]);
  const auto size = static_cast<uint64_t>(numbers[1]);
  if (size != size_) {
    return fail(errc::invalid_argument,
                fmt::format("restore: the position is one in a dataset of {} elements, this one "
                            "has {}: the data or the stages have changed",
                            numbers[1], static_cast<int64_t>(size_)));
  }
  if (delivered > size_) {
    return fail(
      errc::invalid_argument,
      fmt::format("restore: {} elements cannot have been delivered of {}", numbers[0], numbers[1]));
  }
  delivered_ = delivered;
  return {};
}

} // namespace troupe
