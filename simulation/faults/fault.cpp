// SPDX-License-Identifier: Apache-2.0
// Names of faults, and the checks and figures of plans.
#include "simulation/faults/fault.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/text.hpp"
#include "simulation/network/end_of_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 9> names{
  "crash",    "crash_with_token", "freeze", "partition", "slow",
  "messages", "corrupt",          "skew",   "swizzle"};

constexpr double rate_min = 0.001;
constexpr double rate_max = 1000;
constexpr int unlikely = 20; // times the mean: exceeded by one exponential draw of 5e8

std::optional<uint32_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return number_of<uint32_t>(text.substr(prefix.size()));
}

bool exists(std::string_view node, uint32_t replicas, uint32_t owners) {
  if (node == "chief") return true;
  if (auto replica = number_after(node, "replica ")) return *replica < replicas;
  if (auto owner = number_after(node, "ps ")) return *owner < owners;
  return false;
}

bool is_replica(const std::string& node) {
  return node.starts_with("replica ");
}

bool is_crash(const fault& fault) {
  return fault.kind == fault_kind::crash || fault.kind == fault_kind::crash_with_token;
}

// Keeps nodes from talking to each other.
bool silences(const fault& fault) {
  return fault.kind == fault_kind::freeze || fault.kind == fault_kind::partition
         || fault.kind == fault_kind::swizzle;
}

// A time that hardly any draw of this mean exceeds; at most about what a clock counts.
job_time unlikely_time(job_time mean) {
  return std::min(mean, time_max / unlikely) * unlikely;
}

bool may_be_lost(const std::string& message) {
  return std::ranges::count(repeatable_messages(), message) > 0;
}

bool is_probability(double value) {
  return value >= 0 && value <= 1;
}

std::string problem_of(const fault& fault, uint32_t replicas, uint32_t owners) {
  for (const auto* side : {&fault.who, &fault.other})
    for (const auto& node : *side)
      if (!exists(node, replicas, owners))
        return fmt::format("there is no node '{}'; there are 'replica 0' to 'replica {}', 'ps 0' "
                           "to 'ps {}' and 'chief'",
                           node, replicas - 1, owners - 1);
  auto replicas_only
    = fault.kind == fault_kind::crash_with_token || fault.kind == fault_kind::corrupt;
  if (replicas_only && !std::ranges::all_of(fault.who, is_replica))
    return "it is about replicas only";
  if (fault.at < job_time{0} || fault.lasts < job_time{0} || fault.ahead < job_time{0})
    return "its times must not be below 0";
  if (!(fault.factor > 0)) return "its factor must be above 0";
  if (std::isinf(fault.factor)) return "its factor must be finite";
  if (!(fault.rate >= rate_min && fault.rate <= rate_max))
    return "its rate goes from 0.001 to 1000";
  if (!fault.message.empty() && !may_be_lost(fault.message))
    return fmt::format("no messages of the kind '{}' can be lost, doubled or late; there are {}",
                       fault.message, fmt::join(repeatable_messages(), ", "));
  if (fault.kind == fault_kind::swizzle && fault.lasts == job_time{0})
    return "a swizzle needs the time that it lasts";
  if (fault.kind == fault_kind::skew && fault.ahead == job_time{0} && fault.rate == 1)
    return "a clock that is wrong is ahead, or runs at another rate; say how much";
  if (fault.kind == fault_kind::messages
      && fault.probabilities.lost + fault.probabilities.duplicated + fault.probabilities.reordered
           == 0)
    return "say how often messages are lost, doubled or late";
  for (const auto& node : fault.other)
    if (std::ranges::count(fault.who, node) > 0 || (fault.who.empty() && is_replica(node)))
      return fmt::format("'{}' is on both sides of it", node);
  if (!is_probability(fault.probabilities.lost) || !is_probability(fault.probabilities.duplicated)
      || !is_probability(fault.probabilities.reordered))
    return "probabilities go from 0 to 1";
  return {};
}

} // namespace

std::string_view to_string(fault_kind kind) {
  return names[static_cast<size_t>(kind)];
}

expected<fault_kind> parse_fault_kind(std::string_view name) {
  auto found = std::ranges::find(names, name);
  if (found == names.end())
    return fail(errc::invalid_argument,
                fmt::format("no fault '{}'; there are {}", name, fmt::join(names, ", ")));
  return static_cast<fault_kind>(found - names.begin());
}

// Crashes without a return end by themselves, unless `down_max` has others drawn in their place.
double fault_rates::count_in_step(uint32_t replicas, double gradient_seconds,
                                  double step_seconds_max) const {
  constexpr job_time never{0};
  const double count = replicas;
  const bool are_bounded = down_max > 0;
  const bool go_on = are_bounded || return_mean > never;
  double faults = 0;  // a second
  double crashes = 0; // a second, of a replica that is there
  if (crash_mean > never && go_on) {
    faults += count / seconds(are_bounded ? crash_mean : crash_mean + return_mean);
    crashes += 1 / seconds(crash_mean);
  }
  if (wave_mean > never && go_on) {
    faults += wave_size / seconds(wave_mean);
    crashes += wave_size / (count * seconds(wave_mean));
  }
  if (freeze_mean > never) faults += count / seconds(freeze_mean + thaw_mean);
  if (swizzle_mean > never) faults += count / seconds(swizzle_mean);
  auto step_seconds = gradient_seconds;
  // Exponential times between crashes, one of which has to be long enough for the gradient.
  if (crashes > 0 && !are_bounded)
    step_seconds = std::expm1(gradient_seconds * crashes) * (1 / crashes + seconds(return_mean));
  if (swizzle_mean > never) step_seconds += seconds(swizzle_lasts);
  return faults * std::min(step_seconds, step_seconds_max);
}

expected<void> fault_plan::validate(uint32_t replicas, uint32_t owners) const {
  for (size_t i = 0; i < faults.size(); ++i)
    if (auto problem = problem_of(faults[i], replicas, owners); !problem.empty())
      return fail(errc::invalid_argument,
                  fmt::format("fault {} ({}): {}", i + 1, to_string(faults[i].kind), problem));
  for (auto mean : {rates.crash_mean, rates.return_mean, rates.freeze_mean, rates.thaw_mean,
                    rates.wave_mean, rates.swizzle_mean, rates.swizzle_lasts, rates.warm_up})
    if (mean < job_time{0}) return fail(errc::invalid_argument, "no mean time may be below 0");
  if (!is_probability(rates.permanent))
    return fail(
      errc::invalid_argument,
      fmt::format("the share of permanent crashes is {}; give one from 0 to 1", rates.permanent));
  if (rates.wave_mean > job_time{0} && rates.wave_size == 0)
    return fail(errc::invalid_argument, "a wave of 0 is none; give the number of replicas");
  if (rates.swizzle_mean > job_time{0} && rates.swizzle_lasts == job_time{0})
    return fail(errc::invalid_argument,
                "a swizzle of 0 s is none; say how long it lasts, as in swizzle=100/10");
  if (rates.wave_size > replicas)
    return fail(errc::invalid_argument,
                fmt::format("a wave of {} is of more than the {} replicas; lower it",
                            rates.wave_size, replicas));
  return {};
}

bool fault_plan::loses_messages() const {
  return std::ranges::any_of(faults, [](const fault& fault) {
    return fault.kind == fault_kind::messages
           && fault.probabilities.lost + fault.probabilities.duplicated > 0;
  });
}

job_time fault_plan::longest_absence(job_time silence_timeout) const {
  job_time silent = unlikely_time(rates.thaw_mean);
  if (rates.swizzle_mean > job_time{0}) silent = std::max(silent, rates.swizzle_lasts);
  job_time longest{0};
  for (const auto& fault : faults) {
    if (is_crash(fault)) longest = std::max(longest, fault.lasts);
    if (silences(fault)) silent = std::max(silent, fault.lasts);
  }
  if (silence_timeout == job_time{0}) silent = job_time{0};
  return std::max(longest, later(silent, unlikely_time(rates.return_mean)));
}

bool fault_plan::corrupts() const {
  return std::ranges::count(faults, fault_kind::corrupt, &fault::kind) > 0;
}

bool fault_plan::restarts_job() const {
  return std::ranges::any_of(faults, [](const fault& fault) {
    return (fault.kind == fault_kind::crash || silences(fault))
           && !std::ranges::all_of(fault.who, is_replica);
  });
}

} // namespace troupe
