// SPDX-License-Identifier: Apache-2.0
// Writing and checking the arrays of estimates.
#include "actors/policies/backup_arrays.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <string_view>

namespace troupe {

namespace {

constexpr auto no_time = std::numeric_limits<double>::quiet_NaN();

template <class Element>
named_payload to_array(const char* name, dtype type, std::vector<int64_t> dims,
                       const std::vector<Element>& elements) {
  tensor values{type, shape{std::move(dims)}};
  std::ranges::copy(elements, values.mutable_values<Element>().begin());
  return {name, std::move(values)};
}

tl::unexpected<error> refused(std::string_view name, std::string_view why) {
  return fail(errc::malformed,
              fmt::format("the checkpoint's estimates for dynamic backups: array '{}' {}; go on "
                          "from another checkpoint, or with a fixed number of backups",
                          name, why));
}

// An array of rows. @param dims The extents of a row; -1: any.
expected<tensor> find(std::span<const named_payload> arrays, std::string_view name, dtype type,
                      std::vector<int64_t> dims) {
  auto found = std::ranges::find(arrays, name, &named_payload::name);
  if (found == arrays.end()) return refused(name, "is missing");
  const auto& value = found->value;
  auto has = std::span{value.extents().dims()};
  auto fits = [](int64_t extent, int64_t wanted) { return wanted < 0 || extent == wanted; };
  if (value.type() != type || has.size() != dims.size() + 1
      || !std::ranges::equal(has.subspan(1), dims, fits))
    return refused(name, "has another type or shape");
  return value.contiguous();
}

bool is_possible(double time) {
  return std::isnan(time) || std::abs(time) <= seconds(job_time::max());
}

std::optional<double> time_of(double number) {
  return std::isnan(number) ? std::nullopt : std::optional{number};
}

expected<std::deque<arrival_row>> read_rows(std::span<const named_payload> arrays) {
  auto steps = find(arrays, "steps", dtype::i64, {2});
  if (!steps) return tl::unexpected<error>(steps.error());
  auto arrivals = find(arrays, "arrivals", dtype::f64, {-1, 3});
  if (!arrivals) return tl::unexpected<error>(arrivals.error());
  if (arrivals->extents()[0] != steps->extents()[0])
    return refused("arrivals", "has another number of steps than 'steps'");
  auto stamps = steps->values<int64_t>();
  auto times = arrivals->values<double>();
  constexpr auto time_max = job_time::max().count() / 2;
  if (!std::ranges::all_of(stamps, [](int64_t it) { return it >= 0 && it <= time_max; }))
    return refused("steps", "holds a number below 0, or a time that is too long");
  if (!std::ranges::all_of(times, is_possible))
    return refused("arrivals", "holds a time that is too long");
  std::deque<arrival_row> rows;
  auto replicas = stamps.empty() ? 0 : times.size() / 3 / (stamps.size() / 2);
  for (size_t i = 0; i < stamps.size(); i += 2) {
    auto& row = rows.emplace_back();
    row.local_step = static_cast<uint64_t>(stamps[i]);
    row.began = job_time{stamps[i + 1]};
    for (size_t replica = 0; replica < replicas; ++replica, times = times.subspan(3)) {
      auto seen = time_of(times[0]);
      auto estimate = time_of(times[1]);
      row.arrivals.push_back({seen ? seen : estimate, !seen && estimate, time_of(times[2])});
    }
  }
  return rows;
}

// An array of finite numbers.
expected<tensor> find_numbers(std::span<const named_payload> arrays, std::string_view name,
                              int64_t columns) {
  auto found = find(arrays, name, dtype::f64, {columns});
  if (!found) return found;
  if (!std::ranges::all_of(found->values<double>(), [](double it) { return std::isfinite(it); }))
    return refused(name, "holds a number that is not finite");
  return found;
}

} // namespace

std::vector<named_payload> to_arrays(const backup_estimates& estimates) {
  size_t replicas = 0;
  for (const auto& row : estimates.arrivals)
    replicas = std::max(replicas, row.arrivals.size());
  std::vector<int64_t> steps;
  std::vector<double> arrivals;
  for (const auto& row : estimates.arrivals) {
    steps.insert(steps.end(), {static_cast<int64_t>(row.local_step), row.began.count()});
    for (const auto& [time, is_estimate, at_least] : row.arrivals) {
      auto number = time.value_or(no_time);
      arrivals.insert(arrivals.end(), {is_estimate ? no_time : number,
                                       is_estimate ? number : no_time, at_least.value_or(no_time)});
    }
    arrivals.resize(arrivals.size() + 3 * (replicas - row.arrivals.size()), no_time);
  }
  std::vector<double> spreads;
  for (const auto& [squared_norm, variance] : estimates.spreads)
    spreads.insert(spreads.end(), {squared_norm, variance});
  std::vector<double> descent;
  for (const auto& [loss, squared_norm, squared_update] : estimates.descent)
    descent.insert(descent.end(), {loss, squared_norm, squared_update});
  auto count = [](const auto& list) { return std::ssize(list); };
  return {
    to_array("steps", dtype::i64, {count(estimates.arrivals), 2}, steps),
    to_array("arrivals", dtype::f64, {count(estimates.arrivals), static_cast<int64_t>(replicas), 3},
             arrivals),
    to_array("spreads", dtype::f64, {count(estimates.spreads), 2}, spreads),
    to_array("descent", dtype::f64, {count(estimates.descent), 3}, descent),
  };
}

expected<backup_estimates> read_backup_estimates(std::span<const named_payload> arrays) {
  if (arrays.empty()) return backup_estimates{};
  auto rows = read_rows(arrays);
  if (!rows) return tl::unexpected<error>(rows.error());
  auto spreads = find_numbers(arrays, "spreads", 2);
  if (!spreads) return tl::unexpected<error>(spreads.error());
  auto descent = find_numbers(arrays, "descent", 3);
  if (!descent) return tl::unexpected<error>(descent.error());
  backup_estimates estimates{std::move(*rows), {}, {}};
  for (auto from = spreads->values<double>(); !from.empty(); from = from.subspan(2))
    estimates.spreads.push_back({from[0], from[1]});
  for (auto from = descent->values<double>(); !from.empty(); from = from.subspan(3))
    estimates.descent.push_back({from[0], from[1], from[2]});
  return estimates;
}

} // namespace troupe
