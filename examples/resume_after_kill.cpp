// SPDX-License-Identifier: Apache-2.0
// A job that survives the loss of its chief: it saves itself as it goes, and when its launcher
// starts it again it goes on from there. In its first attempt the chief's process kills itself.
//
//   troupe launch -n 3 --ps 1 --restart 1 -- resume_after_kill NEW_FOLDER
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

using namespace troupe;

namespace {

constexpr uint64_t steps = 200;
constexpr uint64_t fatal_step = 120;

// Whether a launcher with --restart starts the job for the first time.
bool is_first_attempt() {
  const char* restarts = std::getenv("TROUPE_RESTART_COUNT");
  return restarts != nullptr && std::string{restarts} == "0";
}

int take_part(const std::filesystem::path& folder) {
  auto found = find_checkpoint(folder);
  if (found && found->snapshot.step >= steps) {
    std::printf("all %llu steps are made already\n", static_cast<unsigned long long>(steps));
    return 0;
  }
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world, cluster};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  auto height = strategy.make_variable("height", make_tensor({}, {100}));

  sync_replicas_optimizer optimizer{
    rules::momentum{.learning_rate = 0.01},
    {server.replicas(), server.replicas(), sync_policy::latest_token}};
  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(height);
    auto value = co_await reading;
    auto slope = make_tensor({}, {2 * value.values<float>()[0]}); // of its square
    std::vector<gradient_and_variable> pairs{{slope, height}};
    auto applying = optimizer.apply_gradients(context, std::move(pairs));
    co_await applying;
  };

  training_options options{.steps = steps};
  if (server.is_chief()) {
    checkpoint_options saving{.every_steps = 10};
    options.hooks.push_back(std::make_shared<checkpoint_saver_hook>(folder, saving));
    if (found) {
      options.steps = steps - found->snapshot.step;
      options.resume = std::move(found->snapshot);
      std::printf("goes on from a checkpoint\n");
    }
    options.on_step = [dies = is_first_attempt()](const step_record& record) {
      if (dies && record.step == fatal_step) std::raise(SIGKILL);
    };
  }
  auto report = train(strategy, optimizer, step, options);

  if (report.failure) return static_cast<int>(exit_code_of(report));
  if (server.is_chief())
    std::printf("height %.6f after %llu steps\n", strategy.read(height).values<float>()[0],
                static_cast<unsigned long long>(report.step));
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2 || arguments[1][0] == '-') {
    std::fprintf(stderr, "usage: resume_after_kill FOLDER\n");
    return 2;
  }
  return run_main([&] { return take_part(arguments[1]); });
}
