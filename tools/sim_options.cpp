// SPDX-License-Identifier: Apache-2.0
// The table of options of `troupe sim`, and what they mean together.
#include "tools/sim_options.hpp"

#include "actors/recording/readable.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

namespace {

constexpr uint64_t replicas_max = 1'000'000;
constexpr uint64_t steps_max = 1'000'000'000;
constexpr uint64_t runs_max = 1'000'000;
constexpr uint64_t seed_max = uint64_t{1} << 63;

constexpr std::string_view dynamic_word = "dynamic";

/// What only the simulator knows by name: a policy, and what goes with it.
struct shorthand {
  std::string_view name;
  sync_policy policy;
  std::optional<uint64_t> aggregate; ///< Nothing: all replicas.
  bool is_fixed;                     ///< No other number of gradients makes sense.
  std::string_view why;
};

// Where everybody is needed, nobody is late for a step: the synchronous policies do not differ.
constexpr shorthand shorthands[] = {
  {"sync", sync_policy::latest_token, std::nullopt, true, "a step waits for all"},
  {"async", sync_policy::k_batch_async, 1, true, "every gradient is an update"},
  {"ssp", sync_policy::ssp, 1, true, "every gradient is an update"},
  {"local_sgd", sync_policy::latest_token, std::nullopt, false, ""},
};

constexpr sim_option table[] = {
  {"replicas", "N", "replicas that compute", &sim_options::replicas, 1, replicas_max},
  {"aggregate", "N|dynamic",
   "gradients that a step needs; dynamic: as many as seem best by what was seen, under "
   "latest_token or cancel",
   &sim_options::aggregate, 1, replicas_max, "all replicas", dynamic_word},
  {"gain-power", "POWER",
   "with --aggregate dynamic: an update of k gradients is taken to be worth k to that power",
   &sim_options::gain_power, 0, 0, "1"},
  {"policy", "NAME",
   "what becomes of the replicas that a step did not wait for: tensorflow, latest_token or "
   "cancel; sync: a step waits for all. Stale gradients count under k_async, k_batch_async, async "
   "(every gradient is an update) and ssp; local_sgd averages replicas that train by themselves",
   &sim_options::policy},
  {"distinct", "on|off",
   "whether a replica's second gradient to the same step is dropped; only under tensorflow could "
   "it give one",
   &sim_options::distinct},
  {"slack", "N", "under ssp, how many gradients a replica may be ahead of the slowest",
   &sim_options::slack, 0, steps_max, "0"},
  {"local-steps", "N", "under local_sgd, gradients that a replica applies by itself",
   &sim_options::local_steps, 1, steps_max, "1"},
  {"averaging-time", "SECONDS", "under local_sgd, what taking the average takes",
   &sim_options::averaging_time, 0, 0, "0"},
  {"initial-tokens", "N", "tokens at the start", &sim_options::initial_tokens, 0, replicas_max,
   "as many as gradients are needed under tensorflow"},
  {"dead", "N", "replicas that never start", &sim_options::dead, 0, replicas_max},
  {"compute", "DIST",
   "how long a gradient takes, in seconds: a preset, or an expression such as '0.8 + "
   "exponential(0.2)' or 'lognormal(1, 0.08) slow=3/50*2.4'",
   &sim_options::compute},
  {"steps", "N", "updates to make in a run", &sim_options::steps, 1, steps_max},
  {"warm-up", "N", "of these, the first ones that step times leave out", &sim_options::warm_up, 0,
   steps_max, "a twentieth"},
  {"seed", "N", "of all draws", &sim_options::seed, 0, seed_max},
  {"runs", "N", "runs, each with the next seed", &sim_options::runs, 1, runs_max},
};

tl::unexpected<error> refuse(std::string line) {
  return fail(errc::invalid_argument, std::move(line));
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// Of a number that need not be whole.
std::optional<double> real_of(std::string_view text) {
  double number = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return number >= 0 && number <= real_max ? std::optional{number} : std::nullopt;
}

const shorthand* find_shorthand(std::string_view policy) {
  const auto* found = std::ranges::find(shorthands, policy, &shorthand::name);
  return found == std::end(shorthands) ? nullptr : found;
}

expected<sync_policy> policy_of(const sim_options& options) {
  if (const auto* known = find_shorthand(options.policy)) return known->policy;
  auto policy = parse_sync_policy(options.policy);
  if (policy) return policy;
  return refuse(fmt::format("--policy: no policy '{}'; there are tensorflow, latest_token, cancel, "
                            "sync, async, k_async, k_batch_async, ssp and local_sgd",
                            options.policy));
}

expected<uint64_t> needed_of(const sim_options& options) {
  const auto* known = find_shorthand(options.policy);
  auto usual = known != nullptr && known->aggregate ? *known->aggregate : options.replicas;
  auto needed = options.aggregate.value_or(usual);
  auto is_dynamic = needed == dynamic_aggregate;
  if (options.gain_power && !is_dynamic)
    return refuse("--gain-power has no meaning where a step needs a fixed number of gradients; "
                  "leave it out, or take --aggregate dynamic");
  if (is_dynamic && known != nullptr)
    return refuse(fmt::format("--aggregate dynamic has no meaning under {}; take --policy "
                              "latest_token or cancel",
                              known->name));
  if (is_dynamic) return options.replicas;
  if (known != nullptr && known->is_fixed && needed != usual)
    return refuse(fmt::format("--aggregate is {} with {} replicas, but under {} {}; leave it out, "
                              "or choose another policy",
                              needed, options.replicas, known->name, known->why));
  return needed;
}

// What goes with one policy only.
expected<void> check_policy(const sim_options& options) {
  struct rule {
    bool is_given;
    std::string_view option;
    std::string_view policy;
  };

  for (const auto& [is_given, option, policy] :
       {rule{options.slack.has_value(), "slack", "ssp"},
        rule{options.local_steps.has_value(), "local-steps", "local_sgd"},
        rule{options.averaging_time.has_value(), "averaging-time", "local_sgd"}})
    if (is_given && options.policy != policy)
      return refuse(fmt::format("--{} has no meaning under {}; leave it out, or take --policy {}",
                                option, options.policy, policy));
  return {};
}

local_sgd_options local_sgd_of(const sim_options& options) {
  std::chrono::duration<double> averaging{options.averaging_time.value_or(0)};
  return {.local_steps = static_cast<uint32_t>(options.local_steps.value_or(1)),
          .averaging_time = std::chrono::duration_cast<job_time>(averaging)};
}

expected<sync_options> sync_of(const sim_options& options) {
  auto policy = policy_of(options);
  if (!policy) return tl::unexpected<error>(policy.error());
  if (auto goes = check_policy(options); !goes) return tl::unexpected<error>(goes.error());
  if (options.distinct != "on" && options.distinct != "off")
    return refuse(fmt::format("--distinct must be on or off, not '{}'", options.distinct));
  auto needed = needed_of(options);
  if (!needed) return tl::unexpected<error>(needed.error());
  sync_options sync{.replicas_to_aggregate = static_cast<uint32_t>(*needed),
                    .total_num_replicas = static_cast<uint32_t>(options.replicas),
                    .policy = *policy,
                    .one_gradient_per_replica = options.distinct == "on",
                    .slack = options.slack.value_or(0)};
  if (options.aggregate == dynamic_aggregate)
    sync.dynamic
      = dynamic_backups{.gain = gain_model::power, .power = options.gain_power.value_or(1)};
  if (options.initial_tokens) sync.initial_tokens = static_cast<int64_t>(*options.initial_tokens);
  if (auto valid = sync.validate(); !valid) return tl::unexpected<error>(valid.error());
  return sync;
}

} // namespace

std::span<const sim_option> sim_option_table() {
  return table;
}

const sim_option* find_sim_option(std::string_view key) {
  const auto* found = std::ranges::find(table, key, &sim_option::key);
  return found == std::end(table) ? nullptr : found;
}

expected<void> assign(const sim_option& option, sim_options& options, const std::string& text,
                      const std::string& name) {
  if (const auto* words = std::get_if<std::string sim_options::*>(&option.target)) {
    options.*(*words) = text;
    return {};
  }
  if (const auto* real = std::get_if<std::optional<double> sim_options::*>(&option.target)) {
    options.*(*real) = real_of(text);
    if (options.*(*real)) return {};
    return refuse(
      fmt::format("{} must be a number from 0 to {:g}, not '{}'", name, real_max, text));
  }
  auto number = number_of(text);
  auto is_word = !option.zero_word.empty() && text == option.zero_word;
  if (is_word) number = 0;
  if (!number || (*number < option.low && !is_word) || *number > option.high)
    return refuse(fmt::format("{} must be a whole number from {} to {}, not '{}'", name,
                              readable::count(option.low), readable::count(option.high), text));
  if (const auto* count = std::get_if<uint64_t sim_options::*>(&option.target))
    options.*(*count) = *number;
  else
    options.*std::get<std::optional<uint64_t> sim_options::*>(option.target) = *number;
  return {};
}

std::string value_text(const sim_option& option, const sim_options& options) {
  if (const auto* words = std::get_if<std::string sim_options::*>(&option.target))
    return options.*(*words);
  if (const auto* count = std::get_if<uint64_t sim_options::*>(&option.target))
    return fmt::format("{}", options.*(*count));
  if (const auto* real = std::get_if<std::optional<double> sim_options::*>(&option.target))
    return options.*(*real) ? fmt::format("{}", *(options.*(*real))) : std::string{};
  auto optional = options.*std::get<std::optional<uint64_t> sim_options::*>(option.target);
  if (!optional) return {};
  if (*optional == 0 && !option.zero_word.empty()) return std::string{option.zero_word};
  return fmt::format("{}", *optional);
}

expected<experiment> experiment_of(const sim_options& options) {
  auto sync = sync_of(options);
  if (!sync) return tl::unexpected<error>(sync.error());
  if (options.dead > options.replicas)
    return refuse(fmt::format("--dead is {}, but there are {} replicas; lower it", options.dead,
                              options.replicas));
  auto warm_up = options.warm_up.value_or((options.steps + 19) / 20);
  if (warm_up >= options.steps)
    return refuse(fmt::format("--warm-up leaves out {} steps of {}; lower it, or make more --steps",
                              warm_up, options.steps));
  auto compute = distribution::parse(options.compute);
  if (!compute)
    return fail(compute.error().code, fmt::format("--compute: {}", compute.error().message));
  return experiment{.sync = *sync,
                    .compute = *compute,
                    .steps = options.steps,
                    .warm_up = warm_up,
                    .dead = static_cast<uint32_t>(options.dead),
                    .local_sgd = local_sgd_of(options),
                    .seed = options.seed,
                    .runs = options.runs};
}

} // namespace troupe
