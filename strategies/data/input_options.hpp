// SPDX-License-Identifier: Apache-2.0
// How the input of a job comes to its replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// How often the function that makes a dataset is called.
enum class input_replication_mode : uint8_t {
  per_worker,  ///< Once for each pipeline; its replicas take turns with the elements.
  per_replica, ///< Once for each replica, which has its elements for itself.
};

/// Source: TensorFlow, `tf.distribute.InputOptions`. The names of devices mean nothing to a CPU;
/// the options are there for their consistency.
struct input_options {
  bool fetch_to_device = true; ///< Elements are copied to the device of their replica.
  input_replication_mode replication_mode = input_replication_mode::per_worker;
  bool place_dataset_on_device = false; ///< The pipeline itself runs there.
  uint32_t per_replica_buffer_size = 1; ///< Elements read ahead for each replica.
  /// Told that every pipeline reads everything, which is allowed but costs; empty: a line on
  /// standard error, once in a process.
  std::function<void(const std::string&)> on_warning = {};
};

/// Whether options make sense for a function that makes datasets.
/// Errors: throws `failure`: invalid_argument for `place_dataset_on_device` without `per_replica`,
/// or with `fetch_to_device`.
void check(const input_options& options);

} // namespace troupe
