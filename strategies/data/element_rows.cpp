// SPDX-License-Identifier: Apache-2.0
// Cuts and joins rows of tensors and texts.
#include "strategies/data/element_rows.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

constexpr auto add_batch = "call batch() before the dataset is divided among replicas";

bool have_rows_alike(const tensor& a, const tensor& b) {
  const auto& left = a.extents().dims();
  const auto& right = b.extents().dims();
  return a.type() == b.type() && left.size() == right.size()
         && std::equal(left.begin() + 1, left.end(), right.begin() + 1);
}

expected<void> check_rows_alike(std::span<const element> batches) {
  const auto& model = batches.front();
  for (const auto& batch : batches) {
    if (batch.tensors.size() != model.tensors.size()) {
      return fail(errc::invalid_argument,
                  fmt::format("rebatch: batches of {} and {} tensors cannot be joined",
                              model.tensors.size(), batch.tensors.size()));
    }
    for (size_t k = 0; k < batch.tensors.size(); ++k) {
      if (have_rows_alike(batch.tensors[k], model.tensors[k])) continue;
      return fail(
        errc::invalid_argument,
        fmt::format("rebatch: tensor {} is {} {} in one batch and {} {} in the next: make "
                    "them alike with map()",
                    k, to_string(model.tensors[k].type()), to_string(model.tensors[k].extents()),
                    to_string(batch.tensors[k].type()), to_string(batch.tensors[k].extents())));
    }
  }
  return {};
}

tensor join_tensors(std::span<const element> batches, size_t index) {
  auto dims = batches.front().tensors[index].extents().dims();
  dims[0] = 0;
  for (const auto& batch : batches)
    dims[0] += batch.tensors[index].extents()[0];
  return in_sequence(batches, index, shape{std::move(dims)});
}

} // namespace

expected<uint64_t> rows_of(const element& batch, bool comes_of_example) {
  if (batch.tensors.empty()) {
    if (comes_of_example && batch.rows == 0) {
      return fail(errc::invalid_argument,
                  fmt::format("rebatch: a text has no rows to divide: {}, or set `rows` where a "
                              "function makes batches of texts",
                              add_batch));
    }
    const auto is_told = batch.rows > 0 && batch.texts.size() % batch.rows == 0;
    return is_told ? batch.rows : batch.texts.size();
  }
  for (const auto& one : batch.tensors) {
    if (one.rank() == 0) {
      return fail(errc::invalid_argument,
                  fmt::format("rebatch: a scalar has no rows to divide: {}", add_batch));
    }
  }
  const auto rows = batch.tensors.front().extents()[0];
  for (const auto& one : batch.tensors) {
    if (one.extents()[0] != rows) {
      return fail(errc::invalid_argument,
                  fmt::format("rebatch: tensors of {} and {} rows are no batch: {}", rows,
                              one.extents()[0], add_batch));
    }
  }
  const auto count = static_cast<uint64_t>(rows);
  if (count == 0 ? !batch.texts.empty() : batch.texts.size() % count != 0) {
    return fail(errc::invalid_argument,
                fmt::format("rebatch: {} texts and {} rows are no batch: {}", batch.texts.size(),
                            rows, add_batch));
  }
  return count;
}

element side_by_side(std::vector<element> parts) {
  element all;
  for (const auto& part : parts)
    all.rows = std::max(all.rows, part.rows);
  auto has_as_many = [rows = all.rows](const element& part) {
    return rows_of(part) == rows && part.texts.size() % std::max<uint64_t>(rows, 1) == 0;
  };
  if (!std::ranges::all_of(parts, has_as_many)) all.rows = 0;
  for (auto& part : parts)
    std::ranges::move(part.tensors, std::back_inserter(all.tensors));
  const auto rows = std::max<uint64_t>(all.rows, 1); // an example is one
  for (uint64_t row = 0; row < rows; ++row)
    for (auto& part : parts) {
      const auto each = static_cast<ptrdiff_t>(part.texts.size() / rows);
      const auto first = part.texts.begin() + static_cast<ptrdiff_t>(row) * each;
      std::move(first, first + each, std::back_inserter(all.texts));
    }
  return all;
}

element slice_rows(const element& batch, uint64_t begin, uint64_t end) {
  const auto rows = rows_of(batch);
  TROUPE_ASSERT(rows && begin <= end && end <= *rows, begin, end);
  element part;
  for (const auto& one : batch.tensors)
    part.tensors.push_back(one.slice(static_cast<int64_t>(begin), static_cast<int64_t>(end)));
  const auto each = *rows == 0 ? 0 : batch.texts.size() / *rows;
  for (auto i = begin * each; i < end * each; ++i)
    part.texts.push_back(batch.texts[i]);
  part.rows = end - begin;
  return part;
}

expected<element> join_rows(std::span<const element> batches) {
  TROUPE_ASSERT(!batches.empty());
  if (batches.size() == 1) return batches.front();
  if (auto done = check_rows_alike(batches); !done) return tl::unexpected(done.error());
  element result;
  for (size_t k = 0; k < batches.front().tensors.size(); ++k)
    result.tensors.push_back(join_tensors(batches, k));
  for (const auto& one : batches)
    result.texts.insert(result.texts.end(), one.texts.begin(), one.texts.end());
  for (const auto& one : batches)
    result.rows += *rows_of(one);
  return result;
}

} // namespace troupe
