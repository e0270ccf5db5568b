// SPDX-License-Identifier: Apache-2.0
// A job that a coordinator gives out: coordinated_job STEPS [HOLDERS]. Each step takes some
// milliseconds, adds 1 to a variable by hand, and to another one by its gradient. A chief that gets
// SIGUSR1 makes no more than the 50 steps under way. A line on standard error tells each event.
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/optimizers/optimizer.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

using namespace troupe;

namespace {

std::atomic<bool> is_asked_to_end{false};              ///< SIGUSR1 asks.
static_assert(std::atomic<bool>::is_always_lock_free); // a signal handler may set it

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

int count_in(strategy& strategy, const variable& counter) {
  return static_cast<int>(strategy.read(counter).values<float>()[0]);
}

int take_part(int steps, uint32_t holders) {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world,
                cluster, // hosts of a test are namespaces
                {.replicate_owners = holders, .insecure_network = true}};
  parameter_server_strategy strategy{
    world,
    {.replicas = server.replicas(), .placement = server.placement(), .replicate_owners = holders}};
  auto counter = strategy.make_variable("counter", zeros({}));
  auto trained = strategy.make_variable("trained", zeros({}));
  optimizer sgd{rules::sgd{.learning_rate = 1}};
  cluster_coordinator coordinator{strategy, {.on_warning = say}};
  auto calls = coordinator.create_per_worker_resource([](const input_context&) { return 0; });
  auto step = coordinator.make_function(
    "step", [=](closure_context& context, int& calls_here) -> task<int> {
      auto computing = context.compute([](std::stop_token) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
        return 0;
      });
      co_await computing;
      auto adding = context.assign_add(counter, 1);
      co_await adding;
      std::vector<gradient_and_variable> pairs{{filled(dtype::f32, {}, -1), trained}};
      auto applying = sgd.apply_gradients(context, std::move(pairs));
      co_await applying;
      if (++calls_here == 1) say("worker " + std::to_string(context.worker_index()) + " begins");
      co_return static_cast<int>(context.worker_index());
    });
  if (!coordinator.leads()) {
    coordinator.serve();
    return 0;
  }
  for (int done = 0; done < steps && !is_asked_to_end; done += 50) {
    for (int i = 0; i < 50; ++i)
      static_cast<void>(coordinator.schedule(step, calls));
    coordinator.join();
    say("step " + std::to_string(done + 50));
  }
  say("counted " + std::to_string(count_in(strategy, counter)));
  say("trained " + std::to_string(count_in(strategy, trained)));
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  std::signal(SIGUSR1, [](int) { is_asked_to_end = true; });
  try {
    return take_part(count > 1 ? std::stoi(arguments[1]) : 100,
                     count > 2 ? static_cast<uint32_t>(std::stoi(arguments[2])) : 1);
  } catch (const failure& failed) {
    say(failed.what());
    return 4;
  }
}
