// SPDX-License-Identifier: Apache-2.0
// Variables, batches, losses and gradients of the language models.
#include "tools/language/language_model.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/errors/assert.hpp"
#include "messages/mapped.hpp"
#include "tools/language/transformer.hpp"

#if TROUPE_CUDA
#  include "actors/gpu/cuda_device.hpp"
#  include "kernels/tape/cuda_tape.hpp"
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/ranges.h>
#include <numbers>
#include <type_traits>
#include <utility>

namespace troupe {

namespace {

/// Rows that are evaluated at once: enough for a matrix product, little enough for the cache.
constexpr size_t evaluation_rows = 512;

/// The widths of a perceptron's input, hidden layers and output.
std::vector<int64_t> widths(const language_model_config& config) {
  std::vector<int64_t> result{config.context * config.embedding_size};
  result.insert(result.end(), config.hidden_sizes.begin(), config.hidden_sizes.end());
  result.push_back(byte_values);
  return result;
}

std::string layer_name(size_t layer, size_t layers) {
  return layer + 1 == layers ? "output" : "hidden_" + std::to_string(layer);
}

/// The dropout of a pass through the model; an evaluation has none.
struct pass_dropout {
  double embedding_rate = 0;
  double hidden_rate = 0;
  random_key key{0, "no dropout"};
};

/// The key of each dropout. A perceptron has one of the embedding, then one of each hidden layer.
std::vector<random_key> dropout_keys(const language_model_config& config, const random_key& key) {
  if (config.kind == model_kind::transformer) return transformer_dropout_keys(config, key);
  std::vector<random_key> keys{key.derive("embedding")};
  auto layers = config.hidden_sizes.size() + 1;
  for (size_t layer = 0; layer + 1 < layers; ++layer)
    keys.push_back(key.derive(layer_name(layer, layers)));
  return keys;
}

/// The logits of the bytes after some contexts. @param variables As many as the model has.
template <class Context>
expression logits_of(basic_tape<Context>& t, const language_model_config& config,
                     std::span<const expression> variables, const tensor& contexts,
                     const pass_dropout& dropout, const placed_inputs& placed = {}) {
  if (config.kind == model_kind::transformer)
    return transformer_logits(t, config, variables, contexts, dropout.hidden_rate, dropout.key,
                              placed);
  auto rows = contexts.extents()[0];
  auto keys = dropout_keys(config, dropout.key);
  auto h = t.reshape(t.embedding(variables[0], contexts, placed.contexts),
                     {rows, config.context * config.embedding_size});
  h = t.dropout(h, dropout.embedding_rate, keys[0], placed.key(0));
  size_t layers = config.hidden_sizes.size() + 1;
  for (size_t layer = 0; layer < layers; ++layer) {
    h = t.linear(h, variables[1 + 2 * layer], variables[2 + 2 * layer]);
    if (layer + 1 == layers) break;
    h = t.dropout(t.gelu(h), dropout.hidden_rate, keys[layer + 1], placed.key(layer + 1));
  }
  return h;
}

/// The mean loss of a batch. @param variables As many as the model has.
template <class Context>
expression loss_of(basic_tape<Context>& t, const language_model_config& config,
                   std::span<const expression> variables, const text_batch& batch,
                   const pass_dropout& dropout, const placed_inputs& placed = {}) {
  return t.softmax_cross_entropy(logits_of(t, config, variables, batch.contexts, dropout, placed),
                                 batch.next, placed.next);
}

size_t variable_count(const language_model_config& config) {
  return config.kind == model_kind::transformer ? transformer_variable_count(config)
                                                : 3 + 2 * config.hidden_sizes.size();
}

/// Checks that the model has as many variables, and as many positions. The tape checks the rest.
expected<void> check_variables(const language_model_config& config,
                               std::span<const tensor> variables) {
  auto count = variable_count(config);
  if (variables.size() != count)
    return fail(errc::invalid_argument, fmt::format("the language model has {} variables, not {}",
                                                    count, variables.size()));
  const shape positions{config.context, config.width};
  if (config.kind == model_kind::perceptron || variables[1].extents() == positions) return {};
  return fail(errc::invalid_argument,
              fmt::format("the language model has positions {}, not {}", to_string(positions),
                          to_string(variables[1].extents())));
}

expected<void> check_extent(std::string_view name, int64_t value) {
  if (value >= 1 && value <= language_model_extent_max) return {};
  return fail(errc::invalid_argument, fmt::format("language model: {} is {}, not within [1, {}]",
                                                  name, value, language_model_extent_max));
}

expected<void> check_rate(std::string_view name, double value) {
  if (value >= 0 && value < 1) return {};
  return fail(errc::invalid_argument,
              fmt::format("language model: {} is {:f}, not within [0, 1)", name, value));
}

/// The bytes before `position`, the nearest first.
void write_context(std::string_view text, size_t position, std::span<int64_t> out) {
  for (size_t back = 0; back < out.size(); ++back)
    out[back] = back < position ? static_cast<unsigned char>(text[position - 1 - back]) : 0;
}

/// The batch of the positions that `position_of` gives for 0, 1, ..., examples - 1.
template <class Function>
text_batch gather(const language_model_config& config, std::string_view text, size_t examples,
                  Function position_of) {
  auto rows = static_cast<int64_t>(examples);
  auto context = static_cast<size_t>(config.context);
  text_batch result{{dtype::i64, {rows, config.context}}, {dtype::i64, {rows}}};
  auto contexts = result.contexts.mutable_values<int64_t>();
  auto next = result.next.mutable_values<int64_t>();
  for (size_t i = 0; i < examples; ++i) {
    size_t position = position_of(i);
    write_context(text, position, contexts.subspan(i * context, context));
    next[i] = static_cast<unsigned char>(text[position]);
  }
  return result;
}

/// The batch of the windows of `length` bytes that begin at the positions that `position_of` gives
/// for 0, 1, ..., examples - 1. The inputs are the same windows, one byte earlier; a zero byte
/// stands before the text.
template <class Function>
text_batch gather_windows(int64_t length, std::string_view text, size_t examples,
                          Function position_of) {
  auto windows = static_cast<int64_t>(examples);
  auto size = static_cast<size_t>(length);
  text_batch result{{dtype::i64, {windows, length}}, {dtype::i64, {windows * length}}};
  auto contexts = result.contexts.mutable_values<int64_t>();
  auto next = result.next.mutable_values<int64_t>();
  auto byte_at
    = [&](size_t at) { return static_cast<int64_t>(static_cast<unsigned char>(text[at])); };
  for (size_t i = 0; i < examples; ++i) {
    size_t begin = position_of(i);
    for (size_t j = 0; j < size; ++j) {
      contexts[i * size + j] = begin + j == 0 ? 0 : byte_at(begin + j - 1);
      next[i * size + j] = byte_at(begin + j);
    }
  }
  return result;
}

/// A model for evaluation: its variables are constants on the tape.
struct evaluated_model {
  language_model_config config;
  std::vector<tensor> variables;

  /// A transformer takes shorter windows with the first of its positions.
  evaluated_model(const language_model_config& model, std::span<const tensor> values,
                  int64_t context)
    : config(model), variables(values.begin(), values.end()) {
    if (config.kind == model_kind::perceptron || context >= config.context) return;
    variables[1] = variables[1].slice(0, context);
    config.context = context;
  }

  [[nodiscard]] std::vector<expression> constants_on(tape& t) const {
    return mapped(variables, [&](const auto& value) { return t.constant(value); });
  }
};

/// Bytes that are evaluated at once, if `left` bytes are left. A transformer takes whole windows,
/// but for the end of the text.
size_t evaluated_at_once(const language_model_config& config, size_t left) {
  if (config.kind == model_kind::perceptron) return std::min(evaluation_rows, left);
  auto context = static_cast<size_t>(config.context);
  auto windows = std::min(left, std::max(evaluation_rows, context)) / context;
  return windows == 0 ? left : windows * context;
}

#if TROUPE_CUDA
// The bytes of the keys, which go to the device as they are.
tensor as_tensor(std::span<const random_key> keys) {
  constexpr auto columns = basic_tape<cuda::context>::key_elements;
  tensor result{dtype::i64, {static_cast<int64_t>(keys.size()), columns}};
  static_assert(std::is_trivially_copyable_v<random_key>);
  std::memcpy(result.mutable_data(), keys.data(), keys.size_bytes());
  return result;
}

// Whether all numbers of a batch are bytes, as every language model takes them.
bool is_of_bytes(const text_batch& batch) {
  auto is_byte = [](int64_t value) { return value >= 0 && value < byte_values; };
  for (const auto& values : {batch.contexts, batch.next})
    if (values.type() != dtype::i64 || !values.is_contiguous()
        || !std::ranges::all_of(values.values<int64_t>(), is_byte))
      return false;
  return true;
}

// The work that is the same in each step: the forward pass, and the backward pass to the gradient
// of each lookup's result.
repeated_work dense_work(const language_model_config& config, const text_batch& batch,
                         const random_key& key, product_precision precision) {
  repeated_work work{.name
                     = fmt::format("{}, dropout {} and {}, recompute {}, {}", describe(config),
                                   config.embedding_dropout, config.hidden_dropout,
                                   config.recompute, to_string(precision))};
  work.queue = [&config, &batch, &key,
                precision](const cuda::context& context, std::span<const tensor> variables,
                           std::span<const tensor> inputs,
                           const std::stop_token& stop) -> expected<std::vector<tensor>> {
    basic_tape<cuda::context> t{stop, context, precision};
    auto parameters = mapped(variables, [&](const auto& value) { return t.parameter(value); });
    auto loss = loss_of(t, config, parameters, batch,
                        {config.embedding_dropout, config.hidden_dropout, key},
                        {inputs[0], inputs[1], inputs[2]});
    auto scaled = inputs.size() > 3 ? t.multiply(loss, t.constant(inputs[3])) : loss;
    auto gradients = t.uncombined_gradients(scaled, parameters);
    if (!gradients) return tl::unexpected(gradients.error());
    std::vector<tensor> results{*t.value(loss)};
    for (const auto& gradient : *gradients)
      if (const auto* rows = std::get_if<std::vector<indexed_slices>>(&gradient))
        results.push_back(rows->front().values); // of the only lookup
      else
        results.push_back(std::get<tensor>(gradient));
    return results;
  };
  return work;
}

// Runs the dense work as a graph from the second step on. Work that depends on the batch's
// bytes comes after it.
expected<step_on_stream> differentiate_by_graph(cuda_stream& stream,
                                                const language_model_config& config,
                                                std::span<const tensor> variables,
                                                const text_batch& batch, const random_key& key,
                                                const differentiation& settings) {
  auto keys = as_tensor(dropout_keys(config, key));
  std::vector<tensor> inputs{batch.contexts, batch.next, keys};
  if (settings.loss_scale)
    inputs.push_back(make_tensor({}, {static_cast<float>(*settings.loss_scale)}));
  auto work = dense_work(config, batch, key, settings.precision);
  work.residents = variables;
  work.inputs = inputs;
  auto results = stream.repeat(work, settings.stop);
  if (!results) return tl::unexpected(results.error());
  const basic_tape<cuda::context> finishing{settings.stop, stream.context()};
  transfer moved{stream};
  step_on_stream result{moved.here(results->front()), {}};
  std::vector<gradient> gradients(results->begin() + 1, results->end());
  if (config.kind == model_kind::perceptron) {
    auto rows = batch.contexts.reshape({batch.contexts.extents().element_count()});
    auto lookups = std::vector{indexed_slices{rows, (*results)[1], variables.front().extents()}};
    gradients.front() = finishing.combined(lookups);
  }
  if (settings.loss_scale) {
    auto unscaled = finishing.unscaled(std::move(gradients), *settings.loss_scale);
    gradients = std::move(unscaled.gradients);
    result.non_finite = moved.here(unscaled.non_finite);
  }
  std::vector<tensor> staying, places; // the graph's own arrays are valid until the next step only
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto* own = settings.loss_scale ? nullptr : std::get_if<tensor>(&gradients[i]);
    if (own == nullptr || variables[i].device() != stream.where()) {
      result.gradients.push_back(moved.beside(variables[i], gradients[i]));
      continue;
    }
    staying.push_back(*own);
    places.push_back(moved.take(stream.make(own->type(), own->extents())));
    result.gradients.push_back(places.back());
  }
  if (moved.failure().code != errc::none) return tl::unexpected(moved.failure());
  if (auto copied = stream.copy_there(staying, places); !copied)
    return tl::unexpected(copied.error());
  return result;
}
#endif

expected<void> validate_transformer(const language_model_config& config) {
  if (auto ok = check_extent("width", config.width); !ok) return ok;
  if (auto ok = check_extent("heads", config.heads); !ok) return ok;
  if (config.layers < 1 || std::cmp_greater(config.layers, language_model_layers_max))
    return fail(errc::invalid_argument,
                fmt::format("language model: layers is {}, not within [1, {}]", config.layers,
                            language_model_layers_max));
  if (config.width % config.heads == 0) return {};
  return fail(errc::invalid_argument,
              fmt::format("language model: a width of {} cannot be shared evenly by {} heads",
                          config.width, config.heads));
}

} // namespace

expected<void> validate(const language_model_config& config) {
  if (auto ok = check_extent("context", config.context); !ok) return ok;
  if (auto ok = check_rate("hidden dropout", config.hidden_dropout); !ok) return ok;
  if (config.kind == model_kind::transformer) return validate_transformer(config);
  if (auto ok = check_extent("embedding size", config.embedding_size); !ok) return ok;
  if (config.hidden_sizes.size() > language_model_layers_max)
    return fail(errc::invalid_argument, fmt::format("language model: more than {} hidden layers",
                                                    language_model_layers_max));
  for (auto size : config.hidden_sizes)
    if (auto ok = check_extent("hidden size", size); !ok) return ok;
  return check_rate("embedding dropout", config.embedding_dropout);
}

language_model_config usual_transformer() {
  return {.kind = model_kind::transformer, .context = 64, .hidden_dropout = 0.1};
}

std::string describe(const language_model_config& config) {
  auto name = to_string(config.kind);
  if (config.kind == model_kind::transformer)
    return fmt::format("{}, context {}, layers {}, heads {}, width {}", name, config.context,
                       config.layers, config.heads, config.width);
  return fmt::format(
    "{}, context {}, embedding {}, hidden {}", name, config.context, config.embedding_size,
    config.hidden_sizes.empty() ? "none" : fmt::to_string(fmt::join(config.hidden_sizes, ",")));
}

int64_t guesses_per_example(const language_model_config& config) {
  return config.kind == model_kind::transformer ? config.context : 1;
}

std::vector<model_variable> variables_of(const language_model_config& config) {
  TROUPE_ASSERT(validate(config).has_value());
  if (config.kind == model_kind::transformer) return transformer_variables(config);
  std::vector<model_variable> result;
  result.push_back({"embedding", {byte_values, config.embedding_size}, 0.5, 0, "embedding"});
  auto sizes = widths(config);
  for (size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    auto name = layer_name(layer, sizes.size() - 1);
    auto deviation = 1 / std::sqrt(static_cast<double>(sizes[layer]));
    result.push_back({name + "/weights", {sizes[layer], sizes[layer + 1]}, deviation, 0, name});
    result.push_back({name + "/bias", {sizes[layer + 1]}});
  }
  return result;
}

text_batch batch_at(const language_model_config& config, std::string_view text, size_t begin,
                    size_t end) {
  TROUPE_ASSERT(begin <= end, begin, end);
  TROUPE_ASSERT(end <= text.size(), end, text.size());
  if (config.kind == model_kind::transformer) {
    auto context = static_cast<size_t>(config.context);
    TROUPE_ASSERT((end - begin) % context == 0, begin, end, context);
    return gather_windows(config.context, text, (end - begin) / context,
                          [&](size_t i) { return begin + i * context; });
  }
  return gather(config, text, end - begin, [&](size_t i) { return begin + i; });
}

text_batch draw_batch(const language_model_config& config, std::string_view text, size_t examples,
                      const random_key& key) {
  TROUPE_ASSERT(!text.empty());
  random_stream stream{key};
  if (config.kind == model_kind::transformer) {
    auto context = static_cast<size_t>(config.context);
    TROUPE_ASSERT(text.size() > context, text.size(), context);
    return gather_windows(config.context, text, examples,
                          [&](size_t) { return 1 + stream.below(text.size() - context); });
  }
  return gather(config, text, examples, [&](size_t) { return stream.below(text.size()); });
}

expected<loss_and_gradients> differentiate(const language_model_config& config,
                                           std::span<const tensor> variables,
                                           const text_batch& batch, const random_key& key,
                                           std::stop_token stop) {
  return differentiate_on(host_stream(), config, variables, batch, key, {std::move(stop)})
    .map([](step_on_stream done) {
      return loss_and_gradients{nats_of(done.loss), std::move(done.gradients)};
    });
}

expected<step_on_stream> differentiate_on(compute_stream& stream,
                                          const language_model_config& config,
                                          std::span<const tensor> variables,
                                          const text_batch& batch, const random_key& key,
                                          const differentiation& settings) {
  if (auto ok = check_variables(config, variables); !ok) return tl::unexpected(ok.error());
  // Indices and labels stay on the host, from which every tape takes them.
  auto loss = [&](auto& t, std::span<const expression> parameters) {
    return loss_of(t, config, parameters, batch,
                   {config.embedding_dropout, config.hidden_dropout, key});
  };
  if (stream.where().kind == device_kind::cpu)
    return differentiate_with(cpu::context{}, stream, variables, settings, loss);
#if TROUPE_CUDA
  if (auto* gpu = dynamic_cast<cuda_stream*>(&stream))
    return is_of_bytes(batch)
             ? differentiate_by_graph(*gpu, config, variables, batch, key, settings)
             : differentiate_with(gpu->context(), stream, variables, settings, loss);
#endif
  return fail(errc::unimplemented, "this build has no GPU support for the language model");
}

expected<double> bits_per_byte(const language_model_config& config,
                               std::span<const tensor> variables, std::string_view text,
                               size_t begin, std::stop_token stop) {
  if (auto ok = check_variables(config, variables); !ok) return tl::unexpected(ok.error());
  if (begin >= text.size())
    return fail(errc::invalid_argument, "language model: no byte is left to evaluate");
  double nats = 0;
  for (size_t at = begin, size = 0; at < text.size(); at += size) {
    size = evaluated_at_once(config, text.size() - at);
    const evaluated_model model{config, variables, static_cast<int64_t>(size)};
    tape t{stop};
    auto batch = batch_at(model.config, text, at, at + size);
    auto mean = t.value(loss_of(t, model.config, model.constants_on(t), batch, {}));
    if (!mean) return tl::unexpected(mean.error());
    nats += nats_of(*mean) * static_cast<double>(size);
  }
  return nats / static_cast<double>(text.size() - begin) / std::numbers::ln2;
}

expected<std::vector<double>> next_byte_logits(const language_model_config& config,
                                               std::span<const tensor> variables,
                                               std::string_view text) {
  if (auto ok = check_variables(config, variables); !ok) return tl::unexpected(ok.error());
  // The model sees at most `context` bytes; a zero byte stands before the text.
  const auto seen = std::clamp<int64_t>(static_cast<int64_t>(text.size()), 1, config.context);
  const evaluated_model model{config, variables, seen};
  tensor contexts{dtype::i64, {1, model.config.context}};
  auto bytes = contexts.mutable_values<int64_t>();
  write_context(text, text.size(), bytes);
  if (config.kind == model_kind::transformer) std::ranges::reverse(bytes);
  tape t;
  auto logits = t.value(logits_of(t, model.config, model.constants_on(t), contexts, {}));
  if (!logits) return tl::unexpected(logits.error());
  auto last = logits->values<float>().last(byte_values);
  return std::vector<double>(last.begin(), last.end());
}

} // namespace troupe
