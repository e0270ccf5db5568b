// SPDX-License-Identifier: Apache-2.0
// Describes the options of `troupe train`, with their ranges and help.
#include "tools/train/train_options.hpp"

#include "tools/options/command_options.hpp"
#include "tools/options/config_file.hpp"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 3> decay_names{"none", "linear", "cosine"};
constexpr std::array learned_names{to_string(learned_kind::language),
                                   to_string(learned_kind::images)};
constexpr std::array<std::string_view, 12> of_languages{
  "text",   "held-out", "model", "context",   "embedding",         "hidden",
  "layers", "heads",    "width", "recompute", "embedding-dropout", "hidden-dropout"};
constexpr std::array<std::string_view, 3> of_images{"data", "filters", "dense"};

constexpr std::array model_names{to_string(model_kind::perceptron),
                                 to_string(model_kind::transformer)};
constexpr std::array<std::string_view, 3> of_perceptrons{"embedding", "hidden",
                                                         "embedding-dropout"};
constexpr std::array<std::string_view, 4> of_transformers{"layers", "heads", "width", "recompute"};
constexpr std::array<std::string_view, 2> switch_names{"off", "on"};

constexpr std::array precision_names{
  to_string(product_precision::full), to_string(product_precision::tf32),
  to_string(product_precision::bf16), to_string(product_precision::f16)};

constexpr option_range extents{1, language_model_extent_max};
constexpr option_range image_extents{1, image_model_extent_max};
constexpr option_range counts{0, 1e9};
constexpr option_range counts_from_1{1, 1e9};
constexpr option_range dropout_rates{.low = 0, .high = 1, .below_high = true};

option_value setting_value(std::vector<optimizer_setting>& place) {
  auto read = [](std::string_view text) -> std::optional<optimizer_setting> {
    const auto pair = pair_of(text, number_of<double>);
    if (!pair) return std::nullopt;
    return optimizer_setting{std::string{pair->first}, pair->second};
  };
  return list_value(
    place, "NAME=NUMBER, such as beta1=0.8", read,
    [](const optimizer_setting& set) { return fmt::format("{}={}", set.name, set.value); });
}

// Widths of layers, or "none": a command line has no other word for an empty list.
option_value widths_value(std::vector<int64_t>& place) {
  auto value = whole_numbers_value(place, extents);
  value.store = [store = value.store](const option_value::text_list& texts) {
    return !texts.empty() && texts.back() == "none" ? store({}) : store(texts);
  };
  return value;
}

// The optimizers by the names of their rules.
option_value optimizer_value(std::string_view& place) {
  return single_value(
    place, toml_form::text, fmt::format("one of {}", fmt::join(choice_names<update_rule>(), ", ")),
    [](std::string_view text) {
      const auto names = choice_names<update_rule>();
      const auto found = std::ranges::find(names, text);
      return found == names.end() ? std::nullopt : std::optional{*found};
    },
    [](std::string_view name) { return std::string{name}; });
}

// Made from the defaults, so that the help agrees with the code.
std::string usual_learning_rates() {
  std::string text;
  for (const auto& [optimizer, rate] : train_defaults::learning_rates)
    text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", rate, optimizer);
  return text + "; a tenth of these for a transformer and for images";
}

void add_learned_options(command_options& all, train_options& options) {
  all.begin_group("What is learnt", true);
  all.add("--learn", "NAME",
          "language (to guess the bytes of a text), or images (to tell their classes)",
          choice_value(options.learn, learned_names));
  all.begin_group("Images", true);
  all.add("--data", "DIR",
          "folder of an IDX data set, with MNIST's names: train-images-idx3-ubyte, "
          "train-labels-idx1-ubyte; t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte are held out",
          text_value(options.data), "none");
  all.add("--filters", "COUNTS",
          "output channels of each convolution, separated by commas; each halves the sides of the "
          "images",
          whole_numbers_value(options.images.filters, image_extents), "none");
  all.add("--dense", "WIDTH", "width of the hidden layer behind the convolutions",
          whole_value(options.images.dense, image_extents));
}

void add_text_options(command_options& all, train_options& options) {
  all.begin_group("Text", true);
  all.add("--text", "FILE", "the text to learn, any bytes", text_value(options.text));
  all.add("--held-out", "SHARE",
          "share at the end of the text that is not trained on but evaluated",
          real_value(options.held_out, above(0, 0.9)));
}

void add_training_options(command_options& all, train_options& options) {
  all.begin_group("Training", true);
  all.add("--steps", "COUNT", "updates to make; excludes --epochs",
          whole_value(options.steps, counts_from_1),
          fmt::format("{} if no epochs are given, of images {}", train_defaults::steps,
                      train_defaults::image_steps));
  all.add("--epochs", "COUNT", "passes over the training data to make; excludes --steps",
          whole_value(options.epochs, counts_from_1), "none");
  all.add("--batch", "COUNT", "examples in each gradient of a replica",
          whole_value(options.batch, {1, 1e6}));
  all.add("--optimizer", "NAME", fmt::format("{}", fmt::join(choice_names<update_rule>(), ", ")),
          optimizer_value(options.optimizer));
  all.add("--optimizer-setting", "NAME=NUMBER",
          "change a setting of the optimizer: beta1=0.8, clip_norm=1; a flag is 1 or 0 (may be "
          "given several times)",
          setting_value(options.optimizer_settings), "none");
  all.add("--learning-rate", "RATE", "how far each update goes",
          real_value(options.learning_rate, above(0, 1e6)), usual_learning_rates());
  all.add(
    "--learning-rate-decay", "NAME",
    "none, or towards 0, which the step after the last would have: linear (in a straight line), "
    "cosine (in half a wave)",
    choice_value(options.learning_rate_decay, decay_names));
  all.add("--warm-up", "COUNT",
          "steps in which the learning rate rises from 0, which the first has, before it decays",
          whole_value(options.warm_up, counts));
  all.add(
    "--clip-global-norm", "NORM",
    "clip the mean gradient of a step to this norm, over all variables together; 1 is usual for "
    "transformers; 0: no clipping",
    real_value(options.clip_global_norm, {0, 1e9}));
  all.add(
    "--precision", "NAME",
    "what operands of matrix products are rounded to: full (not at all), tf32, bf16, or f16 "
    "(with a dynamic loss scale); sums, variables and all else stay f32; faster on GPUs, while "
    "a CPU shows what it does to a loss",
    choice_value(options.precision, precision_names));
  add_seed_options(all, options);
}

void add_model_options(command_options& all, language_model_config& model) {
  all.begin_group("Model", true, "model");
  all.add("--model", "NAME",
          "perceptron (small and fast), or transformer (a GPT over bytes, for longer texts)",
          choice_value(model.kind, model_names));
  const auto transformer = usual_transformer();
  all.add("--context", "BYTES",
          fmt::format("bytes from which the model predicts the next one; default of a transformer: "
                      "{}, and each of its examples has as many predictions",
                      transformer.context),
          whole_value(model.context, extents));
  all.add("--embedding", "WIDTH", "perceptron: numbers that stand for one byte",
          whole_value(model.embedding_size, extents));
  all.add("--hidden", "WIDTHS",
          "perceptron: widths of the hidden layers, separated by commas; none: no hidden layer",
          widths_value(model.hidden_sizes), "none");
  all.add("--layers", "COUNT", "transformer: layers, each of attention and a hidden layer",
          whole_value(model.layers, {1, language_model_layers_max}));
  all.add("--heads", "COUNT", "transformer: heads of each attention, which divide the width",
          whole_value(model.heads, extents));
  all.add("--width", "WIDTH", "transformer: numbers that stand for one position",
          whole_value(model.width, extents));
  all.add("--recompute", "off|on",
          "transformer: on computes each layer again in the backward pass instead of keeping its "
          "values; a step then needs two thirds of the memory with 2 layers, a fifth with 12, and "
          "a third more time; the results are the same",
          choice_value(model.recompute, switch_names));
  all.add("--embedding-dropout", "SHARE", "perceptron: dropout rate of the embedding, in training",
          real_value(model.embedding_dropout, dropout_rates));
  all.add("--hidden-dropout", "SHARE",
          fmt::format("dropout rate of each layer's output, in training; default of a "
                      "transformer: {}",
                      transformer.hidden_dropout),
          real_value(model.hidden_dropout, dropout_rates));
}

} // namespace

void add_options(command_options& all, train_options& options) {
  add_learned_options(all, options);
  add_text_options(all, options);
  add_replica_options(all, options);
  add_training_options(all, options);
  add_model_options(all, options.model);
  add_run_options(all, options);
}

std::span<const std::string_view> without_meaning(model_kind model) {
  if (model == model_kind::perceptron) return of_transformers;
  return of_perceptrons;
}

std::span<const std::string_view> without_meaning(learned_kind learned) {
  if (learned == learned_kind::images) return of_languages;
  return of_images;
}

std::string config_text(const train_options& options, const option_origins& origins,
                        bool with_run_dir) {
  auto values = options;
  command_options all;
  add_options(all, values);
  const std::span<const std::string_view> meaningless[]
    = {without_meaning(options.strategy), without_meaning(options.learn),
       without_meaning(options.model.kind)};
  auto is_left_out = [&](std::string_view key) {
    return std::ranges::any_of(meaningless,
                               [key](auto keys) { return std::ranges::count(keys, key) > 0; });
  };
  return config_text(all, origins,
                     {.program = "troupe train",
                      .is_left_out = is_left_out,
                      .commented = config_comments(with_run_dir)});
}

} // namespace troupe
