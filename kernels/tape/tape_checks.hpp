// SPDX-License-Identifier: Apache-2.0
// Checks of the operands of each operation of a tape, and the sentences that refuse them.
#pragma once

#include "kernels/math/attention.hpp"
#include "kernels/math/images/convolution.hpp"
#include "kernels/math/matmul.hpp"
#include "kernels/tape/tape.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <string_view>

namespace troupe::detail {

// Errors, of all of these: invalid_argument for extents and values, type_mismatch for dtypes. The
// sentence names the operation and the shapes.

/// Parameters and constants are f32 or f64 and lie where the tape computes, on a device row by row.
[[nodiscard]] expected<void> check_leaf(std::string_view operation, const tensor& value,
                                        device where);

/// Two matrices of one type, or two batches of as many, with inner extents that agree; of a type
/// that has the precision.
[[nodiscard]] expected<matmul_form> check_matmul(std::string_view operation, const tensor& a,
                                                 const tensor& b, transposition transposed,
                                                 product_precision precision);

/// As the last extents of `input`, one or more.
[[nodiscard]] expected<void> check_bias(const tensor& input, const tensor& bias);

/// A vector as long as the last extent of `input`.
[[nodiscard]] expected<void> check_row_vector(std::string_view operation, const tensor& input,
                                              std::string_view name, const tensor& vector);

/// Two tensors of one type and shape.
[[nodiscard]] expected<void> check_alike(std::string_view operation, const tensor& a,
                                         const tensor& b);

/// Three parts side by side, of heads that divide each of them; of a type that has the precision.
[[nodiscard]] expected<attention_form> check_attention(const tensor& packed, int64_t heads,
                                                       product_precision precision);

/// Images and weights of one type and with the same channels, and windows that fit.
[[nodiscard]] expected<convolution_extents>
check_convolution(const tensor& input, const tensor& weights, window_steps steps);

/// Images, and windows that fit.
[[nodiscard]] expected<image_windows> check_max_pool(const tensor& input, int64_t window,
                                                     window_steps steps);

/// A rate within [0, 1), and no more elements than a stream has words.
[[nodiscard]] expected<void> check_dropout(const tensor& input, double rate);

/// A matrix and i64 indices of the host; whether they lie within the table is seen by a kernel.
[[nodiscard]] expected<void> check_embedding(const tensor& table, const tensor& indices);

/// Nothing, or so many i64 where the tape computes, row by row, in whatever shape.
[[nodiscard]] expected<void> check_placed(std::string_view operation, int64_t elements,
                                          const tensor& placed, device where);

/// As many elements after as before.
[[nodiscard]] expected<void> check_reshape(const tensor& input, const shape& extents);

/// A matrix.
[[nodiscard]] expected<void> check_transpose(const tensor& input);

/// Rows that there are.
[[nodiscard]] expected<void> check_slice(const tensor& input, int64_t begin, int64_t end);

/// Two tensors of one type whose extents are alike but for the first.
[[nodiscard]] expected<void> check_concatenate(const tensor& a, const tensor& b);

/// At least one extent, none of which a product cannot have.
[[nodiscard]] expected<void> check_row_sums(const tensor& input);

/// At least one element.
[[nodiscard]] expected<void> check_mean(const tensor& input);

/// A matrix with rows and an i64 label for each of them, labels of the host.
[[nodiscard]] expected<void> check_labels(const tensor& logits, const tensor& labels);

/// The failure for `indices[position]`, which is not in [0, limit).
[[nodiscard]] tl::unexpected<error> outside(std::string_view operation, const tensor& indices,
                                            size_t position, int64_t limit);

} // namespace troupe::detail
