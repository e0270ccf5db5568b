// SPDX-License-Identifier: Apache-2.0
// A job as tensors with names and one line of text: what a checkpoint file holds.
#pragma once

#include "actors/checkpoint/safetensors_file.hpp"
#include "actors/interfaces/job_snapshot.hpp"

namespace troupe {

/// The contents of a checkpoint file. The tensors' names are those that other tools look for:
///
/// | tensor                       | what                                                  |
/// |------------------------------|-------------------------------------------------------|
/// | `<variable>`                 | a variable                                            |
/// | `<variable>/<slot>`          | what the optimizer keeps beside it: "weights/momentum" |
/// | `<variable>/<average>`       | its moving average                                    |
/// | `global_step`                | updates made, i64, []                                 |
/// | `replica_<index>/<name>`     | what the trainer has kept for a replica               |
///
/// Where a variable has the name of another tensor, as `global_step`, that one is `<name>#2`.
///
/// The metadata's `troupe.job` is a JSON text with everything that is no array: step, clock,
/// tokens, versions, and where each replica is.
/// @param notes Further metadata, the trainer's own. Tensors share the snapshot's memory.
[[nodiscard]] safetensors_content to_content(const job_snapshot& snapshot,
                                             const safetensors_metadata& notes = {});

/// The job in the contents of a checkpoint file.
/// Errors: malformed, if it is not one of ours or something in it is missing; the line says what.
[[nodiscard]] expected<job_snapshot> to_snapshot(const safetensors_content& content);

} // namespace troupe
