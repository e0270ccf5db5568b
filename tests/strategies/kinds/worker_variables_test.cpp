// SPDX-License-Identifier: Apache-2.0
// Goal: processes that have their variables on GPUs train them as those with variables on the host,
// by messages or by devices. Method: processes played by threads, with GPUs that are parts of the
// processor; the same small training in all ways.
#include "tests/strategies/leaving_replicas.hpp"
#include "tests/strategies/placed_job.hpp"
#include "tests/strategies/played_workers.hpp"

namespace worker_variables_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr uint32_t processes = 2;
constexpr uint32_t replicas = 2; // of each

/// The GPUs of one process: those of replicas, of variables, and of sums with other processes.
struct worker_devices {
  explicit worker_devices(size_t gpus)
    : computing(make_playing_gpus(gpus, replicas)), holding(make_playing_gpus(gpus, 2)) {}

  played_gpu_list computing;
  played_gpu_list holding;
  played_gpu_list reducing = make_playing_gpus(1, 1);

  [[nodiscard]] uint64_t bytes_over_the_bus() const {
    uint64_t bytes = 0;
    for (const auto& list : {computing, holding, reducing})
      for (const auto& gpu : list)
        bytes += gpu->bytes_from_host() + gpu->bytes_to_host();
    return bytes;
  }
};

/// Runs `program` in each process. @param library By which devices reduce; null: messages do.
/// @param holding The GPUs of a process that its variables lie on; 0: they lie on the host.
void run_in_processes(
  const std::shared_ptr<collective_library>& library, size_t holding,
  const std::function<void(strategy&, uint32_t rank, const worker_devices&)>& program) {
  auto thrown = play(processes, [&](played_worker& worker) {
    worker_devices gpus{std::max<size_t>(holding, 1)};
    auto options = worker.options(replicas);
    options.compute_devices = as_given(gpus.computing);
    if (holding > 0) options.variable_devices = as_given(gpus.holding);
    if (library) {
      options.communication.implementation = communication_implementation::nccl;
      options.device_collectives = library;
      options.collective_device = gpus.reducing.front();
    }
    multi_worker_mirrored_strategy strategy{worker.world, options};
    program(strategy, worker.rank, gpus);
  });
  for (const auto& why : thrown)
    CHECK_MESSAGE(why.code == errc::none, why.message);
}

/// The outcome of each process, by rank.
std::vector<placed_outcome> trained_in_processes(giving how,
                                                 const std::shared_ptr<collective_library>& library,
                                                 size_t holding) {
  std::vector<placed_outcome> ends(processes);
  run_in_processes(library, holding, [&](strategy& in, uint32_t rank, const worker_devices&) {
    ends[rank] = trained_placed(in, how);
  });
  return ends;
}

} // namespace

TEST_SUITE("strategies/kinds/worker_variables") {
  TEST_CASE("variables of processes on GPUs come to the bits of those of the host") {
    for (auto how : {giving::all_at_once, giving::in_buckets}) {
      CAPTURE(static_cast<int>(how));
      auto world = world::virtual_time({.seed = 5});
      mirrored_strategy alone{world, {.devices = cpu_devices(processes * replicas)}};
      auto expected = trained_placed(alone, how);
      for (auto holding : {0, 1, 2})
        for (const auto& end : trained_in_processes(how, nullptr, holding))
          CHECK(end == expected);
    }
  }

  TEST_CASE("where devices add between processes, all end with the same bits") {
    for (auto how : {giving::all_at_once, giving::in_buckets}) {
      CAPTURE(static_cast<int>(how));
      auto on_host = trained_in_processes(how, std::make_shared<cpu_collectives>(), 0);
      for (auto holding : {1, 2}) {
        auto ends = trained_in_processes(how, std::make_shared<cpu_collectives>(), holding);
        CHECK(ends[0] == on_host[0]);
        CHECK(ends[1] == ends[0]);
      }
    }
  }

  TEST_CASE("gradients of a narrower dtype on GPUs are added in that of their variable") {
    for (auto how : {giving::all_at_once, giving::in_buckets})
      for (auto holding : {0, 1, 2})
        for (const auto& library :
             {std::shared_ptr<cpu_collectives>{}, std::make_shared<cpu_collectives>()})
          run_in_processes(library, holding, [&](strategy& in, uint32_t, const worker_devices&) {
            CHECK(sum_of_narrow_gradients(in, how) == 2051);
          });
  }

  TEST_CASE("gradients that devices add between processes cross no bus") {
    for (auto holding : {1, 2})
      run_in_processes(std::make_shared<cpu_collectives>(), holding,
                       [](strategy& in, uint32_t, const worker_devices& gpus) {
                         resident_training training{in};
                         training.step(giving::in_buckets); // variable and slots come to the GPUs
                         auto before = gpus.bytes_over_the_bus();
                         for (int i = 0; i < 5; ++i)
                           training.step(giving::in_buckets);
                         training.step(giving::all_at_once);
                         CHECK(gpus.bytes_over_the_bus() == before);
                       });
  }
}

} // namespace worker_variables_test
