// SPDX-License-Identifier: Apache-2.0
// The rows of a variable that have changed lately, without actors.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// An embedding has millions of rows, and a step changes a few. A reader that knows the variable as
/// it was some changes ago needs no more than the rows that have changed since.
class change_log {
public:
  change_log() = default;

  /// @param rows The variable's rows, its first extent; 0 for a scalar.
  explicit change_log(int64_t rows) : rows_(rows) {}

  /// The number of changes so far, from 1.
  [[nodiscard]] uint64_t revision() const { return revision_; }

  /// Anything may have changed.
  void add_all();

  /// Only the rows of these gradients have changed. @pre All are sparse.
  void add_rows(std::span<const gradient> gradients);

  /// The rows that have changed since a revision, in ascending order, each once; none if it is the
  /// present one. Nothing if they are not known any more, or are the larger part of all rows.
  [[nodiscard]] std::optional<std::vector<int64_t>> rows_since(uint64_t revision) const;

private:
  int64_t rows_ = 0;
  uint64_t revision_ = 1;
  std::deque<std::vector<int64_t>> changes_; ///< The latest, which led to `revision_`, is last.
  size_t logged_ = 0;                        ///< Rows in all of them.
};

} // namespace troupe
