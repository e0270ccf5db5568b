// SPDX-License-Identifier: Apache-2.0
// Reads sizes, times and faults, and refuses those that make no sense together.
#include "tools/sim/network.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/mapped.hpp"
#include "messages/text.hpp"
#include "tools/options/job_checks.hpp"
#include "tools/options/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using unit = std::pair<std::string_view, double>;

constexpr std::array<unit, 8> byte_units{{{"", 1},
                                          {"B", 1},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"MiB", 0x1p20},
                                          {"GiB", 0x1p30}}};
constexpr std::array<unit, 3> time_units{{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr double bytes_max = 1e15;
constexpr double events_in_step_max = 1e6;     // some seconds to simulate
constexpr uint64_t other_draws = 0x6c696e6b73; // latencies must differ from computing times
constexpr option_range non_negatives{0, std::numeric_limits<double>::infinity()};

// The number before one of the units, times the unit's factor. Blanks may stand between both.
template <size_t Count>
std::optional<double> quantity_of(std::string_view text, const std::array<unit, Count>& units) {
  double number = 0;
  text = trimmed(text);
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || !(number >= 0)) return std::nullopt;
  text = trimmed(text.substr(static_cast<size_t>(end - text.data())));
  for (auto [name, factor] : units)
    if (text == name) return number * factor;
  return std::nullopt;
}

job_time time_of(double seconds) {
  return job_time{static_cast<int64_t>(std::min(seconds, real_max) * 1e9)};
}

expected<double> bytes_of(std::string_view option, std::string_view text) {
  if (text.empty()) return 0.0;
  auto bytes = quantity_of(text, byte_units);
  if (bytes && *bytes <= bytes_max) return *bytes;
  return misuse(
    fmt::format("--{} must be a number of bytes such as 100MB, not '{}'", option, text));
}

/// The speed of network cards, and the bytes that they move for a replica in a step.
struct traffic {
  double bytes_per_second = 0; ///< 0: without limit.
  double model_bytes = 0;
  double gradient_bytes = 0;
};

expected<traffic> traffic_of(const sim_options& options, uint64_t variable_bytes) {
  auto speed = bytes_of("bandwidth", options.bandwidth);
  auto model = bytes_of("model-bytes", options.model_bytes);
  if (options.model_bytes.empty()) model = static_cast<double>(variable_bytes);
  auto gradient
    = options.gradient_bytes.empty() ? model : bytes_of("gradient-bytes", options.gradient_bytes);
  for (const auto* size : {&speed, &model, &gradient})
    if (!*size) return tl::unexpected<error>(size->error());
  auto bytes = *model + *gradient;
  if (!options.bandwidth.empty() && *speed == 0)
    return misuse("--bandwidth is 0: nothing would ever arrive; leave it out for no limit");
  if (*speed == 0 && bytes > 0)
    return misuse(
      "--model-bytes and --gradient-bytes take no time without --bandwidth; say how many "
      "bytes a card moves in a second, as in --bandwidth 1GB");
  if (*speed > 0 && bytes == 0)
    return misuse(
      "--bandwidth changes nothing where nothing is moved; say what a replica reads, as "
      "in --model-bytes 100MB, or leave it out");
  auto seconds_of_all = *speed > 0 ? bytes * static_cast<double>(options.replicas) / *speed : 0;
  if (seconds_of_all > real_max)
    return misuse(
      fmt::format("--bandwidth {} takes {:.2g} s to move the bytes of all replicas, and "
                  "{:g} s are the most; raise it, or lower --model-bytes",
                  options.bandwidth, seconds_of_all, real_max));
  return traffic{*speed, *model, *gradient};
}

// The times of an option: "70us", or an expression; nothing if it is not given.
// @param kind, count The nodes that an expression may name.
expected<std::optional<distribution>> times_of(std::string_view option, const std::string& text,
                                               std::string_view kind, uint64_t count) {
  if (text.empty()) return std::nullopt;
  auto seconds = quantity_of(text, time_units);
  auto times = distribution::parse(
    seconds ? fmt::format("{}", *seconds) : text,
    "; only a number that stands alone may have one: us, ms or s, as in 70us");
  if (!times) return misuse(fmt::format("--{}: {}", option, times.error().message));
  auto valid = check_named_nodes(fmt::format("--{}", option), *times, count, kind);
  if (!valid) return tl::unexpected<error>(valid.error());
  return *times;
}

// Reads "{3, 4}*10": two nodes and a factor.
std::optional<slow_link> parse_slow_link(std::string_view text) {
  slow_link link;
  auto read = [&text](auto& number) {
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return problem == std::errc{};
  };
  auto skip = [&text](char expected) {
    auto is_there = text.starts_with(expected);
    if (is_there) text.remove_prefix(1);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return is_there;
  };
  auto is_read = skip('{') && read(link.one) && skip(',') && read(link.other) && skip('}')
                 && skip('*') && read(link.factor) && text.empty();
  auto is_slow_link
    = is_read && link.one != link.other && link.factor >= 1 && link.factor <= real_max;
  return is_slow_link ? std::optional{link} : std::nullopt;
}

expected<std::optional<slow_link>> slow_link_of(const sim_options& options) {
  if (options.slow_link.empty() || options.policy != all_reduce_name) return std::nullopt;
  if (options.network.empty() && options.bandwidth.empty())
    return misuse("--slow-link changes nothing where messages take no time; say how long they "
                  "take, as in --bandwidth 1GB or --network 1ms");
  auto link = parse_slow_link(options.slow_link);
  if (link) return link;
  return misuse(fmt::format("--slow-link must be two nodes and by how much their link is slower, "
                            "such as '{{3, 4}}*10', not '{}'",
                            options.slow_link));
}

bool has_network(const sim_options& options) {
  return !options.network.empty() || !options.bandwidth.empty() || !options.service.empty()
         || options.owners.value_or(1) > 1 || options.silence_timeout;
}

// ---- faults ----

// The readers below store a value if the text has one, and return whether it has.

// "1000/20": a time in seconds above 0, and a number that may be left out.
bool read_pair(std::string_view text, char separator, job_time& first, double& second) {
  auto cut = text.find(separator);
  auto left = real_of(text.substr(0, cut), non_negatives);
  auto right = cut == std::string_view::npos ? std::optional{second}
                                             : real_of(text.substr(cut + 1), non_negatives);
  if (!left || !right) return false;
  first = time_of(*left);
  second = *right;
  return first > job_time{0};
}

bool read_times(std::string_view text, job_time& first, job_time& second) {
  auto second_seconds = seconds(second);
  if (!read_pair(text, '/', first, second_seconds)) return false;
  second = time_of(second_seconds);
  return true;
}

template <class Value, class Target>
bool store(const std::optional<Value>& value, Target& target) {
  if (value) target = *value;
  return value.has_value();
}

bool read_probability(std::string_view text, double& probability) {
  return store(real_of(text, {0, 1}), probability);
}

bool read_time(std::string_view text, job_time& time) {
  auto seconds = real_of(text, non_negatives);
  if (seconds) time = time_of(*seconds);
  return seconds.has_value();
}

bool read_count(std::string_view text, uint32_t& count) {
  return store(number_of<uint32_t>(text), count);
}

bool read_rate(std::string_view name, std::string_view value, fault_rates& rates,
               fault_probabilities& probabilities) {
  if (name == "crash") return read_times(value, rates.crash_mean, rates.return_mean);
  if (name == "freeze") return read_times(value, rates.freeze_mean, rates.thaw_mean);
  if (name == "swizzle") return read_times(value, rates.swizzle_mean, rates.swizzle_lasts);
  if (name == "permanent") return read_probability(value, rates.permanent);
  if (name == "warm-up") return read_time(value, rates.warm_up);
  if (name == "down") return read_count(value, rates.down_max);
  if (name == "lost") return read_probability(value, probabilities.lost);
  if (name == "doubled") return read_probability(value, probabilities.duplicated);
  if (name == "late") return read_probability(value, probabilities.reordered);
  double size = 1;
  if (name != "wave" || !read_pair(value, '*', rates.wave_mean, size)) return false;
  rates.wave_size = static_cast<uint32_t>(std::min(size, 1e9));
  return size == rates.wave_size;
}

// Why a part of the list would change nothing; empty if there is no such part.
std::string without_effect(const fault_rates& rates) {
  auto crashes = rates.crash_mean + rates.wave_mean > job_time{0};
  if (rates.freeze_mean > job_time{0} && rates.thaw_mean == job_time{0})
    return "a freeze of 0 s is none; say how long it lasts, as in freeze=500/10";
  if (rates.permanent > 0 && crashes && rates.return_mean == job_time{0})
    return "permanent is a share of crashes, of which nobody returns; say after how long one does, "
           "as in crash=1000/20";
  std::pair<bool, std::string_view> crash_options[] = {{rates.permanent > 0, "permanent"},
                                                       {rates.down_max > 0, "down"},
                                                       {rates.warm_up > job_time{0}, "warm-up"}};
  for (auto [is_given, name] : crash_options)
    if (is_given && !crashes)
      return fmt::format("{} is about crashes, and there are none; add them, as in crash=1000/20",
                         name);
  return {};
}

// How long a replica computes for a gradient: the median of some draws, since not every
// distribution has a mean.
double gradient_seconds(const sim_options& options, const distribution& compute) {
  auto times = compute.times(options.seed);
  std::array<job_time, 101> drawn;
  for (uint64_t i = 0; i < drawn.size(); ++i)
    drawn[i] = times(static_cast<uint32_t>(i % options.replicas), i / options.replicas);
  auto* median = drawn.begin() + drawn.size() / 2;
  std::ranges::nth_element(drawn, median);
  return seconds(*median) * static_cast<double>(options.local_steps.value_or(1));
}

// "replica 3-9" are seven nodes.
bool read_nodes(std::string_view text, std::vector<std::string>& nodes) {
  auto blank = text.rfind(' ');
  auto dash = text.rfind('-');
  if (blank == std::string_view::npos || dash == std::string_view::npos || dash < blank) {
    nodes.emplace_back(text);
    return true;
  }
  uint32_t first = 0;
  uint32_t last = 0;
  constexpr uint32_t nodes_max = 1'000'000;
  if (!read_count(text.substr(blank + 1, dash - blank - 1), first)
      || !read_count(text.substr(dash + 1), last) || last < first || last > nodes_max)
    return false;
  for (auto number = first; number <= last; ++number)
    nodes.push_back(fmt::format("{} {}", text.substr(0, blank), number));
  return true;
}

bool read_nodes(const toml::node& value, std::vector<std::string>& nodes) {
  if (const auto* text = value.as_string()) return read_nodes(text->get(), nodes);
  const auto* list = value.as_array();
  if (list == nullptr || list->empty()) return false;
  return std::ranges::all_of(*list, [&](const toml::node& element) {
    return element.is_string() && read_nodes(element.as_string()->get(), nodes);
  });
}

bool read_corruption(const toml::node& value, corruption& how) {
  auto name = value.value_or(std::string{});
  how = name == "shape" ? corruption::wrong_shape : corruption::not_a_number;
  return name == "shape" || name == "nan";
}

bool read_seconds(const toml::node& value, job_time& time) {
  auto seconds = value.value<double>();
  if (seconds) time = time_of(*seconds);
  return seconds && *seconds >= 0;
}

/// A key of a fault in a scenario file.
struct fault_key {
  std::string_view name;
  std::optional<fault_kind> kind; ///< The only kind for which it has a meaning; nothing: all have.
  std::string_view values;        ///< For error messages.
};

constexpr std::array<fault_key, 14> fault_keys{{
  {"at", {}, "seconds, such as 30"},
  {"kind", {}, "a name, such as \"crash\""},
  {"who", {}, "nodes, such as \"ps 0\" or [\"replica 1\", \"replica 3-5\"]"},
  {"for", {}, "seconds above 0, such as 60; without it, it is for good"},
  {"other", fault_kind::partition, "nodes, such as \"ps 0\""},
  {"one-way", fault_kind::partition, "true or false"},
  {"factor", fault_kind::slow, "a number, such as 10"},
  {"ahead", fault_kind::skew, "seconds, such as 30"},
  {"rate", fault_kind::skew, "a number, such as 1.5"},
  {"message", fault_kind::messages, "a kind of message, such as \"Token\""},
  {"lost", fault_kind::messages, "a probability, such as 0.01"},
  {"doubled", fault_kind::messages, "a probability, such as 0.01"},
  {"late", fault_kind::messages, "a probability, such as 0.01"},
  {"how", fault_kind::corrupt, "\"nan\" or \"shape\""},
}};

std::string_view nearest_key(std::string_view name) {
  auto names = mapped(fault_keys, &fault_key::name);
  return nearest_name(name, names);
}

bool read_key(std::string_view key, const toml::node& value, fault& fault) {
  if (key == "at") return read_seconds(value, fault.at);
  if (key == "for") return read_seconds(value, fault.lasts) && fault.lasts > job_time{0};
  if (key == "kind") return true; // read first
  if (key == "who") return read_nodes(value, fault.who);
  if (key == "other") return read_nodes(value, fault.other);
  if (key == "one-way") return store(value.value<bool>(), fault.one_way);
  if (key == "factor") return store(value.value<double>(), fault.factor);
  if (key == "ahead") return read_seconds(value, fault.ahead);
  if (key == "rate") return store(value.value<double>(), fault.rate);
  if (key == "message") return store(value.value<std::string>(), fault.message);
  if (key == "lost") return store(value.value<double>(), fault.probabilities.lost);
  if (key == "doubled") return store(value.value<double>(), fault.probabilities.duplicated);
  if (key == "late") return store(value.value<double>(), fault.probabilities.reordered);
  return read_corruption(value, fault.how);
}

} // namespace

expected<std::function<network_options(uint64_t)>> network_of(const sim_options& options,
                                                              uint64_t variable_bytes) {
  auto traffic = traffic_of(options, variable_bytes);
  if (!traffic) return tl::unexpected<error>(traffic.error());
  auto slowed = slow_link_of(options);
  if (!slowed) return tl::unexpected<error>(slowed.error());
  auto owners = static_cast<uint32_t>(options.owners.value_or(1));
  auto latency = times_of("network", options.network, "replica", options.replicas);
  if (!latency) return tl::unexpected<error>(latency.error());
  auto service = times_of("service", options.service, "owner", owners);
  if (!service) return tl::unexpected<error>(service.error());
  if (!has_network(options)) return std::function<network_options(uint64_t)>{};
  network_options network{.owners = owners};
  network.slowed = *slowed;
  network.bytes_per_second = traffic->bytes_per_second;
  if (options.silence_timeout) network.silence_timeout = time_of(*options.silence_timeout);
  // A replica without parameter servers reads no model: its size is but that of a gradient.
  if (options.policy != all_reduce_name)
    network.model_bytes = static_cast<uint64_t>(traffic->model_bytes);
  network.gradient_bytes = static_cast<uint64_t>(traffic->gradient_bytes);
  return [network, latency = *latency, service = *service](uint64_t seed) {
    auto seeded = network;
    if (latency)
      seeded.latency = [times = latency->times(seed ^ other_draws)](const passage& passage) {
        return times(passage.end, passage.count);
      };
    if (service) seeded.service = service->times(~seed ^ other_draws);
    return seeded;
  };
}

expected<fault_plan> parse_fault_rates(std::string_view text) {
  fault_plan plan;
  fault messages{.kind = fault_kind::messages};
  constexpr std::array<std::string_view, 10> names{"crash",     "freeze", "swizzle", "wave",
                                                   "down",      "lost",   "doubled", "late",
                                                   "permanent", "warm-up"};
  std::set<std::string_view> given;
  while (!text.empty()) {
    auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    auto entry = trimmed(part);
    auto equals = std::min(entry.find('='), entry.size());
    auto name = entry.substr(0, equals);
    if (std::ranges::count(names, name) == 0)
      return misuse(fmt::format("no fault '{}' is drawn by chance; the nearest that is one is '{}'",
                                name, nearest_name(name, names)));
    if (!given.insert(name).second) return misuse(fmt::format("'{}' is given twice", name));
    auto value = entry.substr(std::min(equals + 1, entry.size()));
    if (!read_rate(name, value, plan.rates, messages.probabilities))
      return misuse(
        fmt::format("'{}' is not as in crash=1000/20, wave=600*4, lost=0.01 or down=3", entry));
    if (name == "down" && plan.rates.down_max == 0)
      return misuse(fmt::format("'{}': no replica could crash; give 1 or more, or leave it out if "
                                "any number may be down",
                                entry));
    // Without a time to return none does, and 0 stands for that.
    auto returns_at_once = name == "crash" && value.find('/') != std::string_view::npos
                           && plan.rates.return_mean == job_time{0};
    if (returns_at_once)
      return misuse(fmt::format("'{}': no replica can return after 0 s; give a longer time, or "
                                "leave it out if none returns, as in crash=1000",
                                entry));
  }
  if (auto reason = without_effect(plan.rates); !reason.empty()) return misuse(reason);
  if (messages.probabilities.lost + messages.probabilities.duplicated
        + messages.probabilities.reordered
      > 0)
    plan.faults.push_back(std::move(messages));
  return plan;
}

expected<faults_and_repeats> faults_of(const sim_options& options) {
  auto plan = parse_fault_rates(options.faults);
  auto replicas = static_cast<uint32_t>(options.replicas);
  auto owners = static_cast<uint32_t>(options.owners.value_or(1));
  if (auto valid = plan ? plan->validate(replicas, owners) : expected<void>{}; !valid)
    plan = tl::unexpected<error>(valid.error());
  if (!plan) return misuse("--faults: " + plan.error().message);
  plan->faults.insert(plan->faults.end(), options.fault_list.begin(), options.fault_list.end());
  if (auto valid = plan->validate(replicas, owners); !valid)
    return tl::unexpected<error>(valid.error());
  auto takes_no_time = options.network.empty() && options.bandwidth.empty();
  if (takes_no_time && std::ranges::count(plan->faults, fault_kind::slow, &fault::kind) > 0)
    return misuse("a fault of the kind 'slow' changes nothing where messages take no time; say how "
                  "long they take, as in --network 1ms");
  auto ask_again = options.ask_again.value_or(plan->loses_messages() ? 1 : 0);
  return faults_and_repeats{std::move(*plan), time_of(ask_again)};
}

expected<void> check_event_counts(const sim_options& options, const distribution& compute,
                                  const fault_rates& rates) {
  auto gradient = gradient_seconds(options, compute);
  auto replicas = static_cast<uint32_t>(options.replicas);
  auto faults = rates.count_in_step(replicas, gradient, seconds(fault_deadline));
  if (faults > events_in_step_max)
    return misuse(fmt::format("--faults: some {:.1g} faults come in each step, and {:g} are the "
                              "most; give longer times between them",
                              faults, events_in_step_max));
  auto ask_again = options.ask_again.value_or(0);
  auto repeats = ask_again > 0 ? replicas * gradient / ask_again : 0;
  if (repeats > events_in_step_max)
    return misuse(fmt::format("--ask-again: replicas may ask some {:.1g} times in each step, and "
                              "{:g} are the most; give a longer time",
                              repeats, events_in_step_max));
  return {};
}

expected<fault> read_fault(const toml::table& table, std::string_view path) {
  fault result;
  auto refuse_at = [path](const toml::node& node, std::string_view message) {
    return misuse(fmt::format("{}:{}: {}", path, node.source().begin.line, message));
  };
  const auto* kind = table.get("kind");
  if (kind == nullptr) return refuse_at(table, "a fault has no 'kind', such as \"crash\"");
  auto parsed_kind = parse_fault_kind(kind->value_or(std::string{}));
  if (!parsed_kind) return refuse_at(*kind, parsed_kind.error().message);
  result.kind = *parsed_kind;
  for (const auto& [name, value] : table) {
    const auto* key = std::ranges::find(fault_keys, name.str(), &fault_key::name);
    if (key == fault_keys.end())
      return refuse_at(value, fmt::format("unknown key '{}' of a fault; the nearest known one is "
                                          "'{}'",
                                          name.str(), nearest_key(name.str())));
    if (key->kind && *key->kind != result.kind)
      return refuse_at(value,
                       fmt::format("'{}' has no meaning for a fault of the kind '{}', but for '{}'",
                                   key->name, to_string(result.kind), to_string(*key->kind)));
    if (!read_key(name.str(), value, result))
      return refuse_at(value, fmt::format("'{}' of a fault takes {}", key->name, key->values));
  }
  if (result.kind == fault_kind::corrupt && table.contains("for"))
    return refuse_at(*table.get("for"), "'for' has no meaning for a fault of the kind 'corrupt': "
                                        "it is about one gradient");
  return result;
}

} // namespace troupe
