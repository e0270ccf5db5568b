// SPDX-License-Identifier: Apache-2.0
// The model that `troupe train` trains: it guesses each byte of a text from the bytes before it.
#pragma once

#include "kernels/tape/tape.hpp"
#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errc.hpp"

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class compute_stream;

/// Shape of the model. The bytes before the one to guess are embedded, put side by side, and sent
/// through hidden layers (gelu); a softmax over the 256 byte values is the guess.
/// Source: Bengio et al., "A neural probabilistic language model", JMLR 3 (2003), over bytes.
///
/// The defaults suit a text of some ten kilobytes, which a model that sees further or forgets less
/// would learn by heart instead of learning from it.
struct language_model_config {
  int64_t context = 5;                       ///< Bytes that the model sees.
  int64_t embedding_size = 32;               ///< Numbers that stand for one byte.
  std::vector<int64_t> hidden_sizes = {512}; ///< Width of each hidden layer; may be empty.
  double embedding_dropout = 0.4;            ///< Share of embedded numbers forgotten in training.
  double hidden_dropout = 0.6;               ///< Share of each hidden layer forgotten in training.

  bool operator==(const language_model_config&) const = default;
};

/// Largest extent in a configuration, and most hidden layers: beyond any use, and far from
/// overflow.
inline constexpr int64_t language_model_extent_max = 65536;
inline constexpr size_t language_model_layers_max = 64;

/// Errors: invalid_argument; the line names the field and its range.
[[nodiscard]] expected<void> validate(const language_model_config& config);

/// A variable before the first step.
struct initial_variable {
  std::string name;
  tensor value;
};

/// "embedding", then "hidden_0/weights", "hidden_0/bias", ..., "output/weights", "output/bias";
/// the functions below expect values in this order. Weights are normal with a deviation of
/// 1 / sqrt(inputs), biases 0.
/// @pre `validate(config)` has a value.
[[nodiscard]] std::vector<initial_variable> initial_variables(const language_model_config& config,
                                                              uint64_t seed);

/// Some bytes to guess.
/// Shape: contexts  [examples, context]  i64, the nearest byte first
///        next      [examples]           i64
struct text_batch {
  tensor contexts;
  tensor next;
};

/// The bytes at [begin, end) of a text, each with the bytes before it; before the text's beginning
/// stand zero bytes. @pre begin <= end <= text.size().
[[nodiscard]] text_batch batch_at(const language_model_config& config, std::string_view text,
                                  size_t begin, size_t end);

/// Bytes drawn evenly from a text, by the key alone: the same for the same (seed, replica,
/// iteration), whatever else happens in the job. @pre The text is not empty.
[[nodiscard]] text_batch draw_batch(const language_model_config& config, std::string_view text,
                                    size_t examples, const random_key& key);

/// What a replica computes in one step.
struct loss_and_gradients {
  double loss = 0;                 ///< Mean over the batch. Units: nats.
  std::vector<gradient> gradients; ///< In the order of the variables; the embedding's is sparse.
};

/// One training step's work, with dropout drawn from `key`.
/// Errors: cancelled, once `stop` was asked to; invalid_argument, if the variables are not of this
/// model.
[[nodiscard]] expected<loss_and_gradients>
differentiate(const language_model_config& config, std::span<const tensor> variables,
              const text_batch& batch, const random_key& key, std::stop_token stop = {});

/// What a stream was asked for in one step; to be looked at when the stream has done it.
struct step_on_stream {
  tensor loss;                     ///< Shape [], on the host. Units: nats.
  std::vector<gradient> gradients; ///< On the host, in the order of the variables.

  [[nodiscard]] double loss_in_nats() const;
};

/// As `differentiate`, on the device of a stream and by its own tape: variables go there once for
/// each version, gradients come back. On the host's stream, the same bits.
/// Errors: as above; as the stream's; unimplemented, if this build has no GPU support and the
/// stream is a GPU's.
[[nodiscard]] expected<step_on_stream>
differentiate_on(compute_stream& on, const language_model_config& config,
                 std::span<const tensor> variables, const text_batch& batch, const random_key& key,
                 const std::stop_token& stop = {});

/// How well the model guesses text[begin, end of text), each byte from those before it, which may
/// lie before `begin`.
/// Units: bits per byte: what an arithmetic coder would need with this model.
/// Errors: as `differentiate`; invalid_argument, if there is no byte to guess.
[[nodiscard]] expected<double> bits_per_byte(const language_model_config& config,
                                             std::span<const tensor> variables,
                                             std::string_view text, size_t begin,
                                             std::stop_token stop = {});

} // namespace troupe
