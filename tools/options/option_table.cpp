// SPDX-License-Identifier: Apache-2.0
// The table of options itself.
#include "tools/options/option_table.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <type_traits>

namespace troupe {

namespace {

constexpr auto policy_names = [] {
  std::array<std::string_view, all_sync_policies.size()> names;
  for (auto policy : all_sync_policies)
    names[static_cast<size_t>(policy)] = to_string(policy);
  return names;
}();
constexpr std::array<std::string_view, 3> strategy_names{
  to_string(strategy_kind::parameter_server), to_string(strategy_kind::mirrored),
  to_string(strategy_kind::multi_worker_mirrored)};
constexpr std::array<std::string_view, 9> parameter_server_only{
  "aggregate", "policy",  "backups",         "curvature",       "initial-tokens",
  "slack",     "on-loss", "rejoin-patience", "replicate-owners"};
constexpr std::array<std::string_view, 5> communication_names{"auto", "ring", "nccl",
                                                              "halving_doubling", "tree"};
constexpr std::array<std::string_view, 2> backup_names{"fixed", "dynamic"};
constexpr std::array<std::string_view, 3> decay_names{"none", "linear", "cosine"};
constexpr std::array<std::string_view, 2> world_names{"threads", "virtual"};
constexpr std::array<std::string_view, 2> loss_names{"go_on", "stop"};

// An option for an enumeration with values that count from 0 in the order of `names`.
template <auto Member>
option_choice choice(std::span<const std::string_view> names) {
  return {names, [](const train_options& options) { return static_cast<size_t>(options.*Member); },
          [](train_options& options, size_t index) {
            using enumeration = std::remove_reference_t<decltype(options.*Member)>;
            options.*Member = static_cast<enumeration>(index);
          }};
}

// The optimizers, under the names that they have everywhere.
option_choice optimizer_choice() {
  return {choice_names<update_rule>(),
          [](const train_options& options) {
            const auto names = choice_names<update_rule>();
            return static_cast<size_t>(std::ranges::find(names, options.optimizer) - names.begin());
          },
          [](train_options& options, size_t index) {
            options.optimizer = choice_names<update_rule>()[index];
          }};
}

template <auto Member>
auto& member(train_options& options) {
  return options.*Member;
}

template <auto Member>
auto& model_member(train_options& options) {
  return options.model.*Member;
}

constexpr option_range between(double low, double high) {
  return {low, high};
}

constexpr option_range above(double low, double high) {
  return {low, high, true, false};
}

constexpr option_range from_to_below(double low, double high) {
  return {low, high, false, true};
}

constexpr option_range extents = between(1, language_model_extent_max);
constexpr double count_max = 1e9;
constexpr double seed_max = 9.2e18; // What fits into a TOML integer.

// Made from the defaults, so that the help cannot say anything else than the code.
const std::string steps_when_empty
  = fmt::format("{} if no epochs are given", train_defaults::steps);
const std::string learning_rate_when_empty = [] {
  std::string text;
  for (const auto& [optimizer, rate] : train_defaults::learning_rates)
    text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", rate, optimizer);
  return text;
}();

// "tensorflow (as SyncReplicasOptimizer does), latest_token (the one for backups)"
std::string policies_and_words(bool (policy_traits::*is_true)() const) {
  std::string text;
  for (auto policy : policies_that(is_true))
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", to_string(policy),
                        traits_of(policy).about);
  return text;
}

const std::string policy_help
  = fmt::format("what becomes of late replicas: {}; or stale gradients count: {}",
                policies_and_words(&policy_traits::is_synchronous),
                policies_and_words(&policy_traits::is_asynchronous));
const std::string backups_help
  = fmt::format("fixed: replicas beyond --aggregate; dynamic: every step after the first waits for "
                "as many gradients as seem to help most for their time, under policy {}",
                names_of(policies_that(&policy_traits::may_adapt)));
const std::string optimizer_help = fmt::format("{}", fmt::join(choice_names<update_rule>(), ", "));

const std::array options{
  train_option{"text", "", "Text", "FILE", "the text to learn, any bytes",
               &member<&train_options::text>},
  train_option{"held-out", "", "Text", "SHARE",
               "share at the end of the text that is not trained on but evaluated",
               &member<&train_options::held_out>, above(0, 0.9)},

  train_option{"strategy", "", "Replicas", "NAME",
               "parameter_server (an update waits for the first --aggregate gradients), or every "
               "update takes all: mirrored (one process), multi_worker_mirrored (all processes of "
               "a cluster)",
               choice<&train_options::strategy>(strategy_names)},
  train_option{"replicas", "", "Replicas", "COUNT", "replicas that compute gradients",
               &member<&train_options::replicas>, between(1, 100'000)},
  train_option{
    "aggregate", "", "Replicas", "COUNT",
    "gradients that each update averages, 1 if nobody says else under policy ssp; replicas "
    "beyond that number are backups",
    &member<&train_options::aggregate>, between(1, 100'000)},
  train_option{"policy", "", "Replicas", "NAME", policy_help,
               choice<&train_options::policy>(policy_names)},
  train_option{"backups", "", "Replicas", "NAME", backups_help,
               choice<&train_options::backups>(backup_names)},
  train_option{
    "curvature", "", "Replicas", "NUMBER",
    "with --backups dynamic, learning rate times the Lipschitz constant of the gradient: "
    "the larger, the more noise matters, and the more gradients are waited for",
    &member<&train_options::curvature>, above(0, 1.99),
    "estimated from how the loss falls; 0.1 if not by sgd"},
  train_option{"initial-tokens", "", "Replicas", "COUNT",
               "tokens in the queue before the first update, for policy tensorflow",
               &member<&train_options::initial_tokens>, between(0, 100'000),
               "as many as aggregate"},
  train_option{"slack", "", "Replicas", "COUNT",
               "gradients that a replica may be ahead of the slowest, for policy ssp",
               &member<&train_options::slack>, between(0, count_max), "0"},
  train_option{"slow", "", "Replicas", "REPLICA=FACTOR",
               "make a replica slower by that factor: 3=2.5 (may be given several times)",
               &member<&train_options::slow>, between(1, 1e6), "none"},
  train_option{"device", "", "Replicas", "NAMES",
               "what replicas compute on: cpu, or GPUs of this machine, in turn: gpu:0,gpu:1",
               &member<&train_options::device>},
  train_option{
    "communication", "", "Replicas", "NAME",
    "how processes add up gradients, for strategy multi_worker_mirrored: auto (messages, "
    "in the order of replicas), ring, halving_doubling or tree (messages, in an order of their "
    "own), nccl (GPUs; needs --device)",
    choice<&train_options::communication>(communication_names)},

  train_option{"steps", "", "Training", "COUNT", "updates to make; excludes --epochs",
               &member<&train_options::steps>, between(1, count_max), steps_when_empty},
  train_option{"epochs", "", "Training", "COUNT",
               "passes over the training text to make; excludes --steps",
               &member<&train_options::epochs>, between(1, count_max), "none"},
  train_option{"batch", "", "Training", "COUNT", "examples in each gradient of a replica",
               &member<&train_options::batch>, between(1, 1e6)},
  train_option{"optimizer", "", "Training", "NAME", optimizer_help, optimizer_choice()},
  train_option{
    "optimizer-setting", "", "Training", "NAME=NUMBER",
    "set the optimizer otherwise than by default: beta1=0.8, clip_norm=1; a flag is 1 or "
    "0 (may be given several times)",
    &member<&train_options::optimizer_settings>, option_range{}, "none"},
  train_option{"learning-rate", "", "Training", "RATE", "how far each update goes",
               &member<&train_options::learning_rate>, above(0, 1e6), learning_rate_when_empty},
  train_option{"learning-rate-decay", "", "Training", "NAME",
               "none, or to 0 at the last step: linear (in a straight line), cosine (in half a "
               "wave)",
               choice<&train_options::learning_rate_decay>(decay_names)},
  train_option{"warm-up", "", "Training", "COUNT",
               "steps in which the learning rate rises from 0, before it decays",
               &member<&train_options::warm_up>, between(0, count_max)},
  train_option{"seed", "", "Training", "NUMBER",
               "of all randomness: initial values, batches, dropout, virtual time",
               &member<&train_options::seed>, between(0, seed_max)},
  train_option{"evaluate-every", "", "Training", "STEPS",
               "how often the held-out text is evaluated; 0: only at the end",
               &member<&train_options::evaluate_every>, between(0, count_max)},

  train_option{"context", "model", "Model", "BYTES",
               "bytes that the model sees when it guesses the next",
               &model_member<&language_model_config::context>, extents},
  train_option{"embedding", "model", "Model", "WIDTH", "numbers that stand for one byte",
               &model_member<&language_model_config::embedding_size>, extents},
  train_option{"hidden", "model", "Model", "WIDTHS",
               "widths of the hidden layers, separated by commas",
               &model_member<&language_model_config::hidden_sizes>, extents, "none"},
  train_option{"embedding-dropout", "model", "Model", "SHARE",
               "share of embedded numbers that is forgotten while training",
               &model_member<&language_model_config::embedding_dropout>, from_to_below(0, 1)},
  train_option{"hidden-dropout", "model", "Model", "SHARE",
               "share of each hidden layer that is forgotten while training",
               &model_member<&language_model_config::hidden_dropout>, from_to_below(0, 1)},

  train_option{"checkpoint-every", "", "Checkpoints", "STEPS",
               "how often everything is saved that --resume needs, besides at the end; 0: never",
               &member<&train_options::checkpoint_every>, between(0, count_max)},
  train_option{"keep-checkpoints", "", "Checkpoints", "COUNT", "the newest so many stay",
               &member<&train_options::keep_checkpoints>, between(1, count_max)},
  train_option{
    "resume", "", "Checkpoints", "DIR",
    "go on with the run in that folder, with its options, from its newest checkpoint; what "
    "comes of it goes into a folder of its own",
    &member<&train_options::resume>, option_range{}, "a new run"},

  train_option{"run-dir", "", "Run", "DIR", "folder for everything that the run leaves behind",
               &member<&train_options::run_dir>, option_range{}, "runs/<date-time>"},
  train_option{"world", "", "Run", "NAME",
               "threads (real time), or virtual (one thread, virtual time, bit for bit repeatable)",
               choice<&train_options::world>(world_names)},
  train_option{"deadline", "", "Run", "SECONDS",
               "how long a step may take before the job counts as stalled",
               &member<&train_options::deadline_seconds>, above(0, 1e9)},
  train_option{
    "on-loss", "", "Run", "NAME",
    "when a replica is lost: go_on with those that are left, if they are enough, or stop "
    "with a checkpoint",
    choice<&train_options::on_loss>(loss_names)},
  train_option{"rejoin-patience", "", "Run", "SECONDS",
               "how long a job that lacks replicas waits for the return of a worker that was lost",
               &member<&train_options::rejoin_patience_seconds>, between(0, 1e9)},
  train_option{
    "replicate-owners", "", "Run", "COUNT",
    "parameter servers that hold each variable: with 2, the loss of one loses nothing, and "
    "one that is started again takes its place",
    &member<&train_options::replicate_owners>, between(1, 2)},
  train_option{"timeline-bytes", "", "Run", "COUNT",
               "bytes that timeline.json may have; of a run that is too long for them, every "
               "second, fourth, eighth step is shown, and so on",
               &member<&train_options::timeline_bytes>, between(100'000, 1e12)},
  train_option{"metrics-port", "", "Run", "PORT",
               "serve /metrics (Prometheus) and /actors (JSON, for troupe top) there; 0: on any "
               "port that is free",
               &member<&train_options::metrics_port>, between(0, 65535), "not served"},
  train_option{"metrics-address", "", "Run", "ADDRESS",
               "address of this machine to serve them on; whoever reaches it can read them",
               &member<&train_options::metrics_address>},
};

} // namespace

bool has_meaning(const train_option& option, strategy_kind strategy) {
  if (option.key == "communication") return strategy == strategy_kind::multi_worker_mirrored;
  return !replicas_meet(strategy) || std::ranges::count(parameter_server_only, option.key) == 0;
}

void reset(const train_option& option, train_options& options) {
  train_options standard;
  auto take = [&](const auto& target) {
    if constexpr (std::is_same_v<std::decay_t<decltype(target)>, option_choice>)
      target.set(options, target.get(standard));
    else
      target(options) = target(standard);
  };
  std::visit(take, option.target);
}

std::span<const train_option> train_option_table() {
  return options;
}

const train_option* find_train_option(std::string_view key) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const train_option& option) { return option.key == key; });
  return found == options.end() ? nullptr : &*found;
}

} // namespace troupe
