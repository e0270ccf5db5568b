// SPDX-License-Identifier: Apache-2.0
// The times of replicas and steps, out of the lines of a ledger.
#include "simulation/replay/recorded_run.hpp"

#include "actors/recording/ledger_file.hpp"
#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <tuple>

namespace troupe {

namespace {

/// A line of the ledger: a gradient's times.
struct entry {
  size_t line = 0; ///< Line of the file, from 1.
  uint64_t step = 0;
  uint32_t replica = 0;
  gradient_verdict verdict = gradient_verdict::accepted;
  uint64_t local_step = 0;
  job_time arrived{0};
  job_time idle{0}; ///< From there to the end of the step; accepted ones only.
};

expected<std::vector<entry>> entries_of(std::string_view text, const std::string& name) {
  auto header = ledger_file::header;
  if (!text.starts_with(header)) {
    return fail(errc::malformed,
                fmt::format("{}:1: not the ledger of a run of this version: "
                            "its first line is not the one that troupe train writes",
                            name));
  }
  text.remove_prefix(header.size());
  std::vector<entry> entries;
  for (size_t number = 2; text.find('\n') != std::string_view::npos; ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    auto read = read_ledger_line(line);
    auto is_back = read && !entries.empty() && read->step < entries.back().step;
    if (!read || is_back || read->gradient.arrived < job_time{0} || read->idle < job_time{0})
      return fail(errc::malformed, fmt::format("{}:{}: not a line of a ledger", name, number));
    const auto& gradient = read->gradient;
    entries.push_back({number, read->step, gradient.replica, read->verdict, gradient.local_step,
                       gradient.arrived, read->idle});
  }
  return entries;
}

// Two times of a ledger may be wrong by so much together.
constexpr job_time rounding = std::chrono::microseconds{1};

// Parts of one gradient may be in steps that lie apart, by at most the gradients of the others: it
// is in the last of them, and what lies between may have no line.
expected<void> check_steps(const std::vector<entry>& entries, const std::string& name) {
  uint64_t replicas = 1;
  for (const auto& one : entries)
    replicas = std::max<uint64_t>(replicas, one.replica + uint64_t{1});
  auto before = entries.front().step;
  for (const auto& one : entries) {
    if (one.step - before > replicas)
      return fail(errc::malformed, fmt::format("{}: step {} is missing", name, before + 1));
    before = one.step;
  }
  return {};
}

// Adds a step, and before it those of which the ledger tells nothing: they are taken to be as long.
void add_step(uint64_t index, job_time end, recorded_run& run) {
  auto update = run.updates.empty() ? job_time{0} : run.updates.back();
  auto count = static_cast<job_time::rep>(index - run.updates.size());
  auto each = (end - run.step_ends.back()) / count;
  while (run.updates.size() + 1 < index) {
    run.step_ends.push_back(run.step_ends.back() + each);
    run.updates.push_back(update);
  }
  run.step_ends.push_back(end);
}

// A ledger tells when a step ended by how long the replicas that it took had waited for that.
expected<void> add_steps(const std::vector<entry>& entries, const std::string& name,
                         recorded_run& run) {
  if (entries.empty())
    return fail(
      errc::failed_precondition,
      fmt::format("{} holds no step: the run has made none, or --ledger-bytes had no room "
                  "for one",
                  name));
  if (auto done = check_steps(entries, name); !done) return done;
  run.first_step = entries.front().step - 1;
  run.step_ends = {job_time{0}};
  for (const auto& one : entries) {
    if (one.verdict != gradient_verdict::accepted) continue;
    auto index = one.step - run.first_step;
    if (index >= run.step_ends.size()) {
      auto end = one.arrived + one.idle;
      if (end + rounding < run.step_ends.back())
        return fail(errc::malformed, fmt::format("{}:{}: step {} ends before the step before it",
                                                 name, one.line, one.step));
      add_step(index, std::max(end, run.step_ends.back()), run);
      run.updates.push_back(one.idle);
    }
    run.updates.back() = std::min(run.updates.back(), one.idle); // of the last that came
  }
  if (run.updates.empty())
    return fail(errc::failed_precondition, fmt::format("{}: no gradient was accepted", name));
  // It is unknown when a resumed job began: its first step is taken to be as long as the next.
  if (run.first_step > 0 && run.step_ends.size() > 2)
    run.step_ends[0] = 2 * run.step_ends[1] - run.step_ends[2];
  return {};
}

// The end of the update that gave the token of `local_step`.
job_time token_time(const recorded_run& run, uint64_t local_step) {
  if (local_step <= run.first_step) return run.step_ends.front();
  return run.step_ends[std::min<size_t>(local_step - run.first_step, run.step_ends.size() - 1)];
}

// A gradient that was done when its replica was told to stop has two lines.
std::vector<entry> without_repeated(std::vector<entry> entries) {
  std::set<std::tuple<uint32_t, uint64_t>> arrived;
  for (const auto& one : entries)
    if (one.verdict == gradient_verdict::stale) arrived.insert({one.replica, one.local_step});
  std::erase_if(entries, [&](const entry& one) {
    return one.verdict == gradient_verdict::cancelled
           && arrived.contains({one.replica, one.local_step});
  });
  return entries;
}

void add_times(std::vector<entry> entries, recorded_run& run) {
  std::ranges::stable_sort(entries, {}, &entry::arrived);
  std::vector<job_time> before;
  for (const auto& one : entries) {
    if (one.replica >= run.times.size()) {
      run.times.resize(one.replica + 1);
      before.resize(one.replica + 1, run.step_ends.front());
    }
    auto began = std::max(before[one.replica], token_time(run, one.local_step));
    before[one.replica] = one.arrived;
    run.times[one.replica].push_back(
      {std::max(one.arrived - began, job_time{0}), one.verdict == gradient_verdict::cancelled});
  }
  for (auto arrived : before)
    run.unfinished.push_back(std::max(run.step_ends.back() - arrived, job_time{0}));
}

} // namespace

void recorded_run::set_replica_count(uint32_t count) {
  times.resize(std::max<size_t>(times.size(), count));
  unfinished.resize(times.size());
}

std::vector<double> recorded_run::step_seconds() const {
  std::vector<double> seconds;
  for (size_t i = 1; i < step_ends.size(); ++i)
    seconds.push_back(troupe::seconds(step_ends[i] - step_ends[i - 1]));
  return seconds;
}

expected<recorded_run> read_ledger(std::string_view text, const std::string& name) {
  auto entries = entries_of(text, name);
  if (!entries) return tl::unexpected<error>(entries.error());
  recorded_run run;
  if (auto done = add_steps(*entries, name, run); !done) return tl::unexpected<error>(done.error());
  add_times(without_repeated(std::move(*entries)), run);
  return run;
}

} // namespace troupe
