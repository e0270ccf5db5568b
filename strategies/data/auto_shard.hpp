// SPDX-License-Identifier: Apache-2.0
// The part of a dataset that each of several pipelines reads.
#pragma once

#include "strategies/data/dataset.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// How a dataset is divided among its pipelines: by files, by elements, or not at all.
/// Source: TensorFlow, `tf.data.experimental.AutoShardPolicy`.
enum class auto_shard_policy : int8_t {
  off = -1,      ///< Each reads everything.
  automatic = 0, ///< `file` if that can be done, else `data`.
  file = 1,      ///< File f is read by pipeline f mod n; one that gets none has no elements.
  data = 2,      ///< Element i is used by pipeline i mod n; all read everything.
  hint = 3,      ///< Where the dataset says `shard(shard_hint, shard_hint)`.
};

/// Their names, as TensorFlow writes them: "OFF", "AUTO", "FILE", "DATA", "HINT".
[[nodiscard]] std::string_view to_string(auto_shard_policy policy);

/// The policy of that name, in letters of either size.
/// Errors: `invalid_argument` with the names there are.
[[nodiscard]] expected<auto_shard_policy> auto_shard_policy_of(std::string_view name);

/// The policy that `automatic` comes to for this dataset and several pipelines: `file`, or `data`.
/// Any other policy, and that of one pipeline, is itself.
/// @param by_elements Gets the reason why `automatic` is `data`, if it is; may be null.
/// Errors: throws `failure` as `auto_shard` by files.
[[nodiscard]] auto_shard_policy chosen_policy(const dataset& all, auto_shard_policy policy,
                                              uint64_t pipelines,
                                              std::string* by_elements = nullptr);

/// The part of a dataset that pipeline `pipeline` of `pipelines` reads; all of it if there is but
/// one.
///
/// By files, the shard goes right behind the source of the files, whatever stages follow, but for
/// `shard`, and both sides of `zip` and `concatenate` get one. A shuffle of the files comes after
/// it. By elements, it goes to the end, before a `prefetch`; a `rebatch` there is made a
/// `legacy_rebatch` in as many pieces as there are replicas, so that the pieces of a batch go to
/// all of them.
/// @param replicas In all pipelines together.
/// Errors: throws `failure`: invalid_argument if there is no such pipeline, and by elements if
/// there are fewer than pipelines, unless there is none; not_found by files if no files are read, a
/// stage hides them, or the files of a zip's sides differ in size, so that other rows would meet
/// (`automatic` then takes elements instead). Source: TensorFlow,
/// `core/grappler/optimizers/data/auto_shard.cc`, which does not look at the sizes.
[[nodiscard]] dataset auto_shard(const dataset& all, auto_shard_policy policy, uint64_t pipelines,
                                 uint64_t pipeline, uint64_t replicas);

} // namespace troupe
