// SPDX-License-Identifier: Apache-2.0
// Counts rows by making the stages again after numbers.
#include "strategies/data/batch_rows.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/data/dataset_stage.hpp"

#include <algorithm>

namespace troupe {

namespace {

uint64_t total_rows(const dataset& batches);

bool cuts(stage_kind kind) {
  return kind == stage_kind::batch || kind == stage_kind::rebatch;
}

// Rows that a stage of batches cuts: elements of its input, or their rows.
uint64_t rows_to_cut(const dataset_stage& cutting) {
  const auto& input = cutting.inputs.front();
  return cutting.kind == stage_kind::batch ? input.size() : total_rows(input);
}

// True if no batch is smaller than the others.
bool all_full(const dataset& batches) {
  const auto& stage = batches.made_by();
  if (!cuts(stage.kind)) return std::ranges::all_of(stage.inputs, all_full);
  const auto rows = stage.drop_remainder ? dataset::infinite : rows_to_cut(stage);
  return rows == dataset::infinite || rows % stage.numbers.front() == 0;
}

// The rows of a batch as an element.
element number(uint64_t rows) {
  tensor value{dtype::i64, {}};
  value.mutable_values<int64_t>()[0] = static_cast<int64_t>(rows);
  return {{std::move(value)}, {}};
}

// The same stages after numbers of rows instead of batches. A hint leaves its input as it is:
// `auto_shard` counts again once it has put a shard there.
dataset rows_of_batches(const dataset& batches) {
  const auto& stage = batches.made_by();
  if (cuts(stage.kind)) {
    const auto size = stage.numbers.front();
    const auto rows = rows_to_cut(stage);
    element_reader read = [=](uint64_t, uint64_t index) -> expected<element> {
      return number(std::min(size, rows - index * size));
    };
    return {batches.size(), [read] { return read; }};
  }
  // All inputs of a zip have the same batches, and numbers are not read ahead.
  if (stage.kind == stage_kind::zip)
    return rows_of_batches(stage.inputs.front()).take(batches.size());
  if (stage.kind == stage_kind::prefetch || stage.kind == stage_kind::shard_hint)
    return rows_of_batches(stage.inputs.front());
  return stage.again(mapped(stage.inputs, rows_of_batches));
}

uint64_t rows_at(const element_reader& sizes, uint64_t epoch, uint64_t index) {
  const auto size = sizes(epoch, index);
  TROUPE_ASSERT(size);
  return static_cast<uint64_t>(size->tensors[0].values<int64_t>()[0]);
}

// For stages that let every batch of their input come once, that is known without looking at each.
uint64_t total_rows(const dataset& batches) {
  const auto& stage = batches.made_by();
  if (batches.size() == dataset::infinite || batches.size() == 0) return batches.size();
  switch (stage.kind) {
  case stage_kind::batch:
  case stage_kind::rebatch: {
    const auto rows = rows_to_cut(stage);
    return stage.drop_remainder ? rows - rows % stage.numbers.front() : rows;
  }
  case stage_kind::prefetch:
  case stage_kind::shard_hint:
  case stage_kind::shuffle:
    return total_rows(stage.inputs.front());
  case stage_kind::repeat:
    return total_rows(stage.inputs.front()) * stage.numbers.front();
  case stage_kind::concatenate:
    return total_rows(stage.inputs[0]) + total_rows(stage.inputs[1]);
  default: {
    const auto sizes = rows_of_batches(batches).open();
    uint64_t total = 0;
    for (uint64_t i = 0; i < batches.size(); ++i)
      total += rows_at(sizes, 0, i);
    return total;
  }
  }
}

bool has_shuffle(const dataset& batches) {
  const auto& stage = batches.made_by();
  if (stage.kind == stage_kind::shuffle) return true;
  return !cuts(stage.kind) && std::ranges::any_of(stage.inputs, has_shuffle);
}

// Whether passes may differ in the number of their rows: a stage leaves batches out, and a shuffle
// says which.
bool is_drawn(const dataset& batches) {
  const auto& stage = batches.made_by();
  switch (stage.kind) {
  case stage_kind::batch:
  case stage_kind::rebatch:
    return false;
  case stage_kind::take:
  case stage_kind::skip:
  case stage_kind::shard:
  case stage_kind::shard_hint:
  case stage_kind::zip:
    return has_shuffle(batches);
  default:
    return std::ranges::any_of(stage.inputs, is_drawn);
  }
}

} // namespace

batch_rows::batch_rows(const dataset& batches) {
  const auto size = batch_size_of(batches);
  require(size > 0, "rebatch: the size of the batches is not known");
  batch_size_ = static_cast<uint64_t>(size);
  if (all_full(batches)) {
    const auto is_endless = batches.size() > dataset::infinite / batch_size_;
    total_ = is_endless ? dataset::infinite : batches.size() * batch_size_;
    return;
  }
  require(!is_drawn(batches),
          "rebatch: a shuffle decides whether the smaller batch is left out: drop the remainder in "
          "batch(), or shuffle before it");
  total_ = total_rows(batches);
  sizes_ = rows_of_batches(batches);
  const auto* pass = &batches;
  while (pass->made_by().kind == stage_kind::prefetch)
    pass = &pass->made_by().inputs.front();
  if (pass->made_by().kind == stage_kind::repeat) pass = &pass->made_by().inputs.front();
  period_batches_ = pass->size();
  period_rows_ = total_rows(*pass);
}

row_finder::row_finder(const batch_rows& rows) : rows_(rows) {
  if (rows_.sizes_) sizes_ = rows_.sizes_->open();
}

row_finder::place row_finder::find(uint64_t epoch, uint64_t row) {
  TROUPE_ASSERT(row < rows_.total_, row, rows_.total_);
  const auto size = rows_.batch_size_;
  if (!sizes_) return {row / size, row - row % size, size};
  const auto period = row / rows_.period_rows_;
  const auto period_begin = period * rows_.period_rows_;
  const bool is_behind = epoch == epoch_ && row >= here_.row_first && here_.rows > 0;
  if (!is_behind || here_.row_first < period_begin) {
    const auto batch = period * rows_.period_batches_;
    here_ = {batch, period_begin, rows_at(sizes_, epoch, batch)};
    epoch_ = epoch;
  }
  while (row >= here_.row_first + here_.rows) {
    here_.row_first += here_.rows;
    ++here_.batch;
    here_.rows = rows_at(sizes_, epoch, here_.batch);
  }
  return here_;
}

} // namespace troupe
