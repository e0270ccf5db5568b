// SPDX-License-Identifier: Apache-2.0
// Goal: processes with devices reduce by them when they are to, and come to the values that they
// come to without. Method: processes played by threads, with devices that are parts of the
// processor.
#include "actors/gpu/cpu_collectives.hpp"
#include "actors/gpu/cpu_device.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/leaving_replicas.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

#include <atomic>
#include <cmath>

namespace device_collectives_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// The devices and the library that all processes of a test share.
struct played_devices {
  std::shared_ptr<cpu_collectives> library = std::make_shared<cpu_collectives>();
  std::atomic<uint64_t> uploads{0};

  /// Has each process add up, on two replicas, arrays of its replicas.
  /// @returns The sums, by process and replica.
  std::vector<std::vector<tensor>> sums(uint32_t processes, multi_worker_mirrored_options given) {
    std::vector<std::vector<tensor>> result(processes);
    auto thrown = play(processes, [&](played_worker& worker) {
      auto options = worker.options(2);
      options.communication = given.communication;
      options.fixed_order = given.fixed_order;
      auto device = std::make_shared<cpu_device>(static_cast<int>(worker.rank));
      options.device_collectives = library;
      options.collective_device = device;
      {
        multi_worker_mirrored_strategy strategy{worker.world, options};
        auto all = strategy.run([](replica_context& context) -> task<tensor> {
          auto own = static_cast<float>(context.replica_id_in_sync_group() + 1);
          auto adding = context.all_reduce(reduce_op::sum, make_tensor({2}, {own, 10 * own}));
          auto sum = co_await adding;
          co_return sum;
        });
        for (uint32_t i = 0; i < 2; ++i)
          result[worker.rank].push_back(all[i]);
      }
      uploads += device->uploads();
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
    return result;
  }
};

void check_sums(const std::vector<std::vector<tensor>>& sums, float first) {
  for (const auto& of_process : sums)
    for (const auto& sum : of_process) {
      CHECK(sum.values<float>()[0] == first);
      CHECK(sum.values<float>()[1] == 10 * first);
    }
}

/// Processes with two replicas each, which leave arrays on a GPU of their process, played by a part
/// of the processor; another handle to it is for collectives.
struct leaving_processes {
  multi_worker_mirrored_options given;
  uint32_t first_on_device = 0; ///< Processes before this one have their arrays on the host.

  static constexpr uint32_t processes = 2;

  /// Has each replica call `use(context, own)`. @returns What they came to, and where it was.
  template <class Use>
  std::vector<std::pair<tensor, device>> results(const Use& use) {
    auto library = std::make_shared<cpu_collectives>();
    std::vector<std::pair<tensor, device>> all(2 * processes);
    auto thrown = play(processes, [&](played_worker& worker) {
      auto options = worker.options(2);
      options.communication = given.communication;
      options.fixed_order = given.fixed_order;
      auto gpus = make_playing_gpus(1, 2);
      options.compute_devices = as_given(gpus);
      options.device_collectives = library;
      options.collective_device = make_playing_gpus(1, 1).front();
      auto leaves = worker.rank >= first_on_device;
      multi_worker_mirrored_strategy strategy{worker.world, options};
      auto made = strategy.run([&](replica_context& context) -> task<std::pair<tensor, device>> {
        auto own = sample(dtype::f32, {501}, context.replica_id_in_sync_group());
        if (leaves) {
          auto copying = leaving_replicas::leave(context, own);
          own = co_await copying;
        }
        auto using_it = use(context, own);
        auto result = co_await using_it;
        auto where = result.device();
        auto bringing = context.bring_to_host({&result});
        co_await bringing;
        co_return std::pair{result, where};
      });
      for (uint32_t i = 0; i < 2; ++i)
        all[2 * worker.rank + i] = {made.first.select(i), made.second.select(i)};
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
    return all;
  }

  static std::vector<tensor> samples() {
    std::vector<tensor> values;
    for (uint32_t i = 0; i < 2 * processes; ++i)
      values.push_back(sample(dtype::f32, {501}, i));
    return values;
  }
};

// Whether sums are those of so many samples, but for the order of additions.
void check_close(const tensor& sum, const tensor& expected) {
  REQUIRE(sum.extents() == expected.extents());
  for (size_t i = 0; i < sum.element_count(); ++i)
    CHECK(std::abs(sum.values<float>()[i] - expected.values<float>()[i]) < 1e-3);
}

constexpr device first_gpu{device_kind::cuda, 0};

const std::vector<multi_worker_mirrored_options> by_nccl_and_by_messages{
  {.communication = {.implementation = communication_implementation::nccl}},
  {.fixed_order = false},
  {}};

} // namespace

TEST_SUITE("strategies/reduce/device_collectives") {
  TEST_CASE("arrays on GPUs are reduced between processes, and the result lies where they lay") {
    for (const auto& options : by_nccl_and_by_messages)
      for (auto op : {reduce_op::sum, reduce_op::mean})
        for (uint32_t first_on_device : {0U, 1U}) {
          leaving_processes all{options, first_on_device};
          auto reduced = all.results(
            [op](replica_context& context, tensor own) { return context.all_reduce(op, own); });
          auto expected = reduce_arrays(op, leaving_processes::samples());
          for (size_t i = 0; i < reduced.size(); ++i) {
            check_close(reduced[i].first, expected);
            CHECK(reduced[i].second == (i / 2 < first_on_device ? device{} : first_gpu));
          }
        }
  }

  TEST_CASE("a promised order is kept, and what devices do not reduce goes by messages") {
    for (const auto& options : by_nccl_and_by_messages) {
      leaving_processes all{options};
      auto gathered = all.results([](replica_context& context, tensor own) -> task<tensor> {
        auto gathering = context.all_gather(own, 0);
        auto whole = co_await gathering;
        auto reducing = context.all_reduce(reduce_op::sum, std::pair{own, 1.0});
        auto sum = co_await reducing;
        CHECK(sum.second == 4);
        CHECK(sum.first.device() == first_gpu);
        co_return whole;
      });
      for (const auto& [whole, where] : gathered) {
        CHECK(where == first_gpu);
        CHECK(is_same(whole, cross_device_ops::gather(leaving_processes::samples(), 0)));
      }
    }
    leaving_processes in_order;
    auto sums = in_order.results(
      [](replica_context& context, tensor own) { return context.all_reduce(reduce_op::sum, own); });
    for (const auto& [sum, where] : sums)
      CHECK(is_same(sum, reduce_arrays(reduce_op::sum, leaving_processes::samples())));
  }

  TEST_CASE("merge functions reduce over processes what lies on GPUs") {
    for (const auto& options : by_nccl_and_by_messages) {
      leaving_processes all{options};
      auto given = leaving_processes::samples();
      auto sum = reduce_arrays(reduce_op::sum, given);
      auto merge
        = [&](cross_replica_context& context, distributed_value<tensor> there) -> task<tensor> {
        auto reducing_to = context.reduce_to(reduce_op::sum, there, destinations{"cpu:0"});
        auto wanted = co_await reducing_to;
        check_close(wanted.primary(), sum); // in the host's memory
        std::vector<std::pair<distributed_value<gradient>, destinations>> batch;
        batch.emplace_back(as_gradients(there), destinations{"cpu:1"});
        auto reducing_batch = context.batch_reduce_to(reduce_op::mean, std::move(batch));
        auto means = co_await reducing_batch;
        check_close(std::get<tensor>(means.front().primary()),
                    reduce_arrays(reduce_op::mean, given));
        auto gathering = context.gather(there, 0);
        auto whole = co_await gathering;
        CHECK(whole.device() == first_gpu);
        auto reducing = context.reduce(reduce_op::sum, std::pair{there, whole});
        auto reduced = co_await reducing;
        CHECK(reduced.second.device() == first_gpu);
        co_return reduced.first;
      };
      auto reduced = all.results(
        [&](replica_context& context, tensor own) { return context.merge_call(merge, own); });
      for (const auto& [value, where] : reduced) {
        check_close(value, sum);
        CHECK(where == first_gpu);
      }
    }
  }

  TEST_CASE("gradients on GPUs of several processes reach the owners of all") {
    for (const auto& options : by_nccl_and_by_messages) {
      leaving_processes all{options};
      auto trained = all.results([](replica_context& context, tensor own) -> task<tensor> {
        auto making = context.make_variable("w", zeros({501}));
        auto weights = co_await making;
        auto making_table = context.make_variable("t", zeros({9, 501}));
        auto table = co_await making_table;
        optimizer sgd{rules::sgd{.learning_rate = 1}, {.aggregation = reduce_op::sum}};
        std::vector<gradient_and_variable> both;
        both.push_back({own, weights});
        auto numbers = array({1}, {4}, dtype::i64);
        both.push_back({indexed_slices{numbers, own.reshape({1, 501}), {9, 501}}, table});
        auto applying = sgd.apply_gradients(context, std::move(both));
        co_await applying;
        auto reading = context.read(table);
        auto rows = co_await reading;
        auto reading_weights = context.read(weights);
        auto value = co_await reading_weights;
        check_close(value, rows.slice(4, 5).reshape({501}));
        co_return value;
      });
      auto sum = reduce_arrays(reduce_op::sum, leaving_processes::samples());
      for (const auto& [value, where] : trained)
        check_close(value, changed(zeros({501}), change::subtract, sum).value());
    }
  }

  TEST_CASE("replicas of several processes reduce by devices if that is asked for") {
    played_devices devices;
    auto nccl = communication_implementation::nccl;
    check_sums(devices.sums(3, {.communication = {.implementation = nccl}}), 1 + 2 + 3 + 4 + 5 + 6);
    CHECK(devices.uploads == 3 * 2);
  }

  TEST_CASE("AUTO takes devices where the order of sums is free, and only there") {
    played_devices devices;
    check_sums(devices.sums(2, {}), 1 + 2 + 3 + 4);
    CHECK(devices.uploads == 0);
    check_sums(devices.sums(2, {.fixed_order = false}), 1 + 2 + 3 + 4);
    CHECK(devices.uploads == 2 * 2);
  }

  TEST_CASE("RING is by messages even where there are devices") {
    played_devices devices;
    auto ring = communication_implementation::ring;
    check_sums(devices.sums(2, {.communication = {.implementation = ring}}), 1 + 2 + 3 + 4);
    CHECK(devices.uploads == 0);
  }
}

} // namespace device_collectives_test
