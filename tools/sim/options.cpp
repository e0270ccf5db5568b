// SPDX-License-Identifier: Apache-2.0
// The options of `troupe sim`, with their ranges and descriptions, and the experiment of them all.
#include "tools/sim/options.hpp"

#include "actors/recording/seconds.hpp"
#include "simulation/collective_clock.hpp"
#include "simulation/distributions/distribution_preset.hpp"
#include "tools/options/job_checks.hpp"
#include "tools/sim/learning.hpp"
#include "tools/sim/network.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <thread>

namespace troupe {

namespace {

constexpr double replicas_max = 1e6;
constexpr double steps_max = 1e9;
constexpr double batch_max = 1e6;
constexpr double owners_max = 1e4;
constexpr double runs_max = 1e6;
constexpr double threads_max = 1024;

constexpr std::string_view dynamic_word = "dynamic";

// The value of --collective for sums within hosts first, then between them.
constexpr std::string_view two_level_name = "two_level";

/// A policy name that only the simulator knows.
struct shorthand {
  std::string_view name;
  sync_policy policy;
  std::optional<uint64_t> aggregate; ///< Nothing: all replicas.
  bool is_fixed;                     ///< No other number of gradients makes sense.
  std::string_view why;              ///< Why not.
};

// Where all replicas are needed, none is late for a step: the synchronous policies do not differ.
constexpr shorthand shorthands[] = {
  {"sync", sync_policy::latest_token, std::nullopt, true, "a step waits for all"},
  {"async", sync_policy::k_batch_async, 1, true, "every gradient is an update"},
  {"ssp", sync_policy::ssp, 1, true, "every gradient is an update"},
  {local_sgd_name, sync_policy::latest_token, std::nullopt, false, ""},
  {all_reduce_name, sync_policy::latest_token, std::nullopt, true, "a step waits for all"},
};

// Options that only one policy knows.
constexpr std::pair<std::string_view, std::string_view> options_of_one_policy[]
  = {{"slack", "ssp"},
     {"local-steps", local_sgd_name},
     {"averaging-time", local_sgd_name},
     {"collective", all_reduce_name},
     {"replicas-per-host", all_reduce_name},
     {"slow-link", all_reduce_name}};

// "tensorflow, latest_token, cancel"
std::string listed_policies(bool (policy_traits::*is_true)() const) {
  return names_of(policies_that(is_true), ", ");
}

std::string adapting_policies() {
  return names_of(policies_that(&policy_traits::may_adapt));
}

constexpr option_range reals{0, real_max};
constexpr option_range sim_replica_counts{1, replicas_max};
constexpr option_range step_counts{1, steps_max};

option_value aggregate_value(std::optional<uint64_t>& place) {
  return single_value(
    place, toml_form::any, "a whole number " + to_string(sim_replica_counts),
    [](std::string_view text) {
      return text == dynamic_word ? std::optional{dynamic_aggregate}
                                  : whole_of(text, sim_replica_counts);
    },
    [](uint64_t count) {
      return count == dynamic_aggregate ? std::string{dynamic_word} : fmt::format("{}", count);
    });
}

/// Adds options that a file may give as a number or as a text: both 0.5 and "resnet-50" are times.
struct lenient_options {
  command_options& all;

  void begin_group(const char* heading) { all.begin_group(heading, true); }

  void add(const char* name, const char* argument, const std::string& help, option_value value,
           const char* when_empty = "") {
    value.form = toml_form::any;
    all.add(name, argument, help, std::move(value), when_empty);
  }
};

void add_job_options(lenient_options all, sim_options& options) {
  all.begin_group("Replicas and policy");
  all.add("--replicas", "N", "replicas that compute",
          whole_value(options.replicas, sim_replica_counts));
  all.add(
    "--aggregate", "N|dynamic",
    fmt::format("gradients that a step needs; dynamic: as many as the times seen so far suggest, "
                "under {}",
                adapting_policies()),
    aggregate_value(options.aggregate), "all replicas");
  all.add("--gain-power", "POWER",
          "with --aggregate dynamic: an update of k gradients is taken to be worth k to that power",
          real_value(options.gain_power, reals), "1");
  all.add("--policy", "NAME",
          fmt::format(
            "what becomes of the replicas that a step did not wait for: {}; sync: a step waits "
            "for all. Stale gradients count under {}, async (every gradient is an update) and "
            "{}; local_sgd averages replicas that train by themselves; all_reduce: no parameter "
            "servers, all wait for the sum of all",
            names_of(policies_that(&policy_traits::is_synchronous)),
            listed_policies(&policy_traits::gathers_stale),
            listed_policies(&policy_traits::keeps_pace)),
          text_or_none_value(options.policy));
  all.add(
    "--distinct", "on|off",
    "whether a replica whose gradient counts waits for the step to end before it takes a token; "
    "else, under tensorflow, it may give the step a second gradient",
    text_or_none_value(options.distinct));
  all.add("--slack", "N", "under ssp, how many gradients a replica may be ahead of the slowest",
          whole_value(options.slack, {0, steps_max}), "0");
  all.add("--local-steps", "N", "under local_sgd, gradients that a replica applies by itself",
          whole_value(options.local_steps, step_counts), "1");
  all.add("--averaging-time", "SECONDS", "under local_sgd, what taking the average takes",
          real_value(options.averaging_time, reals), "0");
  all.add("--collective", "NAME",
          "under all_reduce, how the gradients of all become one over --network and --bandwidth: "
          "ring, halving_doubling, all_to_all, direct, chain, tree, or two_level: within hosts "
          "first, in their memory, then by a ring of hosts",
          text_or_none_value(options.collective), "ring");
  all.add("--replicas-per-host", "N", "with two_level, replicas of one host: a divisor of all",
          whole_value(options.replicas_per_host, {1, replicas_max}));
  all.add("--initial-tokens", "N", "tokens at the start",
          whole_value(options.initial_tokens, {0, replicas_max}),
          "as many as gradients are needed under tensorflow");
  all.add("--dead", "N", "replicas that never start", whole_value(options.dead, {0, replicas_max}));
  all.add("--compute", "DIST",
          "how long a gradient takes, in seconds: a preset, or an expression such as '0.8 + "
          "exponential(0.2)' or 'lognormal(1, 0.08) slow=3/50*2.4'",
          text_or_none_value(options.compute));
}

void add_network_options(lenient_options all, sim_options& options) {
  all.begin_group("Network and faults");
  all.add("--network", "DIST",
          "how long a message between two nodes is on its way: 300us, or an expression in seconds",
          text_or_none_value(options.network), "no time");
  all.add("--bandwidth", "BYTES",
          "bytes a second that each node's network card sends and receives, shared evenly: 1GB",
          text_or_none_value(options.bandwidth), "without limit");
  all.add(
    "--slow-link", "{I, J}*F",
    "under all_reduce, the link between two replicas, or hosts with two_level, on which bytes "
    "and latency take so many times as long: '{3, 4}*10'",
    text_or_none_value(options.slow_link), "none");
  all.add("--owners", "N", "nodes that the variables are spread over",
          whole_value(options.owners, {1, owners_max}), "1");
  all.add("--model-bytes", "BYTES", "what a replica reads before it computes: 100MB",
          text_or_none_value(options.model_bytes), "those of what is learnt, or of the preset");
  all.add("--gradient-bytes", "BYTES", "what it pushes then",
          text_or_none_value(options.gradient_bytes), "as much as it reads");
  all.add(
    "--service", "DIST",
    "how long a variable's node is busy with each gradient: 70us, or an expression in seconds",
    text_or_none_value(options.service), "no time");
  all.add(
    "--faults", "LIST",
    "what goes wrong by chance: crash=MEAN/RETURN, freeze=MEAN/LENGTH, wave=MEAN*SIZE, "
    "swizzle=MEAN/LENGTH in seconds; lost, doubled and late=PROBABILITY of messages; down=N, the "
    "most at one time; permanent=SHARE of crashes; warm-up=SECONDS without any. A scenario file "
    "may plan faults in tables [[fault]]",
    text_or_none_value(options.faults), "nothing");
  all.add("--silence-timeout", "SECONDS",
          "how long a node that is frozen or cut off may be silent before it is given up; 0: "
          "never",
          real_value(options.silence_timeout, reals),
          "2.5, as long as links between processes wait");
  all.add("--ask-again", "SECONDS",
          "how long a replica waits before it repeats a request; 0: it does not",
          real_value(options.ask_again, reals), "1 if messages are lost or doubled");
}

void add_learning_options(lenient_options all, sim_options& options) {
  all.begin_group("What is learnt");
  all.add("--train", "NAME",
          "learn something in virtual time: logistic (a regression on data that are drawn) or "
          "language (the model of troupe train, made small)",
          text_or_none_value(options.train), "nothing is learnt");
  all.add("--optimizer", "NAME", "with --train, what an update does; those of troupe train",
          text_or_none_value(options.optimizer), "sgd");
  all.add("--learning-rate", "RATE", "with --train, how far an update goes",
          real_value(options.learning_rate, reals), "one that suits most runs");
  all.add("--batch", "N", "with --train, examples in each gradient",
          whole_value(options.batch, {1, batch_max}), "32");
  all.add("--data", "same|own",
          "with --train, whether all replicas' data are alike, or each has its own",
          text_or_none_value(options.data), "same");
  all.add("--text", "FILE", "with --train language, what to learn",
          text_or_none_value(options.text), "that of troupe train");
  all.add("--evaluate-every", "N", "with --train, steps between two evaluations of the loss",
          whole_value(options.evaluate_every, step_counts), "a fiftieth of all");
  all.add("--target-loss", "LOSS", "with --train, the loss to which the time is measured",
          real_value(options.target_loss, reals));
  all.add("--curvature", "C",
          "with --train and --aggregate dynamic, learning rate times the Lipschitz constant of the "
          "gradient, below 2",
          real_value(options.curvature, reals),
          "estimated from how the loss falls; 0.1 if not by sgd");
}

void add_run_options(lenient_options all, sim_options& options) {
  all.begin_group("How long, and how often");
  all.add("--steps", "N", "updates to make in a run", whole_value(options.steps, step_counts));
  all.add("--warm-up", "N", "of these, the first ones that step times leave out",
          whole_value(options.warm_up, {0, steps_max}), "a twentieth");
  all.add("--seed", "N", "of all draws",
          whole_value(options.seed, {.low = 0, .high = 0x1p63, .below_high = true}));
  all.add("--runs", "N", "runs, each with the next seed", whole_value(options.runs, {1, runs_max}));
  all.add("--threads", "N", "rows or runs to simulate at a time; results do not depend on it",
          whole_value(options.threads, {1, threads_max}), "all cores");
  all.add("--engine", "actors|direct",
          "actors: the actors of a real job, which can simulate everything; direct: their "
          "decisions alone, without messages; both write the same ledger",
          text_or_none_value(options.engine),
          "direct, unless there is a network, faults or --train");
}

expected<std::optional<collective_algorithm>> collective_of(const sim_options& options) {
  if (options.policy != all_reduce_name) return std::nullopt;
  if (options.collective.empty() || options.collective == two_level_name)
    return collective_algorithm::ring;
  auto algorithm = parse_collective_algorithm(options.collective);
  if (!algorithm)
    return misuse(fmt::format("--collective: {}, {}", algorithm.error().message, two_level_name));
  return *algorithm;
}

expected<uint32_t> replicas_per_host_of(const sim_options& options) {
  auto replicas = options.replicas_per_host;
  if (options.policy != all_reduce_name) return 1;
  if (options.collective != two_level_name) {
    if (!replicas) return 1;
    return misuse(fmt::format("--replicas-per-host has no meaning without hosts; leave it out, or "
                              "take --collective {}",
                              two_level_name));
  }
  if (!replicas)
    return misuse(fmt::format("--collective {} needs to know the hosts; say how many replicas each "
                              "has, as in --replicas-per-host 8",
                              two_level_name));
  if (options.replicas % *replicas != 0)
    return misuse(fmt::format("--replicas-per-host {} is no divisor of {} replicas; give one that "
                              "is, or other --replicas",
                              *replicas, options.replicas));
  return static_cast<uint32_t>(*replicas);
}

// Refuses a link between nodes that are not there.
expected<void> check_slow_link(const experiment& experiment) {
  if (!experiment.network || !experiment.collective) return {};
  auto link = experiment.network(experiment.seed).slowed;
  auto hosts = experiment.sync.total_num_replicas / experiment.replicas_per_host;
  if (!link || std::max(link->one, link->other) < hosts) return {};
  return misuse(fmt::format("--slow-link is between {} and {}, but there are {}: 0 to {}",
                            link->one, link->other, hosts, hosts - 1));
}

expected<void> check_engine(const experiment& experiment) {
  auto reason = experiment.collective ? reason_against_collectives(experiment) : "";
  if (!reason.empty())
    return misuse(
      fmt::format("--policy {} is simulated without {}; leave that out, or take another "
                  "policy",
                  all_reduce_name, reason));
  reason = experiment.engine == simulation_engine::direct ? reason_for_actors(experiment) : "";
  if (!reason.empty())
    return misuse(fmt::format("--engine direct cannot simulate {}; leave that out, or take "
                              "--engine actors",
                              reason));
  return {};
}

expected<std::optional<simulation_engine>> engine_of(const sim_options& options) {
  if (options.engine.empty()) return std::nullopt;
  if (options.engine == "actors") return simulation_engine::actors;
  if (options.engine == "direct") return simulation_engine::direct;
  return misuse(fmt::format("--engine must be actors or direct, not '{}'", options.engine));
}

unsigned threads_of(const sim_options& options) {
  if (options.threads) return static_cast<unsigned>(*options.threads);
  return std::max(1U, std::thread::hardware_concurrency());
}

const shorthand* find_shorthand(std::string_view policy) {
  const auto* found = std::ranges::find(shorthands, policy, &shorthand::name);
  return found == std::end(shorthands) ? nullptr : found;
}

expected<sync_policy> policy_of(const sim_options& options) {
  if (const auto* shorthand = find_shorthand(options.policy)) return shorthand->policy;
  auto policy = parse_sync_policy(options.policy);
  if (policy) return policy;
  return misuse(fmt::format("--policy: no policy '{}'; there are {}, sync, async, {}, {} and {}",
                            options.policy, listed_policies(&policy_traits::is_synchronous),
                            listed_policies(&policy_traits::is_asynchronous), local_sgd_name,
                            all_reduce_name));
}

expected<uint64_t> needed_of(const sim_options& options) {
  const auto* shorthand = find_shorthand(options.policy);
  auto usual
    = shorthand == nullptr ? options.replicas : shorthand->aggregate.value_or(options.replicas);
  auto needed = options.aggregate.value_or(usual);
  auto is_dynamic = needed == dynamic_aggregate;
  if (is_dynamic && shorthand != nullptr)
    return misuse(fmt::format("--aggregate dynamic has no meaning under {}; take --policy {}",
                              shorthand->name, adapting_policies()));
  if (is_dynamic) return options.replicas;
  return shorthand != nullptr && shorthand->is_fixed ? usual : needed; // other rows may use it
}

// Refuses a number of gradients that no row can use.
expected<void> check_aggregate(std::span<const sim_options> rows) {
  auto is_free = [](const sim_options& row) {
    const auto* shorthand = find_shorthand(row.policy);
    return shorthand == nullptr || !shorthand->is_fixed;
  };
  if (std::ranges::any_of(rows, is_free)) return {};
  for (const auto& row : rows) {
    const auto* shorthand = find_shorthand(row.policy);
    auto usual = shorthand->aggregate.value_or(row.replicas);
    if (row.aggregate == dynamic_aggregate) continue; // refused by `needed_of`
    if (row.aggregate.value_or(usual) != usual)
      return misuse(fmt::format("--aggregate is {} with {} replicas, but under {} {}; leave it "
                                "out, or choose another policy",
                                *row.aggregate, row.replicas, shorthand->name, shorthand->why));
  }
  return {};
}

local_sgd_options local_sgd_of(const sim_options& options) {
  if (options.policy != local_sgd_name) return {};
  return {.local_steps = static_cast<uint32_t>(options.local_steps.value_or(1)),
          .averaging_time = to_job_time(options.averaging_time.value_or(0))};
}

// Gains are measured where there is something to measure, unless the user knows better.
dynamic_backups dynamic_of(const sim_options& options) {
  auto is_measured = !options.train.empty() && !options.gain_power;
  return {.gain = is_measured ? gain_model::measured : gain_model::power,
          .power = options.gain_power.value_or(1),
          .curvature = options.curvature.value_or(0)};
}

// Refuses fewer tokens than the first step needs: it takes one gradient of each replica, and the
// others for tokens.
expected<void> check_initial_tokens(const sync_options& sync) {
  auto needs_tokens = traits_of(sync.policy).counts_tokens() && !sync.one_gradient_per_replica
                      && sync.initial_tokens >= 0
                      && sync.replicas_to_aggregate > sync.total_num_replicas;
  auto tokens = needs_tokens ? sync.replicas_to_aggregate - sync.total_num_replicas : 0;
  if (!needs_tokens || sync.initial_tokens >= tokens) return {};
  return misuse(fmt::format("--initial-tokens is {}, but the first step needs {} beside the {} "
                            "replicas for its {} gradients; raise it, or leave it out",
                            sync.initial_tokens, tokens, sync.total_num_replicas,
                            sync.replicas_to_aggregate));
}

expected<sync_options> sync_of(const sim_options& options) {
  auto policy = policy_of(options);
  if (!policy) return tl::unexpected<error>(policy.error());
  if (options.distinct != "on" && options.distinct != "off")
    return misuse(fmt::format("--distinct must be on or off, not '{}'", options.distinct));
  auto needed = needed_of(options);
  if (!needed) return tl::unexpected<error>(needed.error());
  sync_options sync{.replicas_to_aggregate = static_cast<uint32_t>(*needed),
                    .total_num_replicas = static_cast<uint32_t>(options.replicas),
                    .policy = *policy,
                    .one_gradient_per_replica = options.distinct == "on",
                    .slack = traits_of(*policy).keeps_pace() ? options.slack.value_or(0) : 0};
  if (options.aggregate == dynamic_aggregate) sync.dynamic = dynamic_of(options);
  if (options.initial_tokens) sync.initial_tokens = static_cast<int64_t>(*options.initial_tokens);
  if (auto enough = check_initial_tokens(sync); !enough)
    return tl::unexpected<error>(enough.error());
  if (auto valid = sync.validate(); !valid) return tl::unexpected<error>(valid.error());
  return sync;
}

/// Options with their names. Adding them takes longer than writing them, which a report does for
/// every row.
struct named_options {
  named_options() { add_options(all, values); }

  sim_options values;
  command_options all;
};

const command_options& by_name(const sim_options& options) {
  thread_local named_options named;
  named.values = options;
  return named.all;
}

// The bytes that a card moves unless an option says how many.
uint64_t variable_bytes(const sim_options& options,
                        const std::function<learning_options(uint64_t)>& learning) {
  if (options.bandwidth.empty()) return 0;
  if (!learning) {
    const auto* preset = find_distribution_preset(options.compute);
    return preset == nullptr ? 0 : static_cast<uint64_t>(preset->model_bytes);
  }
  uint64_t bytes = 0;
  auto learnt = learning(options.seed);
  for (const auto& [name, value] : learnt.task->variables)
    bytes += value.bytes();
  return bytes;
}

expected<uint64_t> warm_up_of(const sim_options& options) {
  auto warm_up = options.warm_up.value_or(std::min((options.steps + 19) / 20, options.steps - 1));
  if (warm_up < options.steps) return warm_up;
  return misuse(fmt::format("--warm-up leaves out {} steps of {}; lower it, or make more --steps",
                            warm_up, options.steps));
}

expected<distribution> compute_of(const sim_options& options) {
  auto compute = distribution::parse(options.compute);
  if (!compute) return fail_at("--compute", compute.error());
  return check_named_nodes("--compute", *compute, options.replicas).map([&] { return *compute; });
}

} // namespace

void add_options(command_options& all, sim_options& options) {
  add_job_options({all}, options);
  add_network_options({all}, options);
  add_learning_options({all}, options);
  add_run_options({all}, options);
}

std::vector<std::pair<std::string, std::string>> option_texts(const sim_options& options) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& option : by_name(options).options())
    for (auto& text : option.value.texts())
      result.emplace_back(option.key, std::move(text));
  return result;
}

std::string value_text(std::string_view key, const sim_options& options) {
  const auto texts = by_name(options).find(key)->value.texts();
  return texts.empty() ? std::string{} : texts.front();
}

expected<void> check_uses(std::span<const sim_options> rows) {
  const auto& first = rows.front();
  auto no_row = [&](auto uses) { return std::ranges::none_of(rows, uses); };
  auto refuse_without_policy = [&](std::string_view option, std::string_view policy) {
    return misuse(fmt::format("--{} has no meaning under {}; leave it out, or take --policy {}",
                              option, first.policy, policy));
  };
  for (auto [option, policy] : options_of_one_policy)
    if (!value_text(option, first).empty()
        && std::ranges::count(rows, policy, &sim_options::policy) == 0)
      return refuse_without_policy(option, policy);
  if (auto used = check_aggregate(rows); !used) return used;
  auto reads_models = [](const sim_options& row) { return row.policy != all_reduce_name; };
  if (!first.model_bytes.empty() && !first.gradient_bytes.empty() && no_row(reads_models))
    return misuse(
      fmt::format("--model-bytes has no meaning under {}, where no replica reads the model; leave "
                  "it out: --gradient-bytes says what is summed",
                  all_reduce_name));
  auto gives_one = [](const sim_options& row) {
    auto policy = policy_of(row);
    return policy && traits_of(*policy).is_synchronous() && !traits_of(*policy).repeats;
  };
  if (first.distinct == "on" && std::ranges::all_of(rows, gives_one))
    return misuse(
      fmt::format("--distinct on has no meaning under {}, where no replica gives a step "
                  "two gradients; leave it out, or take --policy tensorflow",
                  first.policy));
  auto counts_tokens = [](const sim_options& row) {
    auto policy = policy_of(row);
    return policy && traits_of(*policy).counts_tokens();
  };
  if (first.initial_tokens && no_row(counts_tokens))
    return refuse_without_policy("initial-tokens", to_string(sync_policy::tensorflow));
  auto is_dynamic = [](const sim_options& row) { return row.aggregate == dynamic_aggregate; };
  for (std::string_view option : {"gain-power", "curvature"})
    if (!value_text(option, first).empty() && no_row(is_dynamic))
      return misuse(
        fmt::format("--{} has no meaning where a step needs a fixed number of gradients; leave it "
                    "out, or take --aggregate dynamic",
                    option));
  return {};
}

expected<experiment> experiment_of(const sim_options& options) {
  auto sync = sync_of(options);
  if (!sync) return tl::unexpected<error>(sync.error());
  if (options.dead > options.replicas)
    return misuse(fmt::format("--dead is {}, but there are {} replicas; lower it", options.dead,
                              options.replicas));
  auto warm_up = warm_up_of(options);
  if (!warm_up) return tl::unexpected<error>(warm_up.error());
  auto compute = compute_of(options);
  if (!compute) return tl::unexpected<error>(compute.error());
  auto learning = learning_of(options);
  if (!learning) return tl::unexpected<error>(learning.error());
  auto network = network_of(options, variable_bytes(options, *learning));
  if (!network) return tl::unexpected<error>(network.error());
  auto faults = faults_of(options);
  if (!faults) return tl::unexpected<error>(faults.error());
  if (auto valid = check_event_counts(options, *compute, faults->plan.rates); !valid)
    return tl::unexpected<error>(valid.error());
  sync->require_finite = faults->plan.corrupts();
  auto collective = collective_of(options);
  if (!collective) return tl::unexpected<error>(collective.error());
  auto replicas_per_host = replicas_per_host_of(options);
  if (!replicas_per_host) return tl::unexpected<error>(replicas_per_host.error());
  auto engine = engine_of(options);
  if (!engine) return tl::unexpected<error>(engine.error());
  experiment result{.sync = *sync,
                    .compute = *compute,
                    .steps = options.steps,
                    .warm_up = *warm_up,
                    .dead = static_cast<uint32_t>(options.dead),
                    .local_sgd = local_sgd_of(options),
                    .network = std::move(*network),
                    .collective = *collective,
                    .replicas_per_host = *replicas_per_host,
                    .faults = std::move(faults->plan),
                    .ask_again_after = faults->ask_again_after,
                    .learning = std::move(*learning),
                    .target_loss
                    = options.target_loss.value_or(std::numeric_limits<double>::quiet_NaN()),
                    .seed = options.seed,
                    .runs = options.runs,
                    .engine = *engine,
                    .threads = threads_of(options)};
  auto valid = check_slow_link(result).and_then([&] { return check_engine(result); });
  if (!valid) return tl::unexpected<error>(valid.error());
  return result;
}

} // namespace troupe
