// SPDX-License-Identifier: Apache-2.0
// The language models of `troupe train`, which guess each byte of a text from the bytes before it.
#pragma once

#include "actors/gpu/step_on_stream.hpp"
#include "kernels/tape/tape.hpp"
#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"
#include "tools/model/model_variable.hpp"

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The number of values of a byte.
inline constexpr int64_t byte_values = 256;

/// The kinds of language models.
enum class model_kind : uint8_t { perceptron, transformer };

[[nodiscard]] constexpr std::string_view to_string(model_kind kind) {
  return kind == model_kind::perceptron ? "perceptron" : "transformer";
}

/// The extents of a model and its dropout.
///
/// Perceptron: the bytes before the one to guess are embedded, put side by side, and sent through
/// hidden layers (gelu); a softmax over the 256 byte values is the guess. The defaults suit a text
/// of some ten kilobytes, which a model that sees further or forgets less would learn by heart
/// instead of learning from it.
/// Source: Bengio et al., "A neural probabilistic language model", JMLR 3 (2003), over bytes.
///
/// Transformer: each byte of a window guesses the next one. Embedded bytes plus a learned table of
/// positions go through layers of causal self-attention and of a hidden layer (gelu) of four times
/// the width; each normalises its input and adds to it. The table of embedded bytes is the
/// output's, too.
///
/// Source: Radford et al., "Language models are unsupervised multitask learners", 2019, over bytes.
struct language_model_config {
  model_kind kind = model_kind::perceptron;
  int64_t context = 5;                       ///< Bytes that the model sees.
  int64_t embedding_size = 32;               ///< Perceptron: numbers that stand for one byte.
  std::vector<int64_t> hidden_sizes = {512}; ///< Perceptron: width of each hidden layer, or none.
  double embedding_dropout = 0.4; ///< Perceptron: share of embedded numbers forgotten in training.
  double hidden_dropout = 0.6;    ///< Share of each layer's output forgotten in training.
  int64_t layers = 2;             ///< Transformer: each of attention and a hidden layer.
  int64_t heads = 4;              ///< Transformer: of each attention; they divide the width.
  int64_t width = 128;            ///< Transformer: numbers that stand for one position.
  bool recompute = false;         ///< Transformer: the backward pass computes each layer again.

  bool operator==(const language_model_config&) const = default;
};

/// The transformer that suits a text of some hundred kilobytes.
[[nodiscard]] language_model_config usual_transformer();

/// Everything that decides which variables a model has and what they mean, in a few words:
/// "transformer, context 64, layers 2, heads 4, width 128".
[[nodiscard]] std::string describe(const language_model_config& config);

/// Bytes that are guessed in one example: as many as a window has, or 1.
[[nodiscard]] int64_t guesses_per_example(const language_model_config& config);

/// The largest extent in a configuration, and the most hidden layers: beyond any use, and far from
/// overflow.
inline constexpr int64_t language_model_extent_max = 65536;
inline constexpr size_t language_model_layers_max = 64;

/// Whether all fields are within their ranges.
/// Errors: invalid_argument; the line names the field and its range.
[[nodiscard]] expected<void> validate(const language_model_config& config);

/// The variables of a model. The functions below take values in this order.
///
/// Perceptron: "embedding", then "hidden_0/weights", "hidden_0/bias", ..., "output/weights",
/// "output/bias". Weights are normal with a deviation of 1 / sqrt(inputs), biases 0.
///
/// Transformer: "embedding", "positions", then of each layer "layer_0/attention_norm/gain" and
/// ".../bias", and weights and bias of "layer_0/attention" (queries, keys and values side by side)
/// and "layer_0/projection"; "layer_0/hidden_norm", "layer_0/hidden", "layer_0/output"; at the end
/// "norm". Weights are normal with a deviation of 0.02; for projections and outputs, which are
/// added to a layer's input, it is 0.02 over the root of the number of sums. Gains are 1, biases 0.
/// @pre `validate(config)` has a value.
[[nodiscard]] std::vector<model_variable> variables_of(const language_model_config& config);

/// Bytes to guess, with the bytes before them.
/// Shape: contexts  [examples, context]  i64; perceptron: the nearest byte first; transformer: in
///                                       the order of the text
///        next      [examples]           i64; transformer: [examples * context]
struct text_batch {
  tensor contexts;
  tensor next;
};

/// The bytes at [begin, end) of a text, each with the bytes before it; before the text's beginning
/// stand zero bytes. A transformer sees them in windows of `context`, one after the other.
/// @pre begin <= end <= text.size(); whole windows.
[[nodiscard]] text_batch batch_at(const language_model_config& config, std::string_view text,
                                  size_t begin, size_t end);

/// Draws bytes, or windows, evenly from a text. They depend on the key alone: they are the same for
/// the same (seed, replica, iteration), whatever else happens in the job.
/// @pre The text is not empty; for a transformer, it is longer than a window.
[[nodiscard]] text_batch draw_batch(const language_model_config& config, std::string_view text,
                                    size_t examples, const random_key& key);

/// The result of a replica's computation in one step.
struct loss_and_gradients {
  double loss = 0; ///< Mean over the batch. Units: nats.
  /// In the order of the variables; a perceptron's embedding's is sparse.
  std::vector<gradient> gradients;
};

/// The loss and the gradients of a batch, with dropout drawn from `key`.
/// Errors: cancelled, once `stop` was asked to; invalid_argument, if the variables are not of this
/// model.
[[nodiscard]] expected<loss_and_gradients>
differentiate(const language_model_config& config, std::span<const tensor> variables,
              const text_batch& batch, const random_key& key, std::stop_token stop = {});

/// As `differentiate`, on the device of a stream and by its own tape: each version of a variable is
/// copied there once, and gradients are copied back. On the host's stream, the bits are the same.
/// Errors: as `differentiate` and the stream; unimplemented, if this build has no GPU support and
/// the stream is a GPU's.
[[nodiscard]] expected<step_on_stream>
differentiate_on(compute_stream& stream, const language_model_config& config,
                 std::span<const tensor> variables, const text_batch& batch, const random_key& key,
                 const differentiation& settings = {});

/// The loss of guessing text[begin, end of text), each byte from those before it, which may lie
/// before `begin`. A transformer takes windows of `context` bytes, the last one shorter: within
/// each, the first byte is guessed from one byte only. Units: bits per byte, as an arithmetic coder
/// would need with this model. Errors: as `differentiate`; invalid_argument, if there is no byte to
/// guess.
[[nodiscard]] expected<double> bits_per_byte(const language_model_config& config,
                                             std::span<const tensor> variables,
                                             std::string_view text, size_t begin,
                                             std::stop_token stop = {});

/// The logits of the byte after a text.
/// @param text May be empty; the model sees only its end.
/// Errors: invalid_argument, if the variables are not of this model.
[[nodiscard]] expected<std::vector<double>> next_byte_logits(const language_model_config& config,
                                                             std::span<const tensor> variables,
                                                             std::string_view text);

} // namespace troupe
