// SPDX-License-Identifier: Apache-2.0
// Gradients of a loss by the tape of a GPU.
#pragma once

#include "actors/gpu/step_on_stream.hpp"
#include "kernels/tape/cuda_tape.hpp"

#include <functional>
#include <span>

namespace troupe {

/// Writes a loss down. @param variables Parameters on the tape.
using cuda_loss = std::function<expression(cuda_tape&, std::span<const expression> variables)>;

/// As `differentiate_with`, by the tape of a GPU's stream.
/// Errors: as there; unimplemented, if the stream is none of a GPU, or this build has no GPU
/// support.
[[nodiscard]] expected<step_on_stream> differentiate_on_gpu(compute_stream& on,
                                                            std::span<const tensor> variables,
                                                            const differentiation& settings,
                                                            const cuda_loss& loss);

} // namespace troupe
