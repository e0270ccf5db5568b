// SPDX-License-Identifier: Apache-2.0
// Cuts batches anew: finds the rows of each, and joins them.
#include "strategies/data/rebatch.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/data/batch_rows.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/element_rows.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <optional>

namespace troupe {

namespace {

void require_batches(const dataset& batches) {
  require(batch_size_of(batches) != 0,
          "rebatch: the elements are single examples: call batch() with the global batch size, so "
          "that each batch can be divided among the replicas");
}

// Sizes of batches that are cut in turn.
void require_sizes(const std::vector<uint64_t>& sizes) {
  require(std::ranges::any_of(sizes, [](uint64_t size) { return size > 0; }),
          "rebatch: batches of 0 rows would never end");
  uint64_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    require_not_negative(fmt::format("rebatch: sizes[{}]", i), sizes[i]);
    sum += sizes[i]; // of two that are below 2^63
    require(static_cast<int64_t>(sum) >= 0, "rebatch: the sizes are together 2^63 rows or more");
  }
}

// Neighbours are cut from the same batch: it is read once.
class last_batch {
public:
  explicit last_batch(const dataset& batches)
    : read_(batches.open()), come_of_examples_(come_of_examples(batches)) {}

  expected<element> at(uint64_t epoch, uint64_t index) {
    if (held_ && epoch == epoch_ && index == index_) return *held_;
    held_.reset();
    auto batch = read_(epoch, index);
    if (!batch) return batch;
    if (auto rows = rows_of(*batch, come_of_examples_); !rows) return tl::unexpected(rows.error());
    held_ = *batch;
    epoch_ = epoch;
    index_ = index;
    return batch;
  }

  /// Any batch that is in memory already; nothing if none is.
  [[nodiscard]] const std::optional<element>& any() const { return held_; }

private:
  element_reader read_;
  bool come_of_examples_;
  std::optional<element> held_;
  uint64_t epoch_ = 0;
  uint64_t index_ = 0;
};

// Sizes that come in turn, and where each begins in its turn.
struct size_list {
  explicit size_list(std::vector<uint64_t> list) : sizes(std::move(list)), begins(sizes.size()) {
    std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), uint64_t{0});
    sum = begins.back() + sizes.back();
  }

  // How many batches these rows make.
  [[nodiscard]] uint64_t batches_of(uint64_t rows, bool drop_remainder) const {
    if (rows == dataset::infinite) return dataset::infinite;
    if (rows == 0) return 0;
    auto count = rows / sum * sizes.size();
    auto left = rows % sum;
    for (size_t turn = 0;; ++turn) {
      const auto size = sizes[turn % sizes.size()];
      if (size != 0 && left < (drop_remainder ? size : 1)) return count;
      left -= std::min(left, size);
      ++count;
    }
  }

  std::vector<uint64_t> sizes;
  std::vector<uint64_t> begins;
  uint64_t sum = 0;
};

class rebatcher {
public:
  rebatcher(const dataset& batches, const batch_rows& rows, const size_list& sizes)
    : batches_(batches), rows_total_(rows.total()), rows_(rows), sizes_(sizes) {}

  expected<element> read(uint64_t epoch, uint64_t index) {
    const auto turn = index % sizes_.sizes.size();
    auto row = index / sizes_.sizes.size() * sizes_.sum + sizes_.begins[turn];
    const auto end = std::min(row + sizes_.sizes[turn], rows_total_);
    if (row >= end) return without_rows(epoch);
    std::vector<element> parts;
    while (row < end) {
      const auto place = rows_.find(epoch, row);
      auto batch = batches_.at(epoch, place.batch);
      if (!batch) return batch;
      if (auto found = *rows_of(*batch); found != place.rows) return unexpected_rows(place, found);
      const auto part_end = std::min(end - place.row_first, place.rows);
      parts.push_back(slice_rows(*batch, row - place.row_first, part_end));
      row = place.row_first + part_end;
    }
    return join_rows(parts);
  }

private:
  // A batch without rows, in the form of any batch of the input.
  expected<element> without_rows(uint64_t epoch) {
    if (const auto& held = batches_.any()) return slice_rows(*held, 0, 0);
    return batches_.at(epoch, 0).map([](const element& one) { return slice_rows(one, 0, 0); });
  }

  static expected<element> unexpected_rows(const row_finder::place& place, uint64_t rows) {
    return fail(errc::invalid_argument,
                fmt::format("rebatch: batch {} has {} rows, and {} by its stages", place.batch,
                            rows, place.rows));
  }

  last_batch batches_;
  uint64_t rows_total_;
  row_finder rows_;
  size_list sizes_;
};

} // namespace

std::vector<uint64_t> batch_sizes_for_pipeline(uint64_t batch_size, uint64_t pipelines,
                                               uint64_t replicas_each, uint64_t pipeline) {
  require_not_negative("rebatch: batch_size", batch_size);
  require_not_negative("rebatch: pipelines", pipelines);
  require_not_negative("rebatch: replicas_each", replicas_each);
  require(batch_size > 0 && replicas_each > 0,
          fmt::format("rebatch: a global batch of {} cannot be divided among pipelines of {} "
                      "replicas",
                      batch_size, replicas_each));
  require(
    pipeline < pipelines,
    fmt::format("rebatch: there is no pipeline {} of {}, they count from 0", pipeline, pipelines));
  const auto replicas = pipelines * replicas_each;
  std::vector<uint64_t> sizes(replicas, batch_size / replicas);
  std::fill_n(sizes.begin(), batch_size % replicas, batch_size / replicas + 1);
  std::rotate(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(pipeline * replicas_each),
              sizes.end());
  return sizes;
}

dataset rebatch(const dataset& batches, const std::vector<uint64_t>& sizes, bool drop_remainder) {
  require_sizes(sizes);
  require_batches(batches);
  const batch_rows rows{batches};
  const size_list list{sizes};
  auto again = [sizes, drop_remainder](const std::vector<dataset>& inputs) {
    return rebatch(inputs.front(), sizes, drop_remainder);
  };
  dataset_stage made_by{.kind = stage_kind::rebatch,
                        .inputs = {batches},
                        .again = std::move(again),
                        .numbers = sizes,
                        .drop_remainder = drop_remainder};
  auto open = [batches, rows, list]() -> element_reader {
    auto cutter = std::make_shared<rebatcher>(batches, rows, list);
    return [cutter](uint64_t epoch, uint64_t index) { return cutter->read(epoch, index); };
  };
  return {list.batches_of(rows.total(), drop_remainder), std::move(open), std::move(made_by)};
}

dataset legacy_rebatch(const dataset& batches, uint64_t pieces) {
  require(pieces > 0, "legacy_rebatch: a batch in 0 pieces is lost");
  require_not_negative("legacy_rebatch: pieces", pieces);
  require_batches(batches);
  auto again = [pieces](const std::vector<dataset>& inputs) {
    return legacy_rebatch(inputs.front(), pieces);
  };
  dataset_stage made_by{.kind = stage_kind::legacy_rebatch,
                        .inputs = {batches},
                        .again = std::move(again),
                        .numbers = {pieces}};
  auto open = [batches, pieces]() -> element_reader {
    auto input = std::make_shared<last_batch>(batches);
    return [input, pieces](uint64_t epoch, uint64_t index) -> expected<element> {
      auto batch = input->at(epoch, index / pieces);
      if (!batch) return batch;
      const auto rows = *rows_of(*batch);
      const auto each = rows / pieces + (rows % pieces != 0);
      const auto begin = std::min(index % pieces * each, rows);
      return slice_rows(*batch, begin, std::min(begin + each, rows));
    };
  };
  const auto is_endless = batches.size() > dataset::infinite / pieces;
  return {is_endless ? dataset::infinite : batches.size() * pieces, std::move(open),
          std::move(made_by)};
}

} // namespace troupe
