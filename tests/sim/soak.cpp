// SPDX-License-Identifier: Apache-2.0
// Drawn jobs without end: soak [--first SEED] [--seeds COUNT]. Exit code 1 if a promise was broken.
#include "kernels/buffer.hpp"
#include "tests/sim/checkers.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <optional>

int main(int argument_count, char** arguments) {
  uint64_t first = 1;
  uint64_t seeds = 10'000;
  CLI::App app{"Whole jobs with drawn faults in virtual time, one for each seed, held to their "
               "promises."};
  app.add_option("--first", first, "The first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "How many")->capture_default_str();
  CLI11_PARSE(app, argument_count, arguments);
  uint64_t broken = 0;
  std::optional<size_t> left_behind;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    auto course = troupe::test::run_drawn_job(seed);
    auto complaints = troupe::test::judge(*course);
    if (seeds == 1) fmt::print("seed {}: {}\n", seed, course->describe());
    course.reset();
    auto in_use = troupe::cpu_pool().bytes_in_use();
    if (!left_behind) left_behind = in_use; // what the first job leaves is what all jobs share
    if (in_use > *left_behind)
      complaints
        += fmt::format("  {} bytes are in use that were not before", in_use - *left_behind);
    left_behind = in_use;
    if (complaints.empty()) continue;
    ++broken;
    fmt::print("seed {}: {}  replay with: soak --first {} --seeds 1\n", seed, complaints, seed);
    std::fflush(stdout); // it may be ended before it is through
  }
  fmt::print("{} jobs, {} of them broke a promise\n", seeds, broken);
  return broken > 0 ? 1 : 0;
}
