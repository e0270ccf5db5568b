// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation: write down a computation, then ask for the gradients of its result.
#pragma once

#include "kernels/math/activations.hpp"
#include "kernels/math/matmul.hpp"
#include "kernels/tensor/context.hpp"
#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <stop_token>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// A value on a tape, by its position. Means nothing on another tape.
struct expression {
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
  uint32_t index = none;
};

/// A gradient, or the rows of the lookups that it is the sum of, in their order: an index may come
/// again and again.
using uncombined_gradient = std::variant<tensor, std::vector<indexed_slices>>;

/// Gradients of a loss that was multiplied by a scale before it was differentiated.
struct unscaled_gradients {
  std::vector<gradient> gradients; ///< Gradients of the loss itself, not scaled.
  tensor non_finite; ///< How many of their elements are infinite or NaN. Shape: []  f64
};

/// Which operands of a product are taken transposed: `t.matmul(h, table, {.b = true})`.
struct transposition {
  bool a = false;
  bool b = false;
};

/// How the windows of a convolution or a pooling go over an image, in both directions alike.
struct window_steps {
  int64_t stride = 1;  ///< Pixels from one window to the next.
  int64_t padding = 0; ///< Pixels of nothing that are added on each side.
};

/// The author of a model should not have to write its derivative as well. A tape computes each
/// operation at once and remembers it; `gradients` then walks back from the result.
///
///     tape t;
///     auto w = t.parameter(weights);
///     auto h = t.tanh(t.linear(t.constant(inputs), w, t.parameter(bias)));
///     auto loss = t.softmax_cross_entropy(h, labels);
///     expected<std::vector<gradient>> g = t.gradients(loss, {w});
///
/// Operands are f32 or f64, all of one type. An operation on operands that do not fit together, or
/// that comes after the stop token was asked to stop, does nothing, and neither does any operation
/// after it: the tape keeps the first failure, and `value` and `gradients` return it. So a model
/// needs one check, at its end, and nothing is thrown.
///
/// Thread: one at a time. The work is done on the calling thread; replicas run side by side.
template <class Context>
class basic_tape {
public:
  /// @param stop Asked before each operation, forward and backward; then the failure is
  /// `cancelled`.
  /// @param precision The precision of all matrix products, forward and backward, including those
  /// of attention. Convolutions are full.
  explicit basic_tape(std::stop_token stop = {}, Context on = {},
                      product_precision precision = product_precision::full);

  basic_tape(const basic_tape&) = delete;
  basic_tape& operator=(const basic_tape&) = delete;

  /// A value to differentiate by. The tensor is shared, not copied: leave it unchanged while the
  /// tape lives.
  expression parameter(const tensor& value);

  /// A value that is given, like the examples. A value on the host is copied to where the tape
  /// computes.
  expression constant(const tensor& value);

  /// The product of two matrices, or of each pair of a batch, in the tape's precision; f64 has the
  /// full one alone.
  /// Shape: a [rows, inner], b [inner, columns] (or their transposes) -> [rows, columns];
  ///        a [batch, rows, inner], b [batch, inner, columns] -> [batch, rows, columns]
  expression matmul(expression a, expression b, transposition transposed = {});

  /// One bias for all rows, or a table for all sequences, as of positions.
  /// Shape: input [..., extents of bias], bias -> as input
  expression add_bias(expression input, expression bias);

  /// A dense layer: the bits of `add_bias(matmul(input, weights), bias)`, in one array.
  /// Shape: input [rows, inner], weights [inner, columns], bias [columns] -> [rows, columns]
  expression linear(expression input, expression weights, expression bias);

  /// Element by element. Shape: a, b of one shape -> the same
  expression add(expression a, expression b);

  /// Element by element. Shape: a, b of one shape -> the same
  expression multiply(expression a, expression b);

  /// factor * input.
  expression scale(expression input, double factor);

  /// Functions of a number, element by element.
  expression tanh(expression input) { return activate(activation::tanh, input); }

  expression relu(expression input) { return activate(activation::relu, input); }

  expression sigmoid(expression input) { return activate(activation::sigmoid, input); }

  expression gelu(expression input) { return activate(activation::gelu, input); }

  expression exp(expression input) { return activate(activation::exp, input); }

  expression log(expression input) { return activate(activation::log, input); }

  expression activate(activation kind, expression input);

  /// Each row normalised over the last extent, then scaled and shifted.
  /// Shape: input [..., columns], gain [columns], bias [columns] -> as input
  expression layer_norm(expression input, expression gain, expression bias, double epsilon = 1e-5);

  /// Each row divided by its root mean square over the last extent, then scaled.
  /// Shape: input [..., columns], gain [columns] -> as input
  expression rms_norm(expression input, expression gain, double epsilon = 1e-5);

  /// Each position of a sequence takes what it needs from those up to it, apart for each head, in
  /// the tape's precision; f64 has the full one alone.
  /// Shape: packed [batch, context, 3 * width] -> [batch, context, width], where queries, keys and
  ///        values lie side by side, each of them head by head
  /// Errors: invalid_argument, if the heads are none, or do not divide the width.
  expression causal_self_attention(expression packed, int64_t heads);

  /// Each window of an image, weighed and added up for each output channel. For a bias of each
  /// channel, add it with `add_bias`. Full in every precision of the tape.
  /// Shape: input [batch, height, width, channels],
  ///        weights [window height, window width, channels, outputs]
  ///        -> [batch, (height + 2 * padding - window height) / stride + 1, ..., outputs]
  /// Errors: invalid_argument, if no window fits, or if the padding is as large as a window.
  expression conv2d(expression input, expression weights, window_steps steps = {});

  /// The largest number of each square window of an image, apart for each channel; the first of
  /// equal ones has the gradient.
  /// Shape: input [batch, height, width, channels]
  ///        -> [batch, (height + 2 * padding - window) / stride + 1, ..., channels]
  /// Errors: as `conv2d`.
  expression max_pool2d(expression input, int64_t window, window_steps steps);

  /// Drops elements at `rate` and scales the others by 1 / (1 - rate); a rate of 0 does nothing.
  /// @param key Names the mask: another key for each layer, replica and step.
  /// @param placed The key where the tape computes, as bytes of `key_elements` i64, if it lies
  /// there: then on a GPU it is read there, each time that a graph of this is launched.
  expression dropout(expression input, double rate, const random_key& key,
                     const tensor& placed = {});

  /// Elements of the key of a dropout as a tensor of i64.
  static constexpr int64_t key_elements = sizeof(random_key) / sizeof(int64_t);

  /// table[indices]. Shape: table [rows, columns], indices [...] i64 -> [..., columns]
  /// @param placed The indices where the tape computes, if they lie there; else they are copied.
  expression embedding(expression table, const tensor& indices, const tensor& placed = {});

  /// The same elements in another shape of the same count.
  expression reshape(expression input, const shape& extents);

  /// Shape: [rows, columns] -> [columns, rows]
  expression transpose(expression input);

  /// Rows [begin, end) of the first extent. Shape: [rows, ...] -> [end - begin, ...]
  expression slice(expression input, int64_t begin, int64_t end);

  /// The rows of both, those of `a` first. Shape: [n, ...], [m, ...] -> [n + m, ...]
  expression concatenate(expression a, expression b);

  /// The sum of each row. Shape: [..., columns] -> [...]
  expression row_sums(expression input);

  /// The mean of all elements. Shape: any but empty -> []
  expression mean(expression input);

  /// The mean over the rows of -log softmax(logits)[label], in nats; 0 without rows, so that a
  /// replica whose batch is empty changes nothing.
  /// Shape: logits [rows, classes], labels [rows] i64 -> []
  /// @param placed The labels where the tape computes, if they lie there; else they are copied.
  expression softmax_cross_entropy(expression logits, const tensor& labels,
                                   const tensor& placed = {});

  /// A part of a computation: writes operations on the tape and returns its result.
  using tape_part = std::function<expression()>;

  /// The result of `part`, without keeping its inner values: `gradients` calls it again for these,
  /// and all gradients have the bits that they have without. For parts with large inner values,
  /// like the layers of a deep model:
  ///
  ///     h = t.recompute([&t, weights, h] { return t.tanh(t.matmul(h, weights)); });
  ///
  /// @param part Computes the same each time, so randomness in it has keys. Takes any expressions
  /// of this tape, and makes no parameters. May contain parts of its own. Objects that it
  /// refers to live until the last call of `gradients`; its expressions mean nothing outside.
  /// Cost: the forward operations of the part once more.
  /// Errors: invalid_argument for an empty part, a parameter in one, `gradients` in one, and a part
  /// that, when it is called again, comes to another shape or takes what came after it: capture by
  /// value.
  expression recompute(tape_part part);

  /// The value of an expression.
  /// Errors: the first failure of the tape; invalid_argument for an expression that is not on it.
  [[nodiscard]] expected<tensor> value(expression of) const;

  /// The gradients of `loss` by each of `parameters`, in their order; zeros where it does not
  /// depend on one. May be called again, for another loss. The results may share memory with each
  /// other: read them only.
  /// Cost: about twice the operations of the forward pass.
  /// Errors: the first failure of the tape (cancelled after a stop); invalid_argument if `loss` has
  /// more than one element, or one of `parameters` is not a parameter of this tape.
  [[nodiscard]] expected<std::vector<gradient>> gradients(expression loss,
                                                          std::span<const expression> parameters);

  [[nodiscard]] expected<std::vector<gradient>>
  gradients(expression loss, std::initializer_list<expression> parameters) {
    return gradients(loss, std::span<const expression>(parameters.begin(), parameters.size()));
  }

  /// Called with the final gradient by one of the parameters.
  using gradient_ready = std::function<void(size_t parameter, const gradient& final_gradient)>;

  /// Gives each of these gradients to `ready` as soon as nothing more is added to it: those of the
  /// last layers come first, so that they can be sent while the others are computed.
  /// Errors: as above; `ready` may have been called with some gradients before.
  [[nodiscard]] expected<void> gradients(expression loss, std::span<const expression> parameters,
                                         const gradient_ready& ready);

  /// As `gradients`, but the rows of lookups are as the lookups left them, which takes nothing of
  /// the host. `combined` turns each into the gradient that `gradients` returns.
  [[nodiscard]] expected<std::vector<uncombined_gradient>>
  uncombined_gradients(expression loss, std::span<const expression> parameters);

  /// The rows of all lookups added up, each index once, ascending; arrays as they are.
  [[nodiscard]] gradient combined(const uncombined_gradient& parts) const;

  /// Divides the gradients of `scale` times a loss by the scale, and counts what is no finite
  /// number: see strategies/optimizers/loss_scale.hpp. The results lie where the tape computes, in
  /// memory that no other handle looks at, and nothing waits for them.
  [[nodiscard]] unscaled_gradients unscaled(std::vector<gradient> scaled, double scale) const;

private:
  /// Hands the gradient of an operation's output on to its operands; may reuse the memory.
  using backward_function = std::function<void(tensor output_gradient)>;

  struct node {
    tensor value;
    bool is_parameter = false;
    bool is_differentiable = false; ///< A parameter, or computed from one.
    backward_function backward;
    uint32_t first_use = expression::none; ///< The first operation that it is an operand of.
    tensor narrow{}; ///< The value as products take it, where they do not take it as it is.
  };

  /// The part that is being computed, or the outermost of those.
  struct running_part {
    uint32_t begin = expression::none;      ///< Its first node.
    uint32_t stands_for = expression::none; ///< The node that it is computed again for.
  };

  /// The gradient that a lookup gives to its table.
  struct arrived_rows {
    indexed_slices rows; ///< Their indices lie on the host.
    tensor indices;      ///< Where the tape computes.
  };

  /// The gradients that have arrived at a node on the way back.
  struct arrived {
    bool has_dense = false;
    tensor dense;
    std::vector<arrived_rows> sparse;
  };

  [[nodiscard]] const tensor& at(expression of) const { return nodes_[of.index].value; }

  [[nodiscard]] uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }

  [[nodiscard]] bool is_differentiable(expression of) const {
    return nodes_[of.index].is_differentiable;
  }

  bool usable(std::string_view operation, std::initializer_list<expression> operands);
  bool accept(const expected<void>& checked);
  expression refuse(error failure);
  expression leaf(std::string_view operation, const tensor& value, bool is_parameter);
  expression run(const tape_part& part, uint32_t stands_for = expression::none);
  expression multiply_matrices(expression a, expression b, transposition transposed,
                               product_precision precision);
  const tensor& operand(expression of, product_precision precision);
  tensor product_of(expression a, expression b, const matmul_form& form);
  expression record(tensor value, std::initializer_list<expression> operands,
                    const backward_function& backward);
  void contribute(expression to, tensor dense);
  void contribute_rows(expression to, const arrived_rows& from);
  void contribute_product(expression to, const matmul_form& form, const tensor& a, const tensor& b);
  void contribute_factors(expression a, expression b, const matmul_form& form, const tensor& g);
  expected<void> check_gradients(expression loss, std::span<const expression> parameters);
  expected<void> walk_back(expression loss, const std::function<void(uint32_t)>& on_passed = {});
  expected<void> walk_nodes(uint32_t begin, uint32_t end,
                            const std::function<void(uint32_t)>& on_passed = {});
  void walk_part(const tape_part& part, uint32_t stands_for, tensor output_gradient);
  uncombined_gradient collect(expression parameter);

  [[nodiscard]] static int64_t count_of(const tensor& value) {
    return value.extents().element_count();
  }

  Context on_;
  std::stop_token stop_;
  product_precision precision_;
  std::deque<node> nodes_;       ///< Stay in place when a part is computed again behind them.
  std::vector<arrived> arrived_; ///< One for each node while `gradients` runs.
  running_part part_;
  error failure_; ///< The first one; `errc::none` before.
};

/// The tape that replicas use on a CPU.
using tape = basic_tape<cpu::context>;

extern template class basic_tape<reference::context>;
extern template class basic_tape<cpu::context>;

} // namespace troupe
