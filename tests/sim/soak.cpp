// SPDX-License-Identifier: Apache-2.0
// Drawn jobs without end: soak [--meetings | --engines] [--first SEED] [--seeds COUNT]. Exit code 1
// if a promise was broken.
#include "kernels/tensor/buffer.hpp"
#include "tests/sim/checkers.hpp"
#include "tests/sim/drawn_scenario.hpp"
#include "tests/sim/meeting_job.hpp"
#include "tests/sim/stuck_alarm.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace troupe;
using namespace troupe::test;

/// Says now and then how far it is, on standard error.
class progress {
public:
  explicit progress(uint64_t jobs) : jobs_(jobs) {}

  void add(bool is_broken) {
    ++done_;
    if (is_broken) ++broken_;
    auto now = std::chrono::steady_clock::now();
    if (now - told_ < period) return;
    told_ = now;
    std::chrono::duration<double, std::milli> spent = now - began_;
    fmt::print(stderr, "{} of {} jobs, {} of them broke a promise; {:.1f} ms a job\n", done_, jobs_,
               broken_, spent.count() / static_cast<double>(done_));
  }

  [[nodiscard]] uint64_t broken() const { return broken_; }

private:
  static constexpr std::chrono::seconds period{10};

  uint64_t jobs_;
  uint64_t done_ = 0;
  uint64_t broken_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = began_;
};

/// Memory that a job did not free. The first job is exempt: all later jobs share what it leaves.
class leftovers {
public:
  [[nodiscard]] std::string complaint() {
    auto before = in_use_;
    in_use_ = cpu_pool().bytes_in_use();
    if (!before || *in_use_ <= *before) return {};
    return fmt::format("  {} bytes are in use that were not before\n", *in_use_ - *before);
  }

private:
  std::optional<size_t> in_use_;
};

/// The outcome of a seed's job.
struct outcome {
  std::string description;
  std::string complaints; ///< Empty if all is well.
};

outcome run_job_of(uint64_t seed) {
  auto course = run_drawn_job(seed);
  return {course->describe(), judge(*course)};
}

outcome run_meeting_of(uint64_t seed) {
  auto course = run_meeting(draw_meeting(seed));
  outcome result{course.describe(), judge(course)};
  if (auto rest = resumed(course)) result.complaints += judge(run_meeting(*rest));
  return result;
}

outcome run_engines_of(uint64_t seed) {
  auto what = draw_scenario(seed);
  auto found = difference_between_engines(what);
  return {describe(what), found.empty() ? "" : fmt::format("  {}\n", found)};
}

/// A kind of job: how one is run from its seed, and the command that replays it.
struct drawn_kind {
  outcome (*run)(uint64_t seed);
  std::string_view replay_command;
};

constexpr drawn_kind jobs{run_job_of, replay_command};
constexpr drawn_kind meetings{run_meeting_of, replay_meeting_command};
constexpr drawn_kind engines{run_engines_of, replay_engines_command};

} // namespace

int main(int argument_count, char** arguments) {
  uint64_t first = 1;
  uint64_t seeds = 10'000;
  bool meets = false;
  bool compares = false;
  CLI::App app{"Whole jobs with drawn faults in virtual time, one for each seed, held to their "
               "promises."};
  app.add_option("--first", first, "The first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "How many")->capture_default_str();
  auto* meetings_flag
    = app.add_flag("--meetings", meets, "Jobs of a multi_worker_mirrored strategy");
  app.add_flag("--engines", compares, "Jobs without faults, by both engines of the simulator")
    ->excludes(meetings_flag);
  CLI11_PARSE(app, argument_count, arguments);
  const auto& kind = meets ? meetings : compares ? engines : jobs;
  progress progress{seeds};
  leftovers leftovers;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    auto [description, complaints] = kind.run(seed);
    if (seeds == 1) fmt::print("seed {}: {}\n", seed, description);
    complaints += leftovers.complaint();
    progress.add(!complaints.empty());
    if (complaints.empty()) continue;
    auto command = fmt::format(fmt::runtime(kind.replay_command), seed);
    fmt::print("seed {}: {}  replay with: {}\n", seed, complaints, command);
    std::fflush(stdout); // it may be ended before it is through
  }
  fmt::print("{} jobs, {} of them broke a promise\n", seeds, progress.broken());
  return progress.broken() > 0 ? 1 : 0;
}
