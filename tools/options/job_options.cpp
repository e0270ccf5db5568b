// SPDX-License-Identifier: Apache-2.0
// The options of a job, with their ranges and descriptions.
#include "tools/options/job_options.hpp"

#include "tools/options/command_options.hpp"

#include <array>
#include <fmt/format.h>

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
constexpr std::array<std::string_view, 2> world_names{"threads", "virtual"};
constexpr std::array<std::string_view, 2> arithmetic_names{"done", "skipped"};
constexpr std::array<std::string_view, 2> loss_names{"go_on", "stop"};

// First those of a job in which a chief takes the first gradients, then those of one in which
// processes make every step together.
constexpr std::array<std::string_view, 12> options_of_one_strategy{
  "aggregate",     "policy",        "backups",      "curvature",      "initial-tokens",
  "slack",         "on-loss",       "min-replicas", "rejoin-timeout", "replicate-owners",
  "communication", "check-replicas"};
constexpr size_t multi_worker_option_count = 2; ///< The last ones.

constexpr option_range replica_counts{1, 100'000};
constexpr option_range counts{0, 1e9};
constexpr option_range counts_from_1{1, 1e9};
constexpr option_range slow_factors{1, 1e6};
constexpr option_range seeds{0, 9.2e18}; // the greatest fits into a TOML integer

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

// "tensorflow (as SyncReplicasOptimizer does), latest_token (the one for backups)"
std::string names_and_words(bool (policy_traits::*is_true)() const) {
  std::string text;
  for (auto policy : policies_that(is_true))
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", to_string(policy),
                        traits_of(policy).about);
  return text;
}

} // namespace

void add_options(command_options& all, job_options& options) {
  add_replica_options(all, options);
  all.begin_group("Training", true);
  all.add("--steps", "COUNT", "updates to make", whole_value(options.steps, counts_from_1),
          fmt::format("{}", job_defaults::steps));
  add_seed_options(all, options);
  add_run_options(all, options);
}

void add_replica_options(command_options& all, job_options& options) {
  all.begin_group("Replicas", true);
  all.add("--strategy", "NAME",
          "parameter_server (an update waits for the first --aggregate gradients), or every "
          "update takes all: mirrored (one process), multi_worker_mirrored (all processes of "
          "a cluster)",
          choice_value(options.strategy, strategy_names));
  all.add(
    "--replicas", "COUNT",
    "replicas that compute gradients; with --min-replicas, the most there may be. If it is not "
    "given and the default is no multiple of the workers, one for each worker",
    whole_value(options.replicas, replica_counts));
  all.add("--min-replicas", "COUNT",
          "begin when so many of the --replicas are there, after at most 5 s more for the others; "
          "workers may join a running job, and leave it (SIGTERM); 0: begin with all",
          whole_value(options.min_replicas, {0, 100'000}));
  all.add("--aggregate", "COUNT",
          "gradients that each update averages (default under policy ssp: 1); replicas beyond that "
          "number are backups",
          whole_value(options.aggregate, replica_counts));
  all.add("--policy", "NAME",
          fmt::format("what happens to late replicas: {}; policies that use stale gradients: {}",
                      names_and_words(&policy_traits::is_synchronous),
                      names_and_words(&policy_traits::is_asynchronous)),
          choice_value(options.policy, policy_names));
  all.add("--backups", "NAME",
          fmt::format("fixed: replicas beyond --aggregate; dynamic: every step after the first "
                      "waits for the number of gradients with the best estimated gain for its "
                      "time, under policy {}",
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
  all.add("--variable-device", "NAMES",
          "where the variables of this process lie and are updated: cpu, or GPUs, in turn, or with "
          "a copy on each where replicas meet",
          text_value(options.variable_device), "where replicas compute, or cpu: docs/gpu.md");
  all.add("--communication", "NAME",
          "how processes add up gradients, for strategy multi_worker_mirrored: auto (messages, "
          "in the order of replicas), ring, halving_doubling or tree (messages, in an order of "
          "their own), nccl (GPUs; needs --device)",
          choice_value(options.communication, communication_names));
  all.add(
    "--check-replicas", "STEPS",
    "for strategy multi_worker_mirrored: how often processes compare their copies of the "
    "variables, by checksums; a difference ends the job, naming variable and process; 0: never",
    whole_value(options.check_replicas, counts));
}

void add_seed_options(command_options& all, job_options& options) {
  all.add("--seed", "NUMBER",
          "seed of all random numbers: initial values, batches, dropout, virtual time",
          whole_value(options.seed, seeds));
  all.add("--evaluate-every", "STEPS",
          "how often the held-out data are evaluated; 0: only at the end",
          whole_value(options.evaluate_every, counts));
}

void add_run_options(command_options& all, job_options& options) {
  all.begin_group("Checkpoints", true);
  all.add("--checkpoint-every", "STEPS",
          "steps between checkpoints for --resume; the last step is saved, too; 0: no checkpoints",
          whole_value(options.checkpoint_every, counts));
  all.add("--keep-checkpoints", "COUNT", "how many of the newest checkpoints to keep",
          whole_value(options.keep_checkpoints, counts_from_1));
  all.add("--resume", "DIR",
          "continue the run in that folder from its newest checkpoint, with its options; the new "
          "files go into a folder of their own",
          text_value(options.resume), "a new run");
  all.begin_group("Run", true);
  all.add("--run-dir", "DIR", "folder for all files of the run", text_value(options.run_dir),
          "runs/<date-time>");
  all.add("--world", "NAME",
          "threads (real time), or virtual (one thread, virtual time, bit for bit repeatable)",
          choice_value(options.world, world_names));
  all.add("--compute", "DIST",
          "with --world virtual, how long a gradient takes, in seconds: a number, or an expression "
          "such as \"lognormal(1, 0.3) slow={5}*3\"; troupe sim --help lists what there is",
          text_value(options.compute), "0.1");
  all.add(
    "--arithmetic", "NAME",
    "done; or, with --world virtual, skipped: replicas compute nothing and wait for the time of "
    "--compute, and their gradients are zeros",
    choice_value(options.arithmetic, arithmetic_names));
  all.add("--deadline", "SECONDS", "how long a step may take before the job counts as stalled",
          real_value(options.deadline_seconds, above(0, 1e9)));
  all.add("--on-loss", "NAME",
          "when a replica is lost: go_on with those that are left, if they are enough, or stop "
          "with a checkpoint",
          choice_value(options.on_loss, loss_names));
  all.add("--rejoin-timeout", "SECONDS",
          "how long the job waits for a lost worker to come back if too few replicas are left",
          real_value(options.rejoin_timeout_seconds, {0, 1e9}));
  all.add("--replicate-owners", "COUNT",
          "parameter servers that hold each variable: with 2, the loss of one loses nothing, and "
          "one that is started again takes its place",
          whole_value(options.replicate_owners, {1, 2}));
  all.add("--timeline-bytes", "COUNT",
          "largest size of timeline.json; of a run that is too long for it, only every second, "
          "fourth or eighth step is shown, and so on",
          whole_value(options.timeline_bytes, {100'000, 1e12}));
  all.add("--ledger-bytes", "COUNT",
          "largest size of ledger.csv; later steps are in metrics.csv alone",
          whole_value(options.ledger_bytes, {0, 1e15}));
  all.add("--metrics-port", "PORT",
          "serve the page of the run (for a browser), /metrics (for Prometheus) and /actors (JSON, "
          "for troupe top) on this port; 0: any free port",
          whole_value(options.metrics_port, {0, 65535}), "not served");
  all.add("--metrics-address", "ADDRESS",
          "IP address of this machine to serve them on; beyond loopback, clients need a token: "
          "TROUPE_METRICS_TOKEN, or else one that the job draws and prints",
          text_value(options.metrics_address));
  all.add(
    "--observe-period", "SECONDS",
    "how often the chief's process asks the others what their actors do; 0: never, and flight "
    "records cover the chief's process only",
    real_value(options.observe_period_seconds, {0, 3600}));
}

std::span<const std::string_view> without_meaning(strategy_kind strategy) {
  const std::span all{options_of_one_strategy};
  if (strategy == strategy_kind::parameter_server) return all.last(multi_worker_option_count);
  if (strategy == strategy_kind::mirrored) return all;
  return all.first(all.size() - multi_worker_option_count);
}

std::vector<std::string_view> config_comments(bool with_run_dir) {
  if (with_run_dir) return {"resume"};
  return {"resume", "run-dir"};
}

sync_options sync_of(const job_options& options) {
  sync_options sync{static_cast<uint32_t>(options.aggregate),
                    static_cast<uint32_t>(options.replicas), options.policy};
  if (options.backups == backup_kind::dynamic) {
    sync.dynamic.emplace();
    sync.dynamic->curvature = options.curvature.value_or(0);
  }
  sync.slack = options.slack.value_or(0);
  if (options.initial_tokens) sync.initial_tokens = static_cast<int64_t>(*options.initial_tokens);
  return sync;
}

} // namespace troupe
