// SPDX-License-Identifier: Apache-2.0
// The options of `troupe train` with their ranges and descriptions.
#include "tools/train/train_options.hpp"

#include "tools/options/command_options.hpp"
#include "tools/options/config_file.hpp"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>

namespace troupe {

namespace {

constexpr auto policy_names = [] {
  std::array<std::string_view, all_sync_policies.size()> names;
  for (auto policy : all_sync_policies)
    names[static_cast<size_t>(policy)] = to_string(policy);
  return names;
}();
constexpr std::array strategy_names{to_string(strategy_kind::parameter_server),
                                    to_string(strategy_kind::mirrored),
                                    to_string(strategy_kind::multi_worker_mirrored)};
constexpr std::array<std::string_view, 5> communication_names{"auto", "ring", "nccl",
                                                              "halving_doubling", "tree"};
constexpr std::array<std::string_view, 2> backup_names{"fixed", "dynamic"};
constexpr std::array<std::string_view, 3> decay_names{"none", "linear", "cosine"};
constexpr std::array<std::string_view, 2> world_names{"threads", "virtual"};
constexpr std::array<std::string_view, 2> loss_names{"go_on", "stop"};

// Those of parameter_server come first, then the one of multi_worker_mirrored.
constexpr std::array<std::string_view, 10> of_one_strategy{
  "aggregate", "policy",  "backups",         "curvature",        "initial-tokens",
  "slack",     "on-loss", "rejoin-patience", "replicate-owners", "communication"};

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

constexpr option_range replica_counts{1, 100'000};
constexpr option_range extents{1, language_model_extent_max};
constexpr option_range image_extents{1, image_model_extent_max};
constexpr option_range counts{0, 1e9};
constexpr option_range counts_from_1{1, 1e9};
constexpr option_range shares_forgotten{.low = 0, .high = 1, .below_high = true};
constexpr option_range slow_factors{1, 1e6};
constexpr option_range seeds{0, 9.2e18}; // What fits into a TOML integer.

constexpr option_range above(double low, double high) {
  return {.low = low, .high = high, .above_low = true};
}

// The name before the equals sign, and what `read` makes of the text behind it.
template <class Read>
auto pair_of(std::string_view text, Read read)
  -> std::optional<std::pair<std::string_view, typename decltype(read(text))::value_type>> {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  const auto value = read(text.substr(equals + 1));
  if (!value) return std::nullopt;
  return std::pair{text.substr(0, equals), *value};
}

option_value slow_value(std::vector<slow_replica>& place) {
  auto read = [](std::string_view text) -> std::optional<slow_replica> {
    const auto pair = pair_of(text, [](auto factor) { return real_of(factor, slow_factors); });
    const auto replica = pair ? whole_of(pair->first, counts) : std::nullopt;
    return replica ? std::optional{slow_replica{*replica, pair->second}} : std::nullopt;
  };
  return list_value(
    place, fmt::format("REPLICA=FACTOR, such as 3=2.5, with a factor {}", to_string(slow_factors)),
    read, [](const slow_replica& slow) { return fmt::format("{}={}", slow.replica, slow.factor); });
}

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

// The optimizers, under the names that they have everywhere.
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
  return text + "; of these a tenth for a transformer and for images";
}

// "tensorflow (as SyncReplicasOptimizer does), latest_token (the one for backups)"
std::string names_and_words(bool (policy_traits::*is_true)() const) {
  std::string text;
  for (auto policy : policies_that(is_true))
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", to_string(policy),
                        traits_of(policy).about);
  return text;
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

void add_replica_options(command_options& all, train_options& options) {
  all.begin_group("Text", true);
  all.add("--text", "FILE", "the text to learn, any bytes", text_value(options.text));
  all.add("--held-out", "SHARE",
          "share at the end of the text that is not trained on but evaluated",
          real_value(options.held_out, above(0, 0.9)));
  all.begin_group("Replicas", true);
  all.add("--strategy", "NAME",
          "parameter_server (an update waits for the first --aggregate gradients), or every "
          "update takes all: mirrored (one process), multi_worker_mirrored (all processes of "
          "a cluster)",
          choice_value(options.strategy, strategy_names));
  all.add("--replicas", "COUNT", "replicas that compute gradients",
          whole_value(options.replicas, replica_counts));
  all.add("--aggregate", "COUNT",
          "gradients that each update averages, under policy ssp 1 unless it is given; replicas "
          "beyond that number are backups",
          whole_value(options.aggregate, replica_counts));
  all.add("--policy", "NAME",
          fmt::format("what becomes of late replicas: {}; or stale gradients count: {}",
                      names_and_words(&policy_traits::is_synchronous),
                      names_and_words(&policy_traits::is_asynchronous)),
          choice_value(options.policy, policy_names));
  all.add("--backups", "NAME",
          fmt::format("fixed: replicas beyond --aggregate; dynamic: every step after the first "
                      "waits for as many gradients as seem to help most for their time, under "
                      "policy {}",
                      names_of(policies_that(&policy_traits::may_adapt))),
          choice_value(options.backups, backup_names));
  all.add("--curvature", "NUMBER",
          "with --backups dynamic, learning rate times the Lipschitz constant of the gradient: "
          "the larger, the more noise matters, and the more gradients are waited for",
          real_value(options.curvature, above(0, 1.99)),
          "estimated from how the loss falls; 0.1 if not by sgd");
  all.add("--initial-tokens", "COUNT",
          "tokens in the queue before the first update, for policy tensorflow",
          whole_value(options.initial_tokens, {0, 100'000}), "as many as aggregate");
  all.add("--slack", "COUNT",
          "gradients that a replica may be ahead of the slowest, for policy ssp",
          whole_value(options.slack, counts), "0");
  all.add("--slow", "REPLICA=FACTOR",
          "make a replica slower by that factor: 3=2.5 (may be given several times)",
          slow_value(options.slow), "none");
  all.add("--device", "NAMES",
          "what replicas compute on: cpu, or GPUs of this machine, in turn: gpu:0,gpu:1",
          text_value(options.device));
  all.add("--communication", "NAME",
          "how processes add up gradients, for strategy multi_worker_mirrored: auto (messages, "
          "in the order of replicas), ring, halving_doubling or tree (messages, in an order of "
          "their own), nccl (GPUs; needs --device)",
          choice_value(options.communication, communication_names));
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
          "set the optimizer otherwise than by default: beta1=0.8, clip_norm=1; a flag is 1 or "
          "0 (may be given several times)",
          setting_value(options.optimizer_settings), "none");
  all.add("--learning-rate", "RATE", "how far each update goes",
          real_value(options.learning_rate, above(0, 1e6)), usual_learning_rates());
  all.add("--learning-rate-decay", "NAME",
          "none, or to 0 at the last step: linear (in a straight line), cosine (in half a wave)",
          choice_value(options.learning_rate_decay, decay_names));
  all.add("--warm-up", "COUNT", "steps in which the learning rate rises from 0, before it decays",
          whole_value(options.warm_up, counts));
  all.add("--seed", "NUMBER", "of all randomness: initial values, batches, dropout, virtual time",
          whole_value(options.seed, seeds));
  all.add("--evaluate-every", "STEPS",
          "how often the held-out data are evaluated; 0: only at the end",
          whole_value(options.evaluate_every, counts));
}

void add_model_options(command_options& all, language_model_config& model) {
  all.begin_group("Model", true, "model");
  all.add("--model", "NAME",
          "perceptron (small and fast), or transformer (a GPT over bytes, for longer texts)",
          choice_value(model.kind, model_names));
  const auto transformer = usual_transformer();
  all.add("--context", "BYTES",
          fmt::format("bytes that the model sees when it guesses the next; a transformer: {}, "
                      "unless it is given, and an example is so many guesses",
                      transformer.context),
          whole_value(model.context, extents));
  all.add("--embedding", "WIDTH", "perceptron: numbers that stand for one byte",
          whole_value(model.embedding_size, extents));
  all.add("--hidden", "WIDTHS", "perceptron: widths of the hidden layers, separated by commas",
          whole_numbers_value(model.hidden_sizes, extents), "none");
  all.add("--layers", "COUNT", "transformer: layers, each of attention and a hidden layer",
          whole_value(model.layers, {1, language_model_layers_max}));
  all.add("--heads", "COUNT", "transformer: heads of each attention, which divide the width",
          whole_value(model.heads, extents));
  all.add("--width", "WIDTH", "transformer: numbers that stand for one position",
          whole_value(model.width, extents));
  all.add("--recompute", "off|on",
          "transformer: on computes each layer again on the way back instead of keeping its "
          "values; of the memory of a step, 2 layers leave two thirds and 12 layers a fifth, for "
          "a third more time; the results are the same",
          choice_value(model.recompute, switch_names));
  all.add("--embedding-dropout", "SHARE",
          "perceptron: share of embedded numbers that is forgotten while training",
          real_value(model.embedding_dropout, shares_forgotten));
  all.add("--hidden-dropout", "SHARE",
          fmt::format("share of each layer's output that is forgotten while training; a "
                      "transformer: {}, unless it is given",
                      transformer.hidden_dropout),
          real_value(model.hidden_dropout, shares_forgotten));
}

void add_run_options(command_options& all, train_options& options) {
  all.begin_group("Checkpoints", true);
  all.add("--checkpoint-every", "STEPS",
          "how often everything is saved that --resume needs, besides at the end; 0: never",
          whole_value(options.checkpoint_every, counts));
  all.add("--keep-checkpoints", "COUNT", "the newest so many stay",
          whole_value(options.keep_checkpoints, counts_from_1));
  all.add("--resume", "DIR",
          "go on with the run in that folder, with its options, from its newest checkpoint; what "
          "comes of it goes into a folder of its own",
          text_value(options.resume), "a new run");
  all.begin_group("Run", true);
  all.add("--run-dir", "DIR", "folder for everything that the run leaves behind",
          text_value(options.run_dir), "runs/<date-time>");
  all.add("--world", "NAME",
          "threads (real time), or virtual (one thread, virtual time, bit for bit repeatable)",
          choice_value(options.world, world_names));
  all.add("--deadline", "SECONDS", "how long a step may take before the job counts as stalled",
          real_value(options.deadline_seconds, above(0, 1e9)));
  all.add("--on-loss", "NAME",
          "when a replica is lost: go_on with those that are left, if they are enough, or stop "
          "with a checkpoint",
          choice_value(options.on_loss, loss_names));
  all.add("--rejoin-patience", "SECONDS",
          "how long a job that lacks replicas waits for the return of a worker that was lost",
          real_value(options.rejoin_patience_seconds, {0, 1e9}));
  all.add("--replicate-owners", "COUNT",
          "parameter servers that hold each variable: with 2, the loss of one loses nothing, and "
          "one that is started again takes its place",
          whole_value(options.replicate_owners, {1, 2}));
  all.add("--timeline-bytes", "COUNT",
          "bytes that timeline.json may have; of a run that is too long for them, every "
          "second, fourth, eighth step is shown, and so on",
          whole_value(options.timeline_bytes, {100'000, 1e12}));
  all.add("--metrics-port", "PORT",
          "serve /metrics (Prometheus) and /actors (JSON, for troupe top) there; 0: on any "
          "port that is free",
          whole_value(options.metrics_port, {0, 65535}), "not served");
  all.add("--metrics-address", "ADDRESS",
          "address of this machine to serve them on; every program that reaches it can read them",
          text_value(options.metrics_address));
}

} // namespace

void add_options(command_options& all, train_options& options) {
  add_learned_options(all, options);
  add_replica_options(all, options);
  add_training_options(all, options);
  add_model_options(all, options.model);
  add_run_options(all, options);
}

std::span<const std::string_view> without_meaning(strategy_kind strategy) {
  const std::span all{of_one_strategy};
  if (strategy == strategy_kind::parameter_server) return all.last(1);
  return strategy == strategy_kind::multi_worker_mirrored ? all.first(all.size() - 1) : all;
}

std::span<const std::string_view> without_meaning(model_kind model) {
  if (model == model_kind::perceptron) return of_transformers;
  return of_perceptrons;
}

std::span<const std::string_view> without_meaning(learned_kind learned) {
  if (learned == learned_kind::images) return of_languages;
  return of_images;
}

void reset(std::string_view key, train_options& options) {
  train_options standard;
  command_options from;
  command_options to;
  add_options(from, standard);
  add_options(to, options);
  static_cast<void>(to.find(key)->value.store(
    from.find(key)->value.texts())); // never refused: the text is the option's own default
}

std::string config_text(const train_options& options, const option_origins& origins,
                        bool with_run_dir) {
  auto values = options;
  command_options all;
  add_options(all, values);
  std::string text = "# Options of `troupe train`; read back by: troupe train --config FILE\n";
  std::string sections; // Tables come last in TOML: what follows a heading belongs to it.
  std::string_view section;
  for (const auto& option : all.options()) {
    if (std::ranges::count(without_meaning(options.strategy), option.key) > 0) continue;
    if (std::ranges::count(without_meaning(options.learn), option.key) > 0) continue;
    if (std::ranges::count(without_meaning(options.model.kind), option.key) > 0) continue;
    const auto value = toml_text(option);
    auto line = fmt::format("# {}: {}\n", option.key, option.when_empty);
    if (!value.empty()) {
      const bool is_comment = option.key == "run-dir" && !with_run_dir;
      line = fmt::format("{:<46}  # {}\n",
                         fmt::format("{}{} = {}", is_comment ? "# " : "", option.key, value),
                         describe(origin_of(origins, option.key)));
    }
    if (!option.section.empty() && option.section != section)
      sections += fmt::format("\n[{}]\n", option.section);
    section = option.section;
    (option.section.empty() ? text : sections) += line;
  }
  return text + sections;
}

} // namespace troupe
