// SPDX-License-Identifier: Apache-2.0
// The times of a recorded run, completed and changed, as those of a scenario.
#include "simulation/replay/replay.hpp"

#include "kernels/tensor/random.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/failure.hpp"
#include "simulation/replay/survival.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace troupe {

namespace {

using replica_times = std::vector<job_time>;

double mean_of(const std::vector<recorded_time>& times) {
  double sum = 0;
  for (const auto& one : times)
    sum += static_cast<double>(one.time.count());
  return sum / static_cast<double>(times.size());
}

/// The times of a replica's gradients in a replay, one after the other, then again from the first.
struct replayed_replica {
  replica_times times;
  std::optional<job_time> next; ///< Between the last and the first: it was at it at the end.

  [[nodiscard]] job_time at(uint64_t iteration) const {
    if (iteration == times.size() && next) return *next;
    return times[iteration % times.size()];
  }
};

/// Draws how long computations would have taken that were cut; the same again for the same seed.
/// The run and the options outlive it.
class cut_completion {
public:
  cut_completion(const recorded_run& run, const replay_options& options)
    : run_(run), options_(options), groups_(survival_groups_of(run.times)) {}

  [[nodiscard]] job_time longer_than(job_time least, size_t replica, size_t place) const {
    random_stream stream{
      random_key{options_.seed, "cut computation", static_cast<uint32_t>(replica), place}};
    auto uniform = 1 - stream.uniform();
    return groups_.of(replica).longer_than(least, uniform, !options_.no_longer_than_seen);
  }

  [[nodiscard]] std::vector<replayed_replica> times() const {
    std::vector<replayed_replica> result;
    for (size_t replica = 0; replica < run_.times.size(); ++replica) {
      const auto& times = run_.times[replica];
      auto& completed = result.emplace_back();
      for (size_t i = 0; i < times.size(); ++i)
        completed.times.push_back(times[i].at_least ? longer_than(times[i].time, replica, i)
                                                    : times[i].time);
      completed.next = longer_than(run_.unfinished[replica], replica, times.size());
    }
    return result;
  }

  [[nodiscard]] cut_estimate figures() const {
    cut_estimate result;
    for (size_t replica = 0; replica < run_.times.size(); ++replica) {
      if (!has_recorded_times(replica)) continue;
      const auto& times = run_.times[replica];
      const auto longest = groups_.of(replica).longest_completed();
      result.gradients += times.size();
      if (groups_.is_unknown[replica]) result.unknown.push_back(static_cast<uint32_t>(replica));
      for (size_t i = 0; i < times.size(); ++i) {
        result.longest = std::max(result.longest, times[i].at_least ? job_time{0} : times[i].time);
        if (!times[i].at_least) continue;
        ++result.cut;
        if (longer_than(times[i].time, replica, i) > longest) ++result.beyond;
      }
    }
    return result;
  }

private:
  // Whether the replica computes as it did: it is neither repaired nor left out.
  [[nodiscard]] bool has_recorded_times(size_t replica) const {
    return replica < options_.sync.total_num_replicas
           && std::ranges::count(options_.repaired, static_cast<uint32_t>(replica)) == 0;
  }

  const recorded_run& run_;
  const replay_options& options_;
  survival_groups groups_;
};

// The same times, begun elsewhere.
replica_times rotated(replica_times times, size_t by) {
  auto middle = times.begin() + static_cast<ptrdiff_t>(by % times.size());
  std::rotate(times.begin(), middle, times.end());
  return times;
}

std::vector<uint32_t> changed_replicas(const recorded_run& run, const replay_options& options) {
  auto changed = options.repaired;
  for (auto replica : options.repaired) {
    if (replica < options.sync.total_num_replicas) continue;
    throw failure{{errc::invalid_argument,
                   fmt::format("replica {} cannot be repaired: there are {}, counted from 0",
                               replica, options.sync.total_num_replicas)}};
  }
  for (auto i = static_cast<uint32_t>(run.times.size()); i < options.sync.total_num_replicas; ++i)
    changed.push_back(i);
  return changed;
}

} // namespace

uint32_t typical_replica(const recorded_run& run, std::span<const uint32_t> excluded) {
  std::vector<uint32_t> candidates;
  for (uint32_t i = 0; i < run.times.size(); ++i)
    if (!run.times[i].empty() && std::ranges::count(excluded, i) == 0) candidates.push_back(i);
  TROUPE_ASSERT(!candidates.empty());
  auto middle = candidates.begin() + static_cast<ptrdiff_t>((candidates.size() - 1) / 2);
  std::ranges::nth_element(candidates, middle, {},
                           [&](uint32_t i) { return mean_of(run.times[i]); });
  return *middle;
}

cut_estimate cut_estimate_of(const recorded_run& run, const replay_options& options) {
  return cut_completion{run, options}.figures();
}

recorded_run resampled(const recorded_run& run, uint64_t seed) {
  random_stream stream{random_key{seed, "blocks of a recorded run"}};
  std::vector<double> places;
  for (size_t i = 0; i < resampled_blocks; ++i)
    places.push_back(stream.uniform());
  auto again = [&](const auto& series) {
    auto result = series;
    for (size_t i = 0; i < series.size(); ++i) {
      auto block = i * resampled_blocks / series.size();
      auto first = static_cast<size_t>(places[block] * static_cast<double>(series.size()));
      auto begin = (block * series.size() + resampled_blocks - 1) / resampled_blocks;
      result[i] = series[(first + i - begin) % series.size()];
    }
    return result;
  };
  auto result = run;
  result.updates = again(run.updates);
  for (auto& times : result.times)
    times = again(times);
  return result;
}

scenario replay_of(const recorded_run& run, const replay_options& options) {
  auto times = cut_completion{run, options}.times();
  auto changed = changed_replicas(run, options);
  if (!changed.empty()) {
    auto unchanged = std::ranges::count_if(run.times, [&](const auto& of_replica) {
      auto index = static_cast<uint32_t>(&of_replica - run.times.data());
      return !of_replica.empty() && std::ranges::count(changed, index) == 0;
    });
    if (unchanged == 0)
      throw failure{{errc::invalid_argument, "no replica is left that is not to be repaired, so "
                                             "none says what a typical one takes"}};
    auto typical = times[typical_replica(run, changed)].times;
    times.resize(std::max<size_t>(times.size(), options.sync.total_num_replicas));
    for (size_t i = 0; i < changed.size(); ++i)
      times[changed[i]] = {rotated(typical, (i + 1) * typical.size() / (changed.size() + 1)), {}};
  }
  scenario result{.sync = options.sync, .steps = run.step_count(), .seed = options.seed};
  for (uint32_t i = 0; i < options.sync.total_num_replicas; ++i)
    if (times[i].times.empty()) result.dead_replicas.push_back(i);
  result.compute = [times = std::move(times)](uint32_t replica, uint64_t iteration) {
    return times[replica].at(iteration);
  };
  result.update
    = [updates = run.updates](uint64_t step) { return updates[(step - 1) % updates.size()]; };
  return result;
}

replay_error error_of(std::span<const double> recorded, std::span<const double> replayed) {
  auto count = std::min(recorded.size(), replayed.size());
  TROUPE_ASSERT(count > 0);
  recorded = recorded.first(count);
  replayed = replayed.first(count);
  std::vector<double> errors;
  for (size_t i = 0; i < count; ++i)
    errors.push_back(replayed[i] == recorded[i] ? 0 : std::abs(replayed[i] / recorded[i] - 1));
  sorted_values sorted{std::move(errors)};
  return {estimate_of(replayed).mean / estimate_of(recorded).mean - 1, sorted.quantile(0.5),
          sorted.quantile(0.9)};
}

} // namespace troupe
