// SPDX-License-Identifier: Apache-2.0
// The facts of a job that the maker of its input must know.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// A job reads through several pipelines, each for some of its replicas; the code that makes one
/// has to know which it is. Source: TensorFlow, `tf.distribute.InputContext`.
struct input_context {
  uint64_t num_input_pipelines = 1;
  uint64_t input_pipeline_id = 0;    ///< Counts from 0.
  uint64_t num_replicas_in_sync = 1; ///< In all pipelines together.

  /// The share of one replica in a global batch.
  /// Errors: throws `failure`: invalid_argument if the replicas do not divide it.
  [[nodiscard]] uint64_t get_per_replica_batch_size(uint64_t global_batch_size) const;

  bool operator==(const input_context&) const = default;
};

/// "input_context(input pipeline id 0, total: 2)"
[[nodiscard]] std::string to_string(const input_context& context);

/// Errors: throws `failure`: invalid_argument for a number of 0, a pipeline that is not there, and
/// replicas that the pipelines do not divide evenly, if there is more than one replica.
void check(const input_context& context);

} // namespace troupe
