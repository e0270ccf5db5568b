// SPDX-License-Identifier: Apache-2.0
// How far predictions of `troupe sim replay` are off: a real job is recorded, the effect of a
// change is predicted from its ledger, and a job that has the change is run.
//
// predictions        twelve changes
// predictions SEED   the same changes with other draws
//
// Replicas sleep instead of computing, for times that a distribution draws. The changed job has
// another seed than the recorded one, so it does not repeat it. Two such jobs differ by chance; the
// interval of a prediction has to allow for that.
// The machine must do nothing else: other programs would change one of the two jobs.
#include "actors/recording/ledger_file.hpp"
#include "benchmarks/need.hpp"
#include "benchmarks/stopwatch.hpp"
#include "messages/mapped.hpp"
#include "simulation/distributions/distribution.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/sim/replay.hpp"
#include "tools/system/file_content.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <numbers>
#include <sstream>
#include <unistd.h>

using namespace troupe;

namespace {

constexpr uint64_t steps = 500;
constexpr uint64_t ledger_bytes_max = uint64_t{1} << 30;

/// How long gradients take.
struct named_times {
  const char* name;
  const char* expression; ///< As `distribution::parse` reads it, in seconds.
  const char* repaired;   ///< If replica 3 is repaired.
};

constexpr named_times narrow{"narrow", "lognormal(0.016, 0.25)", ""};
constexpr named_times wide{"wide", "shifted_exponential(0.01, 200)", ""};
constexpr named_times tail{"tail",
                           "mixture(0.95: lognormal(0.014, 0.15), 0.05: uniform(0.03, 0.05))", ""};
constexpr named_times slow{"slow", "lognormal(0.014, 0.2) * slow({3}, 1.8)",
                           "lognormal(0.014, 0.2)"};
constexpr named_times periods{"periods", "lognormal(0.012, 0.15) * on_off(0.02, 0.2, 2.5)", ""};

/// A job, and what is changed in it.
struct experiment {
  named_times times;
  sync_options recorded;
  const char* change; ///< As it is typed behind `troupe sim replay RUN_DIR`.
};

constexpr auto tensorflow = sync_policy::tensorflow;
constexpr auto latest_token = sync_policy::latest_token;
constexpr auto cancel = sync_policy::cancel;

std::array<experiment, 12> experiments() {
  return {{
    {narrow, {8, 8, latest_token}, "--aggregate 7"},
    {wide, {8, 8, latest_token}, "--aggregate 6 --policy cancel"},
    {tail, {6, 8, latest_token}, "--aggregate 8"},
    {narrow, {7, 8, cancel}, "--aggregate 8"},
    {wide, {6, 8, cancel}, "--aggregate 5"},
    {tail, {7, 8, tensorflow}, "--policy latest_token"},
    {slow, {7, 8, latest_token}, "--policy cancel"},
    {periods, {6, 8, cancel}, "--policy latest_token"},
    {narrow, {7, 8, latest_token}, "--policy tensorflow"},
    {slow, {8, 8, latest_token}, "--repair 3"},
    {wide, {8, 8, latest_token}, "--replicas 10 --policy cancel"},
    {periods, {8, 8, latest_token}, "--replicas 6 --aggregate 6"},
  }};
}

// ---- a job ----

// Sleeps until `stop` at most, as a step function does that looks at its stop token.
void sleep(const std::stop_token& stop, job_time time) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock{mutex};
  nothing.wait_for(lock, stop, time, [] { return false; });
}

recorded_run run_job(const sync_options& sync, const char* compute, uint64_t seed,
                     const std::filesystem::path& ledger_path) {
  const auto replicas = sync.total_num_replicas;
  auto times = need(distribution::parse(compute));
  std::vector<computing_time> draws; // by replica: replicas draw on several threads
  for (uint32_t replica = 0; replica < replicas; ++replica)
    draws.push_back(times.times(seed));
  auto world = world::threads({.seed = seed, .threads = replicas}); // one to sleep on for each
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto weights = strategy.make_variable("weights", zeros({16}));
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.1}, sync};
  auto step = [=, gradient = zeros({16})](replica_context& context) -> task<void> {
    auto reading = context.read(weights);
    auto value = co_await reading;
    auto replica = context.replica_id_in_sync_group();
    auto computing = context.compute(
      [gradient, time = draws[replica](replica, context.iteration())](const std::stop_token& stop) {
        sleep(stop, time);
        return gradient;
      });
    auto computed = co_await computing;
    auto applying = optimizer.apply_gradients(context, computed, weights);
    co_await applying;
  };
  auto ledger = need(ledger_file::create(ledger_path));
  training_options options{.steps = steps};
  options.on_step = [&](const step_record& record) { need(ledger.append(record)); };
  auto report = train(strategy, optimizer, step, options);
  if (report.failure) throw failure{*report.failure};
  need(ledger.flush());
  auto text = need(file_content(ledger_path.string(), ledger_bytes_max));
  auto run = need(read_ledger(text, ledger_path.string()));
  run.set_replica_count(replicas);
  return run;
}

// ---- a prediction ----

replay_command command_of(const char* change) {
  std::istringstream words{change};
  std::vector<std::string> arguments{"replay", "RUN_DIR"};
  for (std::string word; words >> word;)
    arguments.push_back(word);
  auto pointers = mapped(arguments, [](const auto& argument) { return argument.c_str(); });
  return need(parse_replay_options(static_cast<int>(pointers.size()), pointers.data()));
}

/// The result of an experiment.
struct outcome {
  double error = 0;  ///< The prediction's, without its sign, as a share of the measured mean step.
  double chance = 0; ///< Median difference of two jobs with the change, as a share of their mean.
  bool is_held = false; ///< The measured mean step lies in the interval.
};

outcome measure(const experiment& experiment, uint64_t seed,
                const std::filesystem::path& ledger_path) {
  const auto& [times, sync, change] = experiment;
  run_folder folder{ledger_path.native(), run_job(sync, times.expression, seed, ledger_path), sync,
                    seed};
  auto command = command_of(change);
  auto report = replay(folder, command);
  if (!report.prediction)
    throw failure{{errc::failed_precondition,
                   fmt::format("{}: the run does not say enough to predict this", change)}};
  auto changed
    = run_job(report.changed_sync, command.repaired.empty() ? times.expression : times.repaired,
              seed + 1, ledger_path);
  const auto& predicted = *report.prediction;
  auto recorded = estimate_of(folder.run.step_seconds()).mean;
  auto [measured, standard_error, batches] = estimate_of_series(changed.step_seconds());
  auto error = predicted.mean / measured - 1;
  auto is_held = predicted.low <= measured && measured <= predicted.high;
  fmt::print("{:8} {} of {}, {:12} {:7.2f}  {:29} {:7.2f} [{:.2f}, {:.2f}] {:9.2f} {:+6.1f} % {}\n",
             times.name, sync.replicas_to_aggregate, sync.total_num_replicas,
             to_string(sync.policy), 1e3 * recorded, change, 1e3 * predicted.mean,
             1e3 * predicted.low, 1e3 * predicted.high, 1e3 * measured, 100 * error,
             is_held ? "yes" : "no");
  constexpr double median_of_normal = 0.6745; // of its absolute value
  auto chance = median_of_normal * std::numbers::sqrt2 * standard_error / measured;
  return {std::abs(error), chance, is_held};
}

void measure_all(uint64_t seed, const std::filesystem::path& ledger_path) {
  for (const auto& times : {narrow, wide, tail, slow, periods})
    fmt::print("{:8} {}\n", times.name, times.expression);
  fmt::print("mean of {} steps, in milliseconds; interval: of 95 in 100 such jobs\n"
             "{:8} {:20} {:>7}  {:29} {:>7} {:14} {:>9} {:>8} held\n",
             steps, "times", "recorded with", "mean", "change", "predicted", "interval", "measured",
             "error");
  std::vector<double> errors;
  std::vector<double> chances;
  size_t held = 0;
  for (const auto& experiment : experiments()) {
    auto [error, chance, is_held] = measure(experiment, seed, ledger_path);
    errors.push_back(error);
    chances.push_back(chance);
    held += is_held ? 1 : 0;
    seed += 2; // of two jobs
  }
  fmt::print("median error {:.1f} %, largest {:.1f} %; {} of {} within their intervals\n"
             "two jobs that differ in the seed alone: {:.1f} % in the median\n",
             100 * median(errors), 100 * std::ranges::max(errors), held, errors.size(),
             100 * median(chances));
}

} // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  auto ledger_path = std::filesystem::temp_directory_path()
                     / ("troupe-predictions-" + std::to_string(getpid()) + ".csv");
  int code = 0;
  try {
    measure_all(count == 2 ? std::strtoul(arguments[1], nullptr, 10) : 1, ledger_path);
  } catch (const failure& failed) {
    fmt::print(stderr, "{}\n", failed.reason().message);
    code = 1;
  }
  std::filesystem::remove(ledger_path);
  return code;
}
