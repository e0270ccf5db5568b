// SPDX-License-Identifier: Apache-2.0
// Divides batches and replicas evenly, or refuses.
#include "strategies/data/input_context.hpp"

#include "messages/errors/throw_failure.hpp"

#include <fmt/format.h>

namespace troupe {

uint64_t input_context::get_per_replica_batch_size(uint64_t global_batch_size) const {
  require(num_replicas_in_sync > 0, "get_per_replica_batch_size: there is no replica");
  require(
    static_cast<int64_t>(global_batch_size) >= 0,
    fmt::format("get_per_replica_batch_size: global_batch_size is {}; it must not be negative",
                static_cast<int64_t>(global_batch_size)));
  require(global_batch_size % num_replicas_in_sync == 0,
          fmt::format("get_per_replica_batch_size: a global batch of {} cannot be divided evenly "
                      "by {} replicas",
                      global_batch_size, num_replicas_in_sync));
  return global_batch_size / num_replicas_in_sync;
}

std::string to_string(const input_context& context) {
  return fmt::format("input_context(input pipeline id {}, total: {})", context.input_pipeline_id,
                     context.num_input_pipelines);
}

void check(const input_context& context) {
  const auto& [pipelines, pipeline, replicas] = context;
  require(
    pipelines > 0 && replicas > 0,
    fmt::format("distribute: {} replicas cannot read through {} pipelines", replicas, pipelines));
  require(pipeline < pipelines,
          fmt::format("distribute: there is no pipeline {} of {}, they count from 0", pipeline,
                      pipelines));
  require(replicas == 1 || replicas % pipelines == 0,
          fmt::format("distribute: every pipeline feeds as many replicas as the others, but {} "
                      "replicas cannot be divided by {} pipelines",
                      replicas, pipelines));
}

} // namespace troupe
