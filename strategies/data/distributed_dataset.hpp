// SPDX-License-Identifier: Apache-2.0
// One dataset for many replicas.
#pragma once

#include "strategies/data/auto_shard.hpp"
#include "strategies/data/dataset.hpp"
#include "strategies/data/input_context.hpp"
#include "strategies/data/input_options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

class distributed_iterator;

/// The length of one pipeline, by which all pipelines agree on the end of a pass.
struct pipeline_extent {
  bool has_partial_steps = false; ///< Whether its batches may be smaller than others.
  bool has_elements = false;
  uint64_t begun_steps = 0; ///< Until all of its elements are delivered.
  uint64_t whole_steps = 0; ///< With an element for each replica; or `dataset::infinite`.
};

/// In every step a pipeline gives one element to each of its R replicas: replica r gets element
/// k R + r in step k.
///
/// At the end there may be elements for some replicas only, and all must make the step together. If
/// batches may be smaller than others, the rest get a batch without rows; if not, nothing has the
/// right shape, and the step is left out. So it is with a dataset without end. All pipelines of a
/// job take the same number of steps: as many as the longest needs, or as the shortest has.
///
/// A cheap value, as a dataset. Thread: any.
class distributed_dataset {
public:
  /// @param pipelines One for all replicas, or one for each. @param replicas How many there are.
  /// @pre One or `replicas` pipelines, at least one replica.
  distributed_dataset(std::vector<dataset> pipelines, uint64_t replicas);

  /// Steps in one pass, or `dataset::infinite`.
  [[nodiscard]] uint64_t steps() const { return steps_; }

  /// Replicas of this pipeline.
  [[nodiscard]] uint64_t replicas() const { return replicas_; }

  /// True if replicas that lack an element in a step get one without rows.
  [[nodiscard]] bool has_partial_steps() const { return has_partial_steps_; }

  /// A pass, from its first step; as `dataset::iterate`.
  [[nodiscard]] distributed_iterator iterate(uint64_t pass = 0) const;

  /// The length of this pipeline, for the others: see `end_with`.
  [[nodiscard]] pipeline_extent extent() const;

  /// Takes as many steps as all pipelines of the job. @pre This one has elements, or no steps are
  /// to be taken.
  /// @param all The extents of all pipelines, this one's included.
  void end_with(std::span<const pipeline_extent> all);

private:
  friend class distributed_iterator;
  friend void end_together(std::vector<distributed_dataset>& parts);

  [[nodiscard]] uint64_t whole_steps() const;
  [[nodiscard]] uint64_t begun_steps() const;

  [[nodiscard]] uint64_t replicas_of_each() const { return replicas_ / pipelines_.size(); }

  std::vector<dataset> pipelines_;
  uint64_t replicas_;
  bool has_partial_steps_;
  uint64_t steps_;
  std::optional<dataset> model_; ///< Its first element shows what one without rows looks like.
};

/// Reads a distributed dataset step by step. Thread: one owner at a time.
class distributed_iterator {
public:
  distributed_iterator(const distributed_dataset& source, uint64_t pass);

  /// The elements of the next step in the order of replicas; nothing after the last step. A step of
  /// which an element cannot be read counts as delivered.
  /// Shape: [replicas]
  /// Errors: as `dataset_iterator::next`; `invalid_argument` if an element without rows is needed
  /// and the others are no batches.
  [[nodiscard]] expected<std::optional<std::vector<element>>> next();

  /// Where this iterator stands: steps delivered, steps of a pass, -1 without end, and the pass.
  /// Shape: [3] i64
  [[nodiscard]] tensor position() const;

  /// The pass that it reads.
  [[nodiscard]] uint64_t pass() const { return pass_; }

  /// Goes to a position of this dataset. Errors: as `dataset_iterator::restore`.
  [[nodiscard]] expected<void> restore(const tensor& position);

private:
  expected<void> fill(std::vector<std::optional<element>>& step);
  [[nodiscard]] expected<std::optional<element>> first_of_all() const;

  distributed_dataset source_;
  std::vector<dataset_iterator> pipelines_;
  std::optional<element> without_rows_; ///< For replicas that no element is left for.
  uint64_t pass_;
  uint64_t delivered_ = 0;
};

/// How a dataset is distributed.
struct input_distribution {
  input_context context; ///< Which pipeline of how many this is, and for how many replicas.
  auto_shard_policy policy = auto_shard_policy::automatic;
  input_options options;
  executor elsewhere; ///< Reads ahead; without one nothing is read ahead.
};

/// This pipeline's part of a dataset of **global** batches: in each step all replicas
/// together take as many rows as one of them has. If there is more than one replica, batches are
/// cut: by `legacy_rebatch` if their size is not known or pipelines divide elements, else by
/// `rebatch`. Then pipelines divide the dataset (`auto_shard`), and as many elements as there are
/// replicas are read ahead.
/// Errors: throws `failure`: as `check`, `rebatch` and `auto_shard`; invalid_argument if a pipeline
/// has no elements, others have, and no step is left; unimplemented for the mode `per_replica`.
/// Source: TensorFlow, `Strategy.experimental_distribute_dataset`.
[[nodiscard]] distributed_dataset distribute(const dataset& global_batches,
                                             const input_distribution& distribution = {});

/// Distributes the dataset that `make` returns for this pipeline. `make` has divided the data and
/// made batches for single **replicas** already, so nothing is cut or divided. In the mode
/// `per_replica`, `make` is called for each replica, as if it were a pipeline of its own. `policy`
/// is of no matter.
///
/// This pipeline does not know how long the others are: see `end_with`.
/// Errors: throws `failure`: what `make` throws; as `check`; in the mode `per_replica`
/// unimplemented with several pipelines, and invalid_argument if a replica has no elements, others
/// have, and no step is left.
/// Source: TensorFlow, `Strategy.distribute_datasets_from_function`.
[[nodiscard]] distributed_dataset
distribute_from_function(const std::function<dataset(const input_context&)>& make,
                         const input_distribution& distribution = {});

/// Lets the pipelines of a job take the same number of steps; `distribute` has done so.
void end_together(std::vector<distributed_dataset>& parts);

} // namespace troupe
