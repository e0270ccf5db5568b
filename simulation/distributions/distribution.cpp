// SPDX-License-Identifier: Apache-2.0
// The draws, means and texts of expressions of computing times.
#include "simulation/distributions/distribution.hpp"

#include "simulation/distributions/distribution_node.hpp"
#include "simulation/distributions/trace_resampling.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using node = distribution_node;
using kind = distribution_node::kind;

constexpr double seconds_max = distribution_seconds_max;
constexpr uint32_t all_replicas = ~uint32_t{0};
constexpr uint64_t all_draws = ~uint64_t{0};

/// Draws the numbers of one seed.
class sampler {
public:
  sampler(std::shared_ptr<const node> root, uint64_t seed)
    : root_(std::move(root)), seed_(seed), streams_(seed, purpose) {}

  job_time draw(uint32_t replica, uint64_t count) {
    random_stream stream{key(replica, count)};
    auto seconds = draw(*root_, stream, {replica, count});
    if (!(seconds < seconds_max)) seconds = seconds_max; // infinity, and 0 * infinity
    return time_of(seconds);
  }

  /// The draws from `count` on. @pre draws_lanes(root)
  computing_time::block draw_block(uint32_t replica, uint64_t count) {
    lane_values seconds;
    draw_lanes(*root_, seconds, {replica, count});
    computing_time::block times;
    for (size_t lane = 0; lane < random_lanes; ++lane)
      times[lane] = seconds[lane] < seconds_max ? time_of(seconds[lane])
                                                : draw(replica, count + lane); // NaN, too
    return times;
  }

private:
  static constexpr std::string_view purpose = "computing time";

  // Rounds to the next whole number, and halves up, as llround does, without a call.
  static job_time time_of(double seconds) {
    auto nanoseconds = 1e9 * std::max(0.0, seconds);
    auto whole = static_cast<int64_t>(nanoseconds);
    return job_time{whole + (nanoseconds - static_cast<double>(whole) >= 0.5 ? 1 : 0)};
  }

  /// A replica, and the number of its draw.
  struct place {
    uint32_t replica;
    uint64_t count;
  };

  /// Where a replica's chain of correlated draws began anew last.
  struct renewal {
    uint64_t looked = 0; ///< 1 + the last draw that was asked for; 0: none.
    uint64_t at = 0;
  };

  enum class speed : uint8_t { unknown, usual, slow };

  [[nodiscard]] random_key key(uint32_t replica, uint64_t count) const {
    return {seed_, purpose, replica, count};
  }

  [[nodiscard]] random_key key(const node& of, place where) const {
    return key(where.replica, where.count).derive(of.stream);
  }

  double draw_apart(const node& part, const node& names, place where) {
    random_stream stream{key(names, where)};
    return draw(part, stream, where);
  }

  double draw(const node& of, random_stream& stream, place where) {
    switch (of.what) {
    case kind::number:
      return of.numbers[0];
    case kind::family:
      return of.family->draw(of.numbers, stream);
    case kind::sum: {
      double sum = 0;
      for (const auto& part : of.parts)
        sum += draw(part, stream, where);
      return sum;
    }
    case kind::product: {
      double product = 1;
      for (const auto& part : of.parts)
        product *= draw(part, stream, where);
      return product;
    }
    case kind::mixture:
      return draw(of.parts[choose(of.numbers, stream.uniform())], stream, where);
    case kind::persistent:
      return draw_apart(of.parts[0], of, {where.replica, all_draws});
    case kind::common:
      return draw_apart(of.parts[0], of, {all_replicas, where.count});
    case kind::correlated:
      return draw_apart(of.parts[0], of, {where.replica, last_renewal(of, where, of.numbers[0])});
    case kind::on_off:
      return is_on(of, where) ? of.numbers[2] : 1.0;
    case kind::pause:
      return is_paused(of, where) ? of.numbers[1] : 0.0;
    case kind::slow_share:
      return is_slow(of, where.replica) ? of.numbers[2] : 1.0;
    case kind::slow_list:
      return std::find(of.numbers.begin() + 1, of.numbers.end(), where.replica) != of.numbers.end()
               ? of.numbers[0]
               : 1.0;
    case kind::trace:
      return resampled(of).at(where.replica == all_replicas ? 0 : where.replica, where.count);
    }
    return 0;
  }

  // @pre draws_lanes(of)
  void draw_lanes(const node& of, lane_values& result, place where) {
    if (of.what == kind::family) {
      lane_values second;
      streams_.uniforms(where.replica, where.count, result, second);
      return of.family->draw_lanes(of.numbers, result, second);
    }
    if (of.parts.empty() || of.what == kind::persistent) {
      random_stream unused{key(where.replica, where.count)};
      return result.fill(draw(of, unused, where)); // the same at every count
    }
    result.fill(of.what == kind::sum ? 0 : 1);
    for (const auto& part : of.parts) {
      lane_values one;
      draw_lanes(part, one, where);
      for (size_t lane = 0; lane < random_lanes; ++lane)
        result[lane] = of.what == kind::sum ? result[lane] + one[lane] : result[lane] * one[lane];
    }
  }

  trace_resampling& resampled(const node& of) {
    return traces_.try_emplace(of.index, of.trace, seed_, of.stream).first->second;
  }

  static size_t choose(const std::vector<double>& weights, double uniform) {
    size_t i = 0;
    while (i + 1 < weights.size() && uniform >= weights[i])
      uniform -= weights[i++];
    return i;
  }

  // A chain that stays with probability `rho`, and else begins anew: going back to the last
  // beginning needs no state, and the cache only shortens the way.
  uint64_t last_renewal(const node& of, place where, double rho) {
    if (where.count == all_draws) return all_draws;
    auto& known = cached(renewals_, of, where.replica);
    if (known.looked == where.count + 1) return known.at;
    auto at = where.count;
    while (at > 0 && stays(of, {where.replica, at}, rho)) {
      if (at == known.looked) {
        at = known.at;
        break;
      }
      --at;
    }
    known = {where.count + 1, at};
    return at;
  }

  [[nodiscard]] bool stays(const node& of, place where, double rho) const {
    random_stream coin{key(of, where).derive("stay")};
    return coin.uniform() < rho;
  }

  template <class Known>
  static Known& cached(std::vector<std::vector<Known>>& all, const node& of, uint32_t replica) {
    if (all.size() <= of.index) all.resize(of.index + 1);
    auto& of_node = all[of.index];
    size_t slot = replica == all_replicas ? 0 : size_t{replica} + 1;
    if (of_node.size() <= slot) of_node.resize(slot + 1);
    return of_node[slot];
  }

  // A two-state chain with probabilities p to begin and q to end an episode is one that stays with
  // probability 1 - p - q, and else is on with probability p / (p + q).
  bool is_on(const node& of, place where) {
    double enter = of.numbers[0];
    double leave = of.numbers[1];
    auto at = last_renewal(of, where, 1 - enter - leave);
    random_stream stream{key(of, {where.replica, at})};
    return stream.uniform() < enter / (enter + leave);
  }

  [[nodiscard]] bool is_paused(const node& of, place where) const {
    auto every = static_cast<uint64_t>(of.numbers[0]);
    random_stream stream{key(of, {where.replica, all_draws})};
    return (where.count + stream.below(every)) % every == every - 1;
  }

  // The slow replicas of each block are the first few of an order that the seed draws.
  [[nodiscard]] bool is_slow(const node& of, uint32_t replica) {
    if (replica == all_replicas) return false;
    if (cached(speeds_, of, replica) == speed::unknown) {
      auto block_size = static_cast<uint32_t>(of.numbers[1]);
      draw_block(of, replica - replica % block_size, block_size);
    }
    return cached(speeds_, of, replica) == speed::slow;
  }

  void draw_block(const node& of, uint32_t first, uint32_t size) {
    std::vector<std::pair<uint64_t, uint32_t>> order;
    for (uint32_t replica = first; replica < first + size; ++replica) {
      random_stream stream{key(of, {replica, all_draws})};
      order.emplace_back(stream.next_u64(), replica);
    }
    std::ranges::sort(order);
    for (size_t i = 0; i < order.size(); ++i)
      cached(speeds_, of, order[i].second)
        = static_cast<double>(i) < of.numbers[0] ? speed::slow : speed::usual;
  }

  std::shared_ptr<const node> root_;
  uint64_t seed_;
  stream_lanes streams_; // of all replicas and counts
  // [node][1 + replica]; slot 0 is of all replicas.
  std::vector<std::vector<renewal>> renewals_;
  std::vector<std::vector<speed>> speeds_;
  std::map<size_t, trace_resampling> traces_; // by node
};

// How many parts draw from the stream of a replica and a count; more than one if they cannot do so
// for several counts at once, or depend on the count otherwise.
size_t lane_draws_of(const node& of) {
  constexpr size_t too_many = 2;
  switch (of.what) {
  case kind::number:
  case kind::persistent:
  case kind::slow_share:
  case kind::slow_list:
    return 0;
  case kind::family:
    return of.family->draw_lanes ? 1 : too_many;
  case kind::sum:
  case kind::product: {
    size_t sum = 0;
    for (const auto& part : of.parts)
      sum += lane_draws_of(part);
    return sum;
  }
  default:
    return too_many;
  }
}

// Whether consecutive draws of a replica can be made at once, and gain by it.
bool draws_lanes(const node& root) {
  return lane_draws_of(root) == 1;
}

std::optional<double> mean_of(const node& of);

template <class Combine>
std::optional<double> combined_mean(const node& of, double start, const Combine& combine) {
  double result = start;
  for (size_t i = 0; i < of.parts.size(); ++i) {
    auto mean = mean_of(of.parts[i]);
    if (!mean) return std::nullopt;
    result = combine(result, *mean, i);
  }
  return result;
}

std::optional<double> mean_of(const node& of) {
  const auto& n = of.numbers;
  switch (of.what) {
  case kind::number:
    return n[0];
  case kind::family:
    return of.family->mean(n);
  case kind::sum:
    return combined_mean(of, 0, [](double sum, double mean, size_t) { return sum + mean; });
  case kind::product: // its parts are drawn independently
    return combined_mean(of, 1, [](double product, double mean, size_t) { return product * mean; });
  case kind::mixture:
    return combined_mean(of, 0,
                         [&](double sum, double mean, size_t i) { return sum + n[i] * mean; });
  case kind::persistent:
  case kind::common:
  case kind::correlated:
    return mean_of(of.parts[0]);
  case kind::on_off:
    return 1 + (n[2] - 1) * n[0] / (n[0] + n[1]);
  case kind::pause:
    return n[1] / n[0];
  case kind::slow_share:
    return 1 + (n[2] - 1) * n[0] / n[1];
  case kind::slow_list:
    return std::nullopt;
  case kind::trace:
    return of.trace->mean();
  }
  return std::nullopt;
}

std::optional<uint32_t> last_named(const node& of) {
  std::optional<uint32_t> last; // which is less than any
  if (of.what == kind::slow_list)
    last = static_cast<uint32_t>(*std::max_element(of.numbers.begin() + 1, of.numbers.end()));
  for (const auto& part : of.parts)
    last = std::max(last, last_named(part));
  return last;
}

const node* shortest_trace_in(const node& of) {
  const node* shortest = of.what == kind::trace ? &of : nullptr;
  for (const auto& part : of.parts) {
    const auto* found = shortest_trace_in(part);
    if (found == nullptr) continue;
    if (shortest == nullptr || found->trace->draw_count() < shortest->trace->draw_count())
      shortest = found;
  }
  return shortest;
}

std::string join(const node& of, std::string_view separator) {
  std::string text;
  for (const auto& part : of.parts) {
    if (!text.empty()) text += separator;
    auto is_inner_sum = of.what == kind::product && part.what == kind::sum;
    text += fmt::format(fmt::runtime(is_inner_sum ? "({})" : "{}"), print_distribution(part));
  }
  return text;
}

std::string join_numbers(const std::vector<double>& numbers, size_t first) {
  std::string text;
  for (size_t i = first; i < numbers.size(); ++i)
    text += fmt::format("{}{}", i == first ? "" : ", ", numbers[i]);
  return text;
}

std::string print_mixture(const node& of) {
  std::string text;
  for (size_t i = 0; i < of.parts.size(); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", of.numbers[i],
                        print_distribution(of.parts[i]));
  return fmt::format("mixture({})", text);
}

} // namespace

std::string print_distribution(const distribution_node& of) {
  const auto& n = of.numbers;
  switch (of.what) {
  case kind::number:
    return fmt::format("{}", n[0]);
  case kind::family:
    return fmt::format("{}({})", of.family->name, join_numbers(n, 0));
  case kind::sum:
    return join(of, " + ");
  case kind::product:
    return join(of, " * ");
  case kind::mixture:
    return print_mixture(of);
  case kind::persistent:
    return fmt::format("persistent({})", print_distribution(of.parts[0]));
  case kind::common:
    return fmt::format("common({})", print_distribution(of.parts[0]));
  case kind::correlated:
    return fmt::format("correlated({}, {})", n[0], print_distribution(of.parts[0]));
  case kind::on_off:
    return fmt::format("on_off({})", join_numbers(n, 0));
  case kind::pause:
    return fmt::format("pause({})", join_numbers(n, 0));
  case kind::slow_share:
    return fmt::format("slow({}/{}, {})", n[0], n[1], n[2]);
  case kind::slow_list:
    return fmt::format("slow({{{}}}, {})", join_numbers(n, 1), n[0]);
  case kind::trace:
    return fmt::format("trace(\"{}\")", of.file);
  }
  return {};
}

std::optional<double> mean_of_distribution(const distribution_node& of) {
  return mean_of(of);
}

expected<distribution> distribution::parse(std::string_view text) {
  return parse_distribution(text).map([](distribution_node root) {
    return distribution{std::make_shared<const distribution_node>(std::move(root))};
  });
}

std::string distribution::text() const {
  return print_distribution(*root_);
}

std::optional<double> distribution::mean() const {
  return mean_of(*root_);
}

std::optional<uint32_t> distribution::last_named_replica() const {
  return last_named(*root_);
}

std::optional<named_trace> distribution::shortest_trace() const {
  const auto* found = shortest_trace_in(*root_);
  if (found == nullptr) return std::nullopt;
  return named_trace{found->file, found->trace};
}

computing_time distribution::times(uint64_t seed) const {
  auto draws = std::make_shared<sampler>(root_, seed);
  auto one
    = [draws](uint32_t replica, uint64_t iteration) { return draws->draw(replica, iteration); };
  if (!draws_lanes(*root_)) return one;
  return {one,
          [draws](uint32_t replica, uint64_t first) { return draws->draw_block(replica, first); }};
}

} // namespace troupe
