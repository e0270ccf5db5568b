// SPDX-License-Identifier: Apache-2.0
// The cost of a checkpoint: the gap that it leaves between two steps, and what the steps take
// while its file is written; beside the machine's limit, a plain write of as many bytes.
#include "benchmarks/stopwatch.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/training.hpp"

#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

using namespace troupe;

namespace {

constexpr int64_t element_count = 25'000'000; // 100 MB, and as many for momentum
constexpr uint64_t every_steps = 40;

double milliseconds(job_time time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// Seconds for a file of the same size, written in one go and fsynced.
double plain_write(const std::filesystem::path& path) {
  std::vector<float> bytes(2 * element_count, 1.F);
  auto began = clock_type::now();
  auto file = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const auto* from = reinterpret_cast<const char*>(bytes.data());
  for (size_t done = 0; file >= 0 && done < bytes.size() * sizeof(float);) {
    auto written = write(file, from + done, bytes.size() * sizeof(float) - done);
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  fsync(file);
  close(file);
  std::filesystem::remove(path);
  return seconds_since(began);
}

} // namespace

int main() {
  auto folder = std::filesystem::temp_directory_path()
                / ("troupe-checkpoint-bench-" + std::to_string(getpid()));
  auto world = world::threads();
  parameter_server_strategy strategy{world, {.replicas = 2}};
  auto large = strategy.make_variable("large", zeros({element_count}));
  sync_replicas_optimizer optimizer{rules::momentum{}, {2, 2, sync_policy::latest_token}};
  auto gradient = zeros({element_count});
  step_function step = [=](replica_context& context) -> task<void> {
    auto applying = optimizer.apply_gradients(context, gradient, large);
    co_await applying;
  };
  auto saver = std::make_shared<checkpoint_saver_hook>(
    folder, checkpoint_options{.every_steps = every_steps, .keep = 1});
  std::vector<double> gaps_without;
  std::vector<double> gaps_with;
  std::vector<double> quiet_steps;
  std::vector<double> steps_after; // the three after a snapshot write elsewhere, or beside the disk
  job_time last_end{0};
  training_options options{.steps = 5 * every_steps};
  options.hooks = {saver};
  options.on_step = [&](const step_record& record) {
    auto place = (record.step - 1) % every_steps;
    if (record.step > 1)
      (place == 0 ? gaps_with : gaps_without).push_back(milliseconds(record.began - last_end));
    (place < 3 && record.step > every_steps ? steps_after : quiet_steps)
      .push_back(milliseconds(record.ended - record.began));
    last_end = record.ended;
  };
  if (train(strategy, optimizer, step, options).failure) return 1;
  auto limit = plain_write(folder / "plain");
  std::filesystem::remove_all(folder);
  std::printf("a job of 100 MB and momentum, saved every %lu steps\n"
              "  gap between two steps          %8.3f ms\n"
              "  gap with a snapshot in it      %8.3f ms   (the stall)\n"
              "  a step                         %8.1f ms\n"
              "  a step right after a snapshot  %8.1f ms\n"
              "  200 MB written and fsynced     %8.1f ms   (what it would take to wait)\n",
              static_cast<unsigned long>(every_steps), median(gaps_without), median(gaps_with),
              median(quiet_steps), median(steps_after), 1e3 * limit);
  return 0;
}
