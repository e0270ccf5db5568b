// SPDX-License-Identifier: Apache-2.0
// The contents of a checkpoint file: a job as named tensors and one line of text.
#pragma once

#include "actors/checkpoint/safetensors_file.hpp"
#include "actors/interfaces/job_snapshot.hpp"

namespace troupe {

/// The contents of a checkpoint file. The tensors' names are those that other tools look for:
///
/// | tensor                       | content                                               |
/// |------------------------------|-------------------------------------------------------|
/// | `<variable>`                 | a variable                                            |
/// | `<variable>/<slot>`          | a slot of its optimizer: "weights/momentum"           |
/// | `<variable>/<average>`       | its moving average                                    |
/// | `global_step`                | updates made, i64, []                                 |
/// | `replica_<index>/<name>`     | an array that the trainer has kept for a replica      |
/// | `backups/<name>`             | estimates for dynamic backups, if a job has these     |
///
/// Where a variable has the name of another tensor, as `global_step`, that other tensor is
/// `<name>#2`.
///
/// The metadata's `troupe.job` is a JSON text with everything that is no array: step, clock,
/// tokens, versions, and where each replica is.
/// @param notes Further metadata, the trainer's own. Tensors share the snapshot's memory.
[[nodiscard]] safetensors_content to_content(const job_snapshot& snapshot,
                                             const safetensors_metadata& notes = {});

/// The job in the contents of a checkpoint file.
/// Errors: malformed, naming the part that is missing or wrong, or that it is no file of ours.
/// Wrong are a count that is negative or none of i64, a time beyond 146 years, two replicas of one
/// index, a `global_step` that is not the step of the metadata, and a token or a replica's
/// `local_step` beyond that step: gradients of it would pass for fresh ones until the job is there.
[[nodiscard]] expected<job_snapshot> to_snapshot(const safetensors_content& content);

} // namespace troupe
