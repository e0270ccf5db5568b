// SPDX-License-Identifier: Apache-2.0
// The input of a strategy: in every step, an element for each replica.
#pragma once

#include "strategies/data/distributed_dataset.hpp"
#include "strategies/values/distributed_value.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

class strategy;
class strategy_iterator;

/// A dataset that was distributed over the replicas of a strategy. A cheap value; the strategy
/// outlives it.
class strategy_dataset {
public:
  strategy_dataset(strategy& strategy, distributed_dataset elements)
    : strategy_(&strategy), elements_(std::move(elements)) {}

  /// Steps in one pass, or `dataset::infinite`.
  [[nodiscard]] uint64_t steps() const { return elements_.steps(); }

  /// True if in the last step some replicas may get fewer rows than others, or none.
  [[nodiscard]] bool has_partial_steps() const { return elements_.has_partial_steps(); }

  /// Begins the next pass at its first step. Each pass has other orders and random numbers. All
  /// processes of a job make the same number of passes. After `strategy_iterator::restore` comes
  /// the pass behind that one.
  [[nodiscard]] strategy_iterator iterate() const;

private:
  strategy* strategy_;
  distributed_dataset elements_;
  std::shared_ptr<uint64_t> next_pass_ = std::make_shared<uint64_t>(0); ///< Shared by all copies.
};

/// Reads a distributed dataset step by step.
///
///     for (auto batches = input.iterate(); auto batch = batches.next();)
///       strategy.run(step, *batch);
///
/// Thread: the strategy's.
class strategy_iterator {
public:
  /// @param next_pass The number of the dataset's next pass.
  strategy_iterator(strategy& strategy, distributed_iterator elements,
                    std::shared_ptr<uint64_t> next_pass)
    : strategy_(&strategy), elements_(std::move(elements)), next_pass_(std::move(next_pass)) {}

  /// The elements of the next step; nothing after the last.
  /// Errors: throws `failure`: wrong_context in a replica; as `distributed_iterator::next`.
  [[nodiscard]] std::optional<distributed_value<element>> next();

  /// Where this iterator stands, to be saved and gone on from. Shape: [3] i64
  [[nodiscard]] tensor position() const { return elements_.position(); }

  /// Goes to a position of this dataset. Errors: throws `failure` as `dataset_iterator::restore`.
  void restore(const tensor& position);

private:
  strategy* strategy_;
  distributed_iterator elements_;
  std::shared_ptr<uint64_t> next_pass_;
};

} // namespace troupe
