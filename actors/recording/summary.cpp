// SPDX-License-Identifier: Apache-2.0
// Adding up step records, and the table that a run ends with.
#include "actors/recording/summary.hpp"

#include "actors/recording/readable.hpp"
#include "actors/recording/seconds.hpp"
#include "actors/recording/step_figures.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace troupe {

namespace {

using replica_line = std::pair<const uint32_t, replica_summary>;

// Adds up to the limits of a clock, 292 years: a thousand replicas compute that long in months.
void add_time(job_time& sum, job_time more) {
  int64_t result = 0;
  if (__builtin_add_overflow(sum.count(), more.count(), &result))
    sum = more > job_time{0} ? job_time::max() : job_time::min();
  else
    sum = job_time{result};
}

void count_effort(replica_summary& replica, const contribution& gradient) {
  add_time(replica.compute, gradient.compute);
  add_time(replica.waiting, gradient.waited);
  replica.staleness_max = std::max(replica.staleness_max, gradient.staleness);
}

void count_waste(replica_summary& replica, const contribution& gradient) {
  count_effort(replica, gradient);
  add_time(replica.wasted, gradient.compute);
}

// The replicas to list, in order of their numbers; if there are too many, those that gave no
// gradient, and then those that lost most.
std::vector<const replica_line*>
lines_to_show(const std::map<uint32_t, replica_summary>& replicas) {
  auto lines = mapped(replicas, [](const auto& line) { return &line; });
  if (lines.size() <= summary::replica_lines_max) return lines;
  const auto loss = [](const replica_line* line) {
    const auto& replica = line->second;
    return std::pair{replica.gradients() == 0, replica.stale + replica.cancelled};
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](auto* left, auto* right) { return loss(left) > loss(right); });
  lines.resize(summary::replica_lines_max);
  std::sort(lines.begin(), lines.end(),
            [](auto* left, auto* right) { return left->first < right->first; });
  return lines;
}

std::string table_line(const std::string& name, const replica_summary& replica) {
  const bool late = replica.staleness_max > 0;
  return fmt::format(
    "{:<8}{:>10}{:>9}{:>11}{:>17}{:>13}{:>13}{:>16}\n", name, readable::count(replica.accepted),
    readable::count(replica.stale), readable::count(replica.cancelled),
    late ? readable::count(replica.staleness_max) : "-", readable::duration(replica.compute),
    readable::duration(replica.waiting), readable::duration(replica.held_up));
}

std::string table(const summary& run) {
  auto text = fmt::format("{:<8}{:>10}{:>9}{:>11}{:>17}{:>13}{:>13}{:>16}\n", "replica", "accepted",
                          "stale", "cancelled", "worst staleness", "computing", "waiting",
                          "held others up");
  const auto lines = lines_to_show(run.replicas());
  for (const auto* line : lines)
    text += table_line(std::to_string(line->first), line->second);
  text += table_line("all", run.total());
  if (lines.size() < run.replicas().size())
    text += fmt::format("(the {} of {} replicas that gave none or lost most gradients)\n",
                        lines.size(), run.replicas().size());
  return text;
}

} // namespace

replica_summary& replica_summary::operator+=(const replica_summary& other) {
  accepted += other.accepted;
  stale += other.stale;
  cancelled += other.cancelled;
  staleness_max = std::max(staleness_max, other.staleness_max);
  add_time(compute, other.compute);
  add_time(wasted, other.wasted);
  add_time(waiting, other.waiting);
  add_time(held_up, other.held_up);
  return *this;
}

void summary::expect(uint32_t count) {
  for (uint32_t replica = 0; replica < count; ++replica)
    replicas_.try_emplace(replica);
}

void summary::add(const step_record& step) {
  if (step_times_.count() == 0) began_ = step.began;
  step_times_.add(step_duration(step));
  elapsed_ = std::max(elapsed_, step.ended);
  examples_ += accepted_examples(step);
  count_accepted(step);
  for (const auto& gradient : step.cancelled)
    count_cancelled(gradient);
  for (const auto& gradient : step.stale)
    count_stale(gradient);
}

void summary::count_accepted(const step_record& step) {
  const auto* last = completing_contribution(step);
  for (const auto& gradient : step.accepted) {
    auto& replica = replicas_[gradient.replica];
    ++replica.accepted;
    count_effort(replica, gradient);
    if (gradient.replica != last->replica)
      add_time(replicas_[last->replica].held_up, waited_for_completion(step, gradient));
  }
}

void summary::count_cancelled(const contribution& gradient) {
  auto& replica = replicas_[gradient.replica];
  ++replica.cancelled;
  count_waste(replica, gradient);
  stopped_.add(gradient);
}

void summary::count_stale(const contribution& gradient) {
  auto& replica = replicas_[gradient.replica];
  ++replica.stale;
  count_waste(replica, gradient);
  if (stopped_.take(gradient)) --replica.cancelled;
}

replica_summary summary::total() const {
  replica_summary sum;
  for (const auto& [number, replica] : replicas_)
    sum += replica;
  return sum;
}

double summary::drop_fraction() const {
  const auto sum = total();
  const uint64_t dropped = sum.stale + sum.cancelled;
  const uint64_t all = sum.accepted + dropped;
  return all == 0 ? 0 : static_cast<double>(dropped) / static_cast<double>(all);
}

std::string summary::text() const {
  if (step_times_.count() == 0) return "no step was completed\n";
  const auto sum = total();
  const auto took = elapsed_ - began_;
  const auto rate = [took](uint64_t count) {
    return readable::quantity(took > job_time{0} ? static_cast<double>(count) / seconds(took) : 0);
  };
  auto text = fmt::format("{} steps in {}: {} steps/s", readable::count(step_times_.count()),
                          readable::duration(took), rate(step_times_.count()));
  if (examples_ > 0) text += fmt::format(", {} examples/s", rate(examples_));
  text += fmt::format("\nstep time: median {}, p90 {}, p99 {}, longest {}\n",
                      readable::duration(step_times_.percentile(0.5)),
                      readable::duration(step_times_.percentile(0.9)),
                      readable::duration(step_times_.percentile(0.99)),
                      readable::duration(step_times_.longest()));
  text += fmt::format("gradients: {} accepted, {} stale, {} cancelled; {:.1f} % not used\n\n",
                      readable::count(sum.accepted), readable::count(sum.stale),
                      readable::count(sum.cancelled), 100 * drop_fraction());
  return text + table(*this);
}

} // namespace troupe
