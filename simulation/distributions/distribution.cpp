// SPDX-License-Identifier: Apache-2.0
// Draws, means and texts of expressions of computing times.
#include "simulation/distributions/distribution.hpp"

#include "messages/errors/assert.hpp"
#include "simulation/distributions/distribution_node.hpp"
#include "simulation/distributions/trace_resampling.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using node = distribution_node;
using kind = distribution_node::kinds;

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

  [[nodiscard]] random_key key(const node& node, place where) const {
    return key(where.replica, where.count).derive(node.stream);
  }

  double draw_apart(const node& part, const node& names, place where) {
    random_stream stream{key(names, where)};
    return draw(part, stream, where);
  }

  double draw(const node& node, random_stream& stream, place where) {
    switch (node.kind) {
    case kind::number:
      return node.numbers[0];
    case kind::family:
      return node.family->draw(node.numbers, stream);
    case kind::sum: {
      double sum = 0;
      for (const auto& part : node.parts)
        sum += draw(part, stream, where);
      return sum;
    }
    case kind::product: {
      double product = 1;
      for (const auto& part : node.parts)
        product *= draw(part, stream, where);
      return product;
    }
    case kind::mixture:
      return draw(node.parts[choose(node.numbers, stream.uniform())], stream, where);
    case kind::persistent:
      return draw_apart(node.parts[0], node, {where.replica, all_draws});
    case kind::common:
      return draw_apart(node.parts[0], node, {all_replicas, where.count});
    case kind::correlated:
      return draw_apart(node.parts[0], node,
                        {where.replica, last_renewal(node, where, node.numbers[0])});
    case kind::on_off:
      return is_on(node, where) ? node.numbers[2] : 1.0;
    case kind::pause:
      return is_paused(node, where) ? node.numbers[1] : 0.0;
    case kind::slow_share:
      return is_slow(node, where.replica) ? node.numbers[2] : 1.0;
    case kind::slow_list:
      return std::find(node.numbers.begin() + 1, node.numbers.end(), where.replica)
                 != node.numbers.end()
               ? node.numbers[0]
               : 1.0;
    case kind::trace:
      return resampled(node).at(where.replica == all_replicas ? 0 : where.replica, where.count);
    }
    return 0;
  }

  // @pre draws_lanes(of)
  void draw_lanes(const node& node, lane_values& result, place where) {
    if (node.kind == kind::family) {
      lane_values second;
      streams_.uniforms(where.replica, where.count, result, second);
      return node.family->draw_lanes(node.numbers, result, second);
    }
    if (node.parts.empty() || node.kind == kind::persistent) {
      random_stream unused{key(where.replica, where.count)};
      return result.fill(draw(node, unused, where)); // the same at every count
    }
    result.fill(node.kind == kind::sum ? 0 : 1);
    for (const auto& part : node.parts) {
      lane_values one;
      draw_lanes(part, one, where);
      for (size_t lane = 0; lane < random_lanes; ++lane)
        result[lane] = node.kind == kind::sum ? result[lane] + one[lane] : result[lane] * one[lane];
    }
  }

  trace_resampling& resampled(const node& node) {
    return traces_.try_emplace(node.index, node.trace, seed_, node.stream).first->second;
  }

  static size_t choose(const std::vector<double>& weights, double uniform) {
    size_t i = 0;
    while (i + 1 < weights.size() && uniform >= weights[i])
      uniform -= weights[i++];
    return i;
  }

  // A chain that stays with probability `rho`, and else begins anew: going back to the last
  // beginning needs no state, and the cache only shortens the way.
  uint64_t last_renewal(const node& node, place where, double rho) {
    if (where.count == all_draws) return all_draws;
    auto& known = cached(renewals_, node, where.replica);
    if (known.looked == where.count + 1) return known.at;
    auto at = where.count;
    while (at > 0 && stays(node, {where.replica, at}, rho)) {
      if (at == known.looked) {
        at = known.at;
        break;
      }
      --at;
    }
    known = {where.count + 1, at};
    return at;
  }

  [[nodiscard]] bool stays(const node& node, place where, double rho) const {
    random_stream coin{key(node, where).derive("stay")};
    return coin.uniform() < rho;
  }

  template <class Known>
  static Known& cached(std::vector<std::vector<Known>>& all, const node& node, uint32_t replica) {
    if (all.size() <= node.index) all.resize(node.index + 1);
    auto& by_replica = all[node.index];
    size_t slot = replica == all_replicas ? 0 : size_t{replica} + 1;
    if (by_replica.size() <= slot) by_replica.resize(slot + 1);
    return by_replica[slot];
  }

  // A two-state chain with probabilities p to begin and q to end an episode is one that stays with
  // probability 1 - p - q, and else is on with probability p / (p + q).
  bool is_on(const node& node, place where) {
    double enter = node.numbers[0];
    double leave = node.numbers[1];
    auto at = last_renewal(node, where, 1 - enter - leave);
    random_stream stream{key(node, {where.replica, at})};
    return stream.uniform() < enter / (enter + leave);
  }

  [[nodiscard]] bool is_paused(const node& node, place where) const {
    auto every = static_cast<uint64_t>(node.numbers[0]);
    random_stream stream{key(node, {where.replica, all_draws})};
    return (where.count + stream.below(every)) % every == every - 1;
  }

  // The slow replicas of each block are the first few of an order that the seed draws.
  [[nodiscard]] bool is_slow(const node& node, uint32_t replica) {
    if (replica == all_replicas) return false;
    if (cached(speeds_, node, replica) == speed::unknown) {
      auto block_size = static_cast<uint32_t>(node.numbers[1]);
      draw_block(node, replica - replica % block_size, block_size);
    }
    return cached(speeds_, node, replica) == speed::slow;
  }

  void draw_block(const node& node, uint32_t first, uint32_t size) {
    std::vector<std::pair<uint64_t, uint32_t>> order;
    for (uint32_t replica = first; replica < first + size; ++replica) {
      random_stream stream{key(node, {replica, all_draws})};
      order.emplace_back(stream.next_u64(), replica);
    }
    std::ranges::sort(order);
    for (size_t i = 0; i < order.size(); ++i)
      cached(speeds_, node, order[i].second)
        = static_cast<double>(i) < node.numbers[0] ? speed::slow : speed::usual;
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
size_t lane_draws_of(const node& node) {
  constexpr size_t too_many = 2;
  switch (node.kind) {
  case kind::number:
  case kind::persistent:
  case kind::slow_share:
  case kind::slow_list:
    return 0;
  case kind::family:
    return node.family->draw_lanes ? 1 : too_many;
  case kind::sum:
  case kind::product: {
    size_t sum = 0;
    for (const auto& part : node.parts)
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

template <class Combine>
std::optional<double> combined_mean(const node& node, double start, const Combine& combine) {
  double result = start;
  for (size_t i = 0; i < node.parts.size(); ++i) {
    auto mean = mean_of_distribution(node.parts[i]);
    if (!mean) return std::nullopt;
    result = combine(result, *mean, i);
  }
  return result;
}

std::optional<uint32_t> last_named(const node& node) {
  std::optional<uint32_t> last; // none is less than any
  if (node.kind == kind::slow_list)
    last = static_cast<uint32_t>(*std::max_element(node.numbers.begin() + 1, node.numbers.end()));
  for (const auto& part : node.parts)
    last = std::max(last, last_named(part));
  return last;
}

const node* shortest_trace_in(const node& node) {
  const auto* shortest = node.kind == kind::trace ? &node : nullptr;
  for (const auto& part : node.parts) {
    const auto* found = shortest_trace_in(part);
    if (found == nullptr) continue;
    if (shortest == nullptr || found->trace->draw_count() < shortest->trace->draw_count())
      shortest = found;
  }
  return shortest;
}

std::string join(const node& node, std::string_view separator) {
  std::string text;
  for (const auto& part : node.parts) {
    if (!text.empty()) text += separator;
    auto is_inner_sum = node.kind == kind::product && part.kind == kind::sum;
    text += fmt::format(fmt::runtime(is_inner_sum ? "({})" : "{}"), print_distribution(part));
  }
  return text;
}

std::string join_numbers(std::span<const double> numbers, size_t first) {
  return fmt::format("{}", fmt::join(numbers.subspan(first), ", "));
}

std::string print_mixture(const node& node) {
  std::string text;
  for (size_t i = 0; i < node.parts.size(); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", node.numbers[i],
                        print_distribution(node.parts[i]));
  return fmt::format("mixture({})", text);
}

} // namespace

std::string print_distribution(const distribution_node& node) {
  const auto& n = node.numbers;
  switch (node.kind) {
  case kind::number:
    return fmt::format("{}", n[0]);
  case kind::family:
    return fmt::format("{}({})", node.family->name, join_numbers(n, 0));
  case kind::sum:
    return join(node, " + ");
  case kind::product:
    return join(node, " * ");
  case kind::mixture:
    return print_mixture(node);
  case kind::persistent:
    return fmt::format("persistent({})", print_distribution(node.parts[0]));
  case kind::common:
    return fmt::format("common({})", print_distribution(node.parts[0]));
  case kind::correlated:
    return fmt::format("correlated({}, {})", n[0], print_distribution(node.parts[0]));
  case kind::on_off:
    return fmt::format("on_off({})", join_numbers(n, 0));
  case kind::pause:
    return fmt::format("pause({})", join_numbers(n, 0));
  case kind::slow_share:
    return fmt::format("slow({}/{}, {})", n[0], n[1], n[2]);
  case kind::slow_list:
    return fmt::format("slow({{{}}}, {})", join_numbers(n, 1), n[0]);
  case kind::trace:
    return fmt::format("trace(\"{}\")", node.file);
  }
  return {};
}

std::optional<double> mean_of_distribution(const distribution_node& node) {
  const auto& n = node.numbers;
  switch (node.kind) {
  case kind::number:
    return n[0];
  case kind::family:
    return node.family->mean(n);
  case kind::sum:
    return combined_mean(node, 0, [](double sum, double mean, size_t) { return sum + mean; });
  case kind::product: // its parts are drawn independently
    return combined_mean(node, 1, [](double product, double mean, size_t) {
      return product == 0 || mean == 0 ? 0 : product * mean; // 0 times no mean is 0
    });
  case kind::mixture:
    return combined_mean(node, 0,
                         [&](double sum, double mean, size_t i) { return sum + n[i] * mean; });
  case kind::persistent:
  case kind::common:
  case kind::correlated:
    return mean_of_distribution(node.parts[0]);
  case kind::on_off:
    return 1 + (n[2] - 1) * n[0] / (n[0] + n[1]);
  case kind::pause:
    return n[1] / n[0];
  case kind::slow_share:
    return 1 + (n[2] - 1) * n[0] / n[1];
  case kind::slow_list:
    return std::nullopt;
  case kind::trace:
    return node.trace->mean();
  }
  return std::nullopt;
}

double tail_index_of(const distribution_node& node, uint32_t replicas) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  if (node.kind == kind::family && node.family->tail_index != nullptr)
    return replicas * node.family->tail_index(node.numbers);
  if (node.kind == kind::product && mean_of_distribution(node) == 0.0) return infinity;
  auto of_each = node.kind == kind::common ? 1 : replicas;
  auto least = infinity;
  for (const auto& part : node.parts)
    least = std::min(least, tail_index_of(part, of_each));
  return least;
}

expected<distribution> distribution::parse(std::string_view text, std::string_view about_units) {
  return parse_distribution(text, about_units).map([](distribution_node root) {
    return distribution{std::make_shared<const distribution_node>(std::move(root))};
  });
}

std::string distribution::text() const {
  return print_distribution(*root_);
}

std::optional<double> distribution::mean() const {
  return mean_of_distribution(*root_);
}

bool distribution::has_mean() const {
  auto known = mean();
  return tail_index() > 1 && (!known || std::isfinite(*known));
}

double distribution::tail_index(uint32_t replicas) const {
  TROUPE_ASSERT(replicas > 0);
  return tail_index_of(*root_, replicas);
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
