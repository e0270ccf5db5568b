// SPDX-License-Identifier: Apache-2.0
// The search for the number of backups with the lowest cost.
#include "simulation/reports/advice.hpp"

#include "messages/errors/failure.hpp"
#include "simulation/on_threads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace troupe {

namespace {

/// Tries numbers of backups under one policy, each once.
class backup_search {
public:
  backup_search(const advice_question& question, sync_policy policy, const experiment_runner& run)
    : question_(question), policy_(policy), run_(run) {}

  // All candidates that were tried, by backups, without those that the curve does not know. A
  // candidate that stalled has an infinite cost.
  std::map<uint32_t, advice_candidate> search() {
    auto most = question_.buys ? question_.base.sync.replicas_to_aggregate
                               : question_.base.sync.total_num_replicas - 1;
    // Fewer than the dead ones cannot be: under most policies a step would never end. All scales
    // are looked at, because backups that are too few for all slow replicas help nothing.
    auto least = question_.base.dead;
    for (uint32_t more = 0; least + more <= most; more = std::max(more + 1, 2 * more))
      try_out(least + more);
    if (least <= most && !tried_.contains(most)) try_out(most);
    while (auto next = between_neighbours())
      try_out(*next);
    return std::move(tried_);
  }

private:
  void try_out(uint32_t backups) {
    auto experiment = question_.base;
    auto& sync = experiment.sync;
    sync.policy = policy_;
    if (question_.buys)
      sync.total_num_replicas = sync.replicas_to_aggregate + backups;
    else
      sync.replicas_to_aggregate = sync.total_num_replicas - backups;
    advice_candidate candidate{policy_, backups, sync.replicas_to_aggregate,
                               sync.total_num_replicas};
    auto steps = question_.iterations.steps(candidate.needed);
    auto is_unknown = !steps && steps.error().code == errc::out_of_range;
    if (is_unknown && !tried_.empty()) return;
    if (is_unknown)
      throw failure{{errc::out_of_range, steps.error().message + ", without backups"}};
    if (!steps) throw failure{steps.error()};
    if (tried_.empty()) first_steps_ = *steps;
    candidate.report = run_(experiment);
    auto stalled = candidate.report.stalled || std::isnan(candidate.report.step_time.mean);
    candidate.time = stalled ? std::numeric_limits<double>::infinity()
                             : *steps / first_steps_ * candidate.report.step_time.mean;
    candidate.cost = candidate.time * candidate.replicas;
    tried_.emplace(backups, std::move(candidate));
  }

  // A number halfway from the best to the farther one of its neighbours; nothing if both are next
  // to it.
  [[nodiscard]] std::optional<uint32_t> between_neighbours() const {
    auto cost = [](const auto& item) { return item.second.cost; };
    auto best = std::ranges::min_element(tried_, {}, cost);
    if (best == tried_.end() || std::isinf(best->second.cost)) return std::nullopt;
    auto below = best == tried_.begin() ? best->first : std::prev(best)->first;
    auto above = std::next(best) == tried_.end() ? best->first : std::next(best)->first;
    auto to_below = best->first - below;
    auto to_above = above - best->first;
    if (std::max(to_below, to_above) < 2) return std::nullopt;
    return to_above >= to_below ? best->first + to_above / 2 : best->first - to_below / 2;
  }

  const advice_question& question_;
  sync_policy policy_;
  const experiment_runner& run_;
  std::map<uint32_t, advice_candidate> tried_;
  double first_steps_ = 1; ///< That of the first: no factor of a curve changes advice.
};

// The candidate with the fewest backups; of several policies, the first.
size_t find_baseline(const std::vector<advice_candidate>& tried) {
  auto found = std::ranges::min_element(tried, {}, &advice_candidate::backups);
  return static_cast<size_t>(found - tried.begin());
}

// Batch means of the cost.
batches_of_runs batch_costs(const advice_candidate& candidate) {
  auto costs = candidate.report.batches;
  auto factor = candidate.cost / candidate.report.step_time.mean;
  for (auto& run : costs)
    for (double& cost : run)
      cost *= factor;
  return costs;
}

void compare(advice& found) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const auto baseline = found.tried[found.baseline];
  auto baseline_costs = batch_costs(baseline);
  for (auto& candidate : found.tried) {
    auto costs = batch_costs(candidate);
    candidate.difference
      = are_alike(costs, baseline_costs)
          ? widened(paired_share(costs, baseline_costs), candidate.report, baseline.report)
          : interval_estimate{unknown, unknown, unknown, unknown, 0};
    candidate.time /= baseline.time;
    candidate.cost /= baseline.cost;
  }
}

} // namespace

bool advice::is_worth_it() const {
  return tried[best].backups > tried[baseline].backups && tried[best].difference.high < 0;
}

std::optional<size_t> advice::best_with_more() const {
  std::optional<size_t> found;
  for (size_t i = 0; i < tried.size(); ++i) {
    if (tried[i].backups <= tried[baseline].backups) continue;
    if (!found || tried[i].cost < tried[*found].cost) found = i;
  }
  return found;
}

std::pair<uint32_t, uint32_t> advice::nearly_best() const {
  constexpr double nearly = 1.01;
  auto range = std::pair{tried[best].backups, tried[best].backups};
  for (const auto& candidate : tried) {
    if (candidate.policy != tried[best].policy || candidate.cost > nearly * tried[best].cost)
      continue;
    range.first = std::min(range.first, candidate.backups);
    range.second = std::max(range.second, candidate.backups);
  }
  return range;
}

std::optional<advice> advise(const advice_question& question, const experiment_runner& run) {
  std::vector<std::map<uint32_t, advice_candidate>> searches(question.policies.size());
  for_each_on_threads(searches.size(), question.base.threads, [&](size_t i) {
    searches[i] = backup_search{question, question.policies[i], run}.search();
  });
  advice found;
  for (auto& search : searches) {
    std::optional<size_t> best;
    for (auto& [backups, candidate] : search) {
      if (std::isinf(candidate.cost)) continue;
      found.tried.push_back(std::move(candidate));
      if (!best || found.tried.back().cost < found.tried[*best].cost) best = found.tried.size() - 1;
    }
    if (best) found.best_of_policy.push_back(*best);
  }
  if (found.tried.empty()) return std::nullopt;
  auto cost = [&](size_t index) { return found.tried[index].cost; };
  found.best = *std::ranges::min_element(found.best_of_policy, {}, cost);
  found.baseline = find_baseline(found.tried);
  compare(found);
  return found;
}

} // namespace troupe
