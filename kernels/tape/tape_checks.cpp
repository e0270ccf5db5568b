// SPDX-License-Identifier: Apache-2.0
// Checks of the operands of each operation of a tape, and the sentences that refuse them.
#include "kernels/tape/tape_checks.hpp"

#include "kernels/math/dropout.hpp"
#include "messages/errors/printable.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace troupe::detail {

namespace {

/// Elements that a product has at most: of f64, bytes of them fit 63 bits.
constexpr size_t product_elements_max = size_t{1} << 59;

std::string describe(const tensor& value) {
  return std::string(to_string(value.type())) + ' ' + to_string(value.extents());
}

tl::unexpected<error> refuse(std::string_view operation, const std::string& reason) {
  return fail(errc::invalid_argument, std::string(operation) + ": " + reason);
}

tl::unexpected<error> refuse_types(std::string_view operation, const tensor& a, const tensor& b) {
  return fail(errc::type_mismatch, std::string(operation) + ": " + describe(a) + " and "
                                     + describe(b) + " differ in type; cast one of them");
}

/// @param products Operands and verb: "f64 [2, 2] has products".
tl::unexpected<error> refuse_precision(std::string_view operation, const std::string& products,
                                       product_precision precision) {
  return fail(errc::type_mismatch, std::string(operation) + ": " + products
                                     + " of full precision alone, not of "
                                     + std::string(to_string(precision)) + "; cast to f32");
}

expected<void> check_on_host(std::string_view operation, const std::string& name,
                             const tensor& value) {
  if (value.device().kind == device_kind::cpu) return {};
  return refuse(operation, name + " lie on the CPU's side, not on " + to_string(value.device())
                             + ": give the tensor from before it was copied");
}

/// Rows and columns of a matrix, or of those of a batch, as a product takes it.
std::pair<int64_t, int64_t> matrix_extents(const tensor& value, bool is_transposed) {
  auto rows = value.extents()[value.rank() - 2], columns = value.extents()[value.rank() - 1];
  return is_transposed ? std::pair{columns, rows} : std::pair{rows, columns};
}

/// Images [batch, height, width, channels], and at least one window in each.
expected<image_windows> check_windows(std::string_view operation, const tensor& input,
                                      int64_t window_height, int64_t window_width,
                                      window_steps steps) {
  if (input.rank() != 4)
    return refuse(operation,
                  "needs images [batch, height, width, channels], not " + describe(input));
  const auto height = input.extents()[1], width = input.extents()[2], channels = input.extents()[3];
  if (std::min({height, width, channels}) < 1)
    return refuse(operation, describe(input) + " are images without a pixel");
  const auto window = std::to_string(window_height) + " x " + std::to_string(window_width);
  if (std::min(window_height, window_width) < 1)
    return refuse(operation, "a window of " + window + " has no pixel");
  if (steps.stride < 1)
    return refuse(operation, "a stride of " + std::to_string(steps.stride) + " is not at least 1");
  if (steps.stride > static_cast<int64_t>(image_elements_max))
    return refuse(operation, "a stride of " + std::to_string(steps.stride) + " is over 2^31 - 1");
  if (std::max(window_height, window_width) > static_cast<int64_t>(image_elements_max))
    return refuse(operation, "a window of " + window + " has a side over 2^31 - 1");
  if (steps.padding < 0 || steps.padding >= std::min(window_height, window_width))
    return refuse(operation, "a padding of " + std::to_string(steps.padding)
                               + " is not within [0, the sides of a window of " + window + ")");
  if (window_height > height + 2 * steps.padding || window_width > width + 2 * steps.padding)
    return refuse(operation, "a window of " + window + " is larger than the images of "
                               + describe(input) + " with a padding of "
                               + std::to_string(steps.padding));
  // A longer stride than the padded side makes the same single window, and would overflow oneDNN's
  // positions.
  const auto longest = std::max(height, width) + 2 * steps.padding;
  auto size = [](int64_t extent) { return static_cast<size_t>(extent); };
  return image_windows{.batch = size(input.extents()[0]),
                       .height = size(height),
                       .width = size(width),
                       .channels = size(channels),
                       .window_height = size(window_height),
                       .window_width = size(window_width),
                       .stride = size(std::min(steps.stride, longest)),
                       .padding = size(steps.padding)};
}

/// @param windows As accepted for `input`. @param outputs Channels of the result.
expected<void> check_image_elements(std::string_view operation, const tensor& input,
                                    const image_windows& windows, size_t outputs) {
  const auto height = windows.output_height(), width = windows.output_width();
  if (input.element_count() <= image_elements_max
      && !has_more_elements(std::array{windows.batch, height, width, outputs}, image_elements_max))
    return {};
  return refuse(operation, describe(input) + " or the result has more than 2^31 - 1 elements");
}

} // namespace

expected<void> check_leaf(std::string_view operation, const tensor& value, device where) {
  if (value.device() != where)
    return refuse(operation, describe(value) + " lies on " + to_string(value.device())
                               + ", and the tape computes on " + to_string(where)
                               + "; copy it there");
  if (where.kind != device_kind::cpu && !value.is_contiguous())
    return refuse(operation, describe(value) + " does not lie row by row; copy it so before");
  if (value.type() == dtype::f32 || value.type() == dtype::f64) return {};
  return fail(errc::type_mismatch,
              std::string(operation) + ": the tape computes in f32 or f64, not in "
                + std::string(to_string(value.type()))
                + (is_floating(value.type()) ? "; cast the tensor"
                                             : "; make a tensor of f32 of its numbers"));
}

expected<matmul_form> check_matmul(std::string_view operation, const tensor& a, const tensor& b,
                                   transposition transposed, product_precision precision) {
  if (a.type() != b.type()) return refuse_types(operation, a, b);
  if (!has_precision(a.type(), precision))
    return refuse_precision(operation, describe(a) + " and " + describe(b) + " have a product",
                            precision);
  auto is_batch = a.rank() == 3;
  auto batch = is_batch ? a.extents()[0] : 1;
  if ((a.rank() != 2 && !is_batch) || a.rank() != b.rank() || (is_batch && b.extents()[0] != batch))
    return refuse(operation, "needs two matrices, or two batches of as many, not " + describe(a)
                               + " and " + describe(b));
  auto [rows, inner] = matrix_extents(a, transposed.a);
  auto [inner_b, columns] = matrix_extents(b, transposed.b);
  auto product = describe(a) + (transposed.a ? " transposed" : "") + " times " + describe(b)
                 + (transposed.b ? " transposed" : "");
  if (inner != inner_b)
    return refuse(operation, product + ": the inner extents " + std::to_string(inner) + " and "
                               + std::to_string(inner_b) + " differ");
  if (std::max({rows, inner, columns, batch}) > static_cast<int64_t>(matmul_extent_max))
    return refuse(operation, product + ": an extent is over 2^31 - 1");
  matmul_form form{.rows = static_cast<size_t>(rows),
                   .columns = static_cast<size_t>(columns),
                   .inner = static_cast<size_t>(inner),
                   .transpose_a = transposed.a,
                   .transpose_b = transposed.b,
                   .batch = static_cast<size_t>(batch),
                   .precision = precision};
  // With nothing to add up, operands without memory have a result as large as one likes.
  if (has_more_elements(std::array{form.batch, form.rows, form.columns}, product_elements_max))
    return refuse(operation, product + ": the result has more than 2^59 elements");
  return form;
}

expected<void> check_bias(const tensor& input, const tensor& bias) {
  if (input.type() != bias.type()) return refuse_types("add_bias", input, bias);
  const auto& all = input.extents().dims();
  const auto& last = bias.extents().dims();
  if (!last.empty() && last.size() <= all.size()
      && std::equal(last.begin(), last.end(), all.end() - static_cast<ptrdiff_t>(last.size())))
    return {};
  return refuse("add_bias",
                "bias " + describe(bias) + " does not have the last extents of " + describe(input));
}

expected<void> check_row_vector(std::string_view operation, const tensor& input,
                                std::string_view name, const tensor& vector) {
  if (input.type() != vector.type()) return refuse_types(operation, input, vector);
  if (input.rank() > 0 && vector.rank() == 1
      && input.extents()[input.rank() - 1] == vector.extents()[0])
    return {};
  return refuse(operation, std::string(name) + " " + describe(vector)
                             + " is not a vector as long as the last extent of " + describe(input));
}

expected<void> check_alike(std::string_view operation, const tensor& a, const tensor& b) {
  if (a.type() != b.type()) return refuse_types(operation, a, b);
  if (a.extents() == b.extents()) return {};
  return refuse(operation, describe(a) + " and " + describe(b) + " differ in shape");
}

expected<attention_form> check_attention(const tensor& packed, int64_t heads,
                                         product_precision precision) {
  constexpr auto name = "causal_self_attention";
  if (!has_precision(packed.type(), precision))
    return refuse_precision(name, describe(packed) + " has products", precision);
  if (packed.rank() != 3)
    return refuse(name, "needs [batch, context, 3 * width], not " + describe(packed));
  auto columns = packed.extents()[2];
  if (heads < 1 || columns == 0 || columns % 3 != 0 || columns / 3 % heads != 0)
    return refuse(name, describe(packed) + " does not make queries, keys and values of "
                          + std::to_string(heads) + " heads: take 3 * heads * head width columns");
  return attention_form{.batch = static_cast<size_t>(packed.extents()[0]),
                        .context = static_cast<size_t>(packed.extents()[1]),
                        .heads = static_cast<size_t>(heads),
                        .head_width = static_cast<size_t>(columns / 3 / heads),
                        .precision = precision};
}

expected<convolution_extents> check_convolution(const tensor& input, const tensor& weights,
                                                window_steps steps) {
  constexpr auto name = "conv2d";
  if (input.type() != weights.type()) return refuse_types(name, input, weights);
  if (weights.rank() != 4)
    return refuse(name, "needs weights [window height, window width, channels, outputs], not "
                          + describe(weights));
  const auto& dims = weights.extents();
  return check_windows(name, input, dims[0], dims[1], steps)
    .and_then([&](const image_windows& windows) -> expected<convolution_extents> {
      if (input.extents()[3] != dims[2] || dims[3] < 1)
        return refuse(name, "weights " + describe(weights) + " do not make outputs of the channels "
                              + "of " + describe(input));
      if (weights.element_count() > image_elements_max)
        return refuse(name, "weights " + describe(weights) + " have more than 2^31 - 1 elements");
      convolution_extents extents{windows, static_cast<size_t>(dims[3])};
      return check_image_elements(name, input, windows, extents.outputs).map([&] {
        return extents;
      });
    });
}

expected<image_windows> check_max_pool(const tensor& input, int64_t window, window_steps steps) {
  constexpr auto name = "max_pool2d";
  return check_windows(name, input, window, window, steps)
    .and_then([&](const image_windows& windows) {
      return check_image_elements(name, input, windows, windows.channels).map([&] {
        return windows;
      });
    });
}

expected<void> check_dropout(const tensor& input, double rate) {
  if (!(rate >= 0 && rate < 1))
    return refuse("dropout", "the rate " + printable(rate) + " is not within [0, 1)");
  if (input.element_count() > dropout_elements_max)
    return refuse("dropout", describe(input) + " has more than 2^34 elements");
  return {};
}

expected<void> check_embedding(const tensor& table, const tensor& indices) {
  if (indices.type() != dtype::i64)
    return fail(errc::type_mismatch, "embedding: indices are i64, not " + describe(indices));
  if (auto here = check_on_host("embedding", "indices", indices); !here) return here;
  if (table.rank() == 2) return {};
  return refuse("embedding", "the table is a matrix, not " + describe(table));
}

expected<void> check_placed(std::string_view operation, int64_t elements, const tensor& placed,
                            device where) {
  if (placed.data() == nullptr) return {};
  auto is_alike = placed.type() == dtype::i64 && placed.device() == where && placed.is_contiguous()
                  && placed.extents().element_count() == elements;
  if (is_alike) return {};
  return refuse(operation, "what is placed is " + std::to_string(elements) + " i64 on "
                             + to_string(where) + ", not " + describe(placed) + " on "
                             + to_string(placed.device()));
}

expected<void> check_reshape(const tensor& input, const shape& extents) {
  auto negative = [](int64_t extent) { return extent < 0; };
  if (std::any_of(extents.dims().begin(), extents.dims().end(), negative))
    return refuse("reshape", to_string(extents) + " has a negative extent");
  const std::vector<uint64_t> dims{extents.dims().begin(), extents.dims().end()};
  if (bytes_of_array(element_bytes(input.type()), dims) == input.bytes()) return {};
  return refuse("reshape",
                describe(input) + " has another number of elements than " + to_string(extents));
}

expected<void> check_transpose(const tensor& input) {
  if (input.rank() == 2) return {};
  return refuse("transpose", "needs a matrix, not " + describe(input));
}

expected<void> check_slice(const tensor& input, int64_t begin, int64_t end) {
  if (input.rank() > 0 && begin >= 0 && begin <= end && end <= input.extents()[0]) return {};
  return refuse("slice", describe(input) + " has no rows [" + std::to_string(begin) + ", "
                           + std::to_string(end) + ")");
}

expected<void> check_concatenate(const tensor& a, const tensor& b) {
  if (a.type() != b.type()) return refuse_types("concatenate", a, b);
  const auto& left = a.extents().dims();
  const auto& right = b.extents().dims();
  if (left.empty() || right.empty()
      || !std::equal(left.begin() + 1, left.end(), right.begin() + 1, right.end()))
    return refuse("concatenate",
                  describe(a) + " and " + describe(b) + " differ in shape beyond their rows");
  int64_t rows = 0;
  if (!__builtin_add_overflow(left[0], right[0], &rows)) return {};
  return refuse("concatenate", describe(a) + " and " + describe(b) + " have too many rows");
}

expected<void> check_row_sums(const tensor& input) {
  constexpr auto largest = static_cast<int64_t>(matmul_extent_max);
  if (input.rank() == 0) return refuse("row_sums", describe(input) + " has no rows");
  auto columns = input.extents()[input.rank() - 1];
  if (columns <= largest
      && input.extents().element_count() / std::max<int64_t>(1, columns) <= largest)
    return {};
  return refuse("row_sums", describe(input) + " has more than 2^31 - 1 rows or columns");
}

expected<void> check_mean(const tensor& input) {
  if (input.element_count() > 0) return {};
  return refuse("mean", describe(input)
                          + " has no elements; for a sum over the rows that all replicas have, "
                            "divide one of row_sums by their number");
}

expected<void> check_labels(const tensor& logits, const tensor& labels) {
  if (labels.type() != dtype::i64)
    return fail(errc::type_mismatch,
                "softmax_cross_entropy: labels are i64, not " + describe(labels));
  if (auto here = check_on_host("softmax_cross_entropy", "labels", labels); !here) return here;
  if (logits.rank() == 2 && labels.rank() == 1 && logits.extents()[0] == labels.extents()[0])
    return {};
  return refuse("softmax_cross_entropy", "needs logits [rows, classes] and labels [rows], not "
                                           + describe(logits) + " and " + describe(labels));
}

tl::unexpected<error> outside(std::string_view operation, const tensor& indices, size_t position,
                              int64_t limit) {
  return refuse(operation, std::to_string(indices.values<int64_t>()[position]) + " at position "
                             + std::to_string(position) + " is not within [0, "
                             + std::to_string(limit) + ")");
}

} // namespace troupe::detail
