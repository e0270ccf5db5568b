// SPDX-License-Identifier: Apache-2.0
// Goal: processes that have their variables on GPUs train them as those with variables on the host,
// by messages or by devices. Method: processes played by threads, with GPUs that are parts of the
// processor; the same small training in all ways.
#include "strategies/contexts/gradient_buckets.hpp"
#include "tests/strategies/leaving_replicas.hpp"
#include "tests/strategies/placed_job.hpp"
#include "tests/strategies/played_workers.hpp"

namespace worker_variables_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr uint32_t processes = 2;
constexpr uint32_t replicas = 2; // of each

/// How gradients are given.
enum class giving : uint8_t { all_at_once, in_buckets };

/// The GPUs of one process: those of replicas, of variables, and of sums with other processes.
struct worker_devices {
  played_gpu_list computing = make_playing_gpus(1, replicas);
  played_gpu_list holding = make_playing_gpus(1, 2);
  played_gpu_list reducing = make_playing_gpus(1, 1);

  [[nodiscard]] uint64_t bytes_over_the_bus() const {
    uint64_t bytes = 0;
    for (const auto& gpu : {computing[0], holding[0], reducing[0]})
      bytes += gpu->bytes_from_host() + gpu->bytes_to_host();
    return bytes;
  }
};

/// Runs `program` in each process. @param library By which devices reduce; null: messages do.
void run_in_processes(
  const std::shared_ptr<collective_library>& library, bool has_variables_on_gpu,
  const std::function<void(strategy&, uint32_t rank, const worker_devices&)>& program) {
  auto thrown = play(processes, [&](played_worker& worker) {
    worker_devices gpus;
    auto options = worker.options(replicas);
    options.compute_devices = as_given(gpus.computing);
    if (has_variables_on_gpu) options.variable_devices = as_given(gpus.holding);
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

// All but the one that gets rows of some replicas and arrays of others, which processes cannot add;
// in buckets, those that get arrays.
placed_outcome trained(strategy& in, giving how) {
  const auto all = placed_variables(in);
  std::vector<variable> given{all[0], all[3], all[4]};
  if (how == giving::all_at_once) given.push_back(all[1]);
  const optimizer by{placed_plans()[1], {.aggregation = reduce_op::mean}};
  const gradient_buckets buckets{in, given, 1};
  for (int step = 0; step < 5; ++step)
    in.run([&](replica_context& context) -> task<void> {
      auto computing = compute_placed_gradients(context, all);
      auto gradients = co_await computing;
      std::erase_if(gradients,
                    [&](const auto& one) { return std::ranges::count(given, one.variable) == 0; });
      if (how == giving::all_at_once) {
        auto applying = by.apply_gradients(context, std::move(gradients));
        co_await applying;
        co_return;
      }
      auto marker = buckets.begin(context);
      for (const auto& [gradient, of] : gradients)
        marker.ready(of, gradient);
      gradients.clear();
      auto reducing = buckets.reduced(context);
      auto sums = co_await reducing;
      auto applying = by.apply_reduced_gradients(context, std::move(sums));
      co_await applying;
    });
  return outcome_of(in, given);
}

/// What each process ends with.
std::vector<placed_outcome> trained_in_processes(giving how,
                                                 const std::shared_ptr<collective_library>& library,
                                                 bool has_variables_on_gpu) {
  std::vector<placed_outcome> ends(processes);
  run_in_processes(
    library, has_variables_on_gpu,
    [&](strategy& in, uint32_t rank, const worker_devices&) { ends[rank] = trained(in, how); });
  return ends;
}

} // namespace

TEST_SUITE("strategies/kinds/worker_variables") {
  TEST_CASE("variables of processes on GPUs come to the bits of those of the host") {
    for (auto how : {giving::all_at_once, giving::in_buckets}) {
      CAPTURE(static_cast<int>(how));
      auto world = world::virtual_time({.seed = 5});
      mirrored_strategy alone{world, {.devices = cpu_devices(processes * replicas)}};
      auto expected = trained(alone, how);
      for (auto has_variables_on_gpu : {false, true})
        for (const auto& end : trained_in_processes(how, nullptr, has_variables_on_gpu))
          CHECK(end == expected);
    }
  }

  TEST_CASE("where devices add between processes, all end with the same bits") {
    for (auto how : {giving::all_at_once, giving::in_buckets}) {
      CAPTURE(static_cast<int>(how));
      auto on_host = trained_in_processes(how, std::make_shared<cpu_collectives>(), false);
      auto ends = trained_in_processes(how, std::make_shared<cpu_collectives>(), true);
      CHECK(ends[0] == on_host[0]);
      CHECK(ends[1] == ends[0]);
    }
  }

  TEST_CASE("gradients that devices add between processes cross no bus") {
    run_in_processes(std::make_shared<cpu_collectives>(), true,
                     [](strategy& in, uint32_t, const worker_devices& gpus) {
                       auto weights = in.make_variable("w", zeros({1000}));
                       optimizer by{rules::adam{}};
                       gradient_buckets buckets{in, {weights}};
                       auto step = [&](giving how) {
                         in.run([&](replica_context& context) -> task<void> {
                           auto reading = context.read_on_device({weights});
                           auto values = co_await reading;
                           auto work = [values](std::stop_token, compute_stream& on) {
                             return value_or_throw(on.sum(values));
                           };
                           auto computing = context.compute(std::move(work));
                           auto gradient = co_await computing;
                           values.clear();
                           if (how == giving::in_buckets) {
                             buckets.begin(context).ready(weights, gradient);
                             auto reducing = buckets.reduced(context);
                             auto sums = co_await reducing;
                             auto applying = by.apply_reduced_gradients(context, std::move(sums));
                             co_await applying;
                           } else {
                             auto applying = by.apply_gradients(context, gradient, weights);
                             co_await applying;
                           }
                         });
                       };
                       step(giving::in_buckets); // the variable and its slots come to the GPU
                       auto before = gpus.bytes_over_the_bus();
                       for (int i = 0; i < 5; ++i)
                         step(giving::in_buckets);
                       step(giving::all_at_once);
                       CHECK(gpus.bytes_over_the_bus() == before);
                     });
  }
}

} // namespace worker_variables_test
