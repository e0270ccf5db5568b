// SPDX-License-Identifier: Apache-2.0
// Goal: a GPU adds what several replicas leave there, and one that has no memory for a reduction
// makes the next. Method: an emulated GPU with memory that the host cannot read; it is starved, and
// collectives count their calls.
#include "actors/gpu/cuda_device.hpp"
#include "kernels/math/elementwise.hpp"
#include "messages/mapped.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/conditional_accumulator.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/reduce/hierarchical_copy_all_reduce.hpp"
#include "strategies/reduce/nccl_all_reduce.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A group of one: its sum is what it brings.
class lone_participant final : public collective_participant {
public:
  explicit lone_participant(size_t& asked) : asked_(asked) {}

  [[nodiscard]] expected<bool> is_ready() override { return !is_aborted_; }

  [[nodiscard]] expected<void> ask(std::span<const device_collective> what,
                                   compute_stream& on) override {
    ++asked_;
    const auto& context = dynamic_cast<cuda_stream&>(on).context();
    auto output = what[0].output;
    if (output.data() != what[0].input.data())
      cuda::copy<float>(context, what[0].input.values<float>(on.where()),
                        output.mutable_values<float>(on.where()));
    return context.status();
  }

  void abort() override { is_aborted_ = true; }

private:
  size_t& asked_;
  bool is_aborted_ = false;
};

struct lone_collectives final : collective_library {
  [[nodiscard]] std::string_view name() const override { return "lone"; }

  [[nodiscard]] expected<collective_id> make_id() override { return collective_id{}; }

  [[nodiscard]] expected<std::unique_ptr<collective_participant>>
  join(const collective_id&, uint32_t, uint32_t, compute_device&) override {
    return std::make_unique<lone_participant>(asked);
  }

  size_t asked = 0;
};

std::shared_ptr<compute_device> gpu(int index) {
  return value_or_throw(open_cuda_device(index, 1));
}

device_values two_values() {
  return {{make_tensor({3}, {1, 2, 3}), make_tensor({3}, {10, 20, 30})}, {"gpu:0", "gpu:1"}};
}

float third_of_sum(const cross_device_ops& ops) {
  auto values = two_values();
  auto sum = ops.reduce(reduce_op::sum, values, destinations{values.devices});
  return std::get<tensor>(sum).values<float>()[2];
}

/// Three replicas that share one GPU: what each computes stays there.
struct sharing_replicas {
  static constexpr uint32_t count = 3;

  sharing_replicas()
    : strategy(world, {.devices = cpu_devices(count),
                       .compute_devices = {value_or_throw(open_cuda_device(0, count))},
                       .gpus = {.open = open_some}}) {}

  static expected<std::vector<std::shared_ptr<compute_device>>>
  open_some(std::span<const device> named, uint32_t) {
    return mapped(named, [&](const auto& one) { return gpu(one.index); });
  }

  /// On the GPU, a part for each replica.
  distributed_value<tensor> left_there(dtype type, int64_t size, bool is_turned = false) {
    return strategy.run([=](replica_context& context) -> task<tensor> {
      auto own = sample(type, {2, size}, context.replica_id_in_sync_group());
      auto work
        = [own](std::stop_token, compute_stream& on) { return value_or_throw(on.to_device(own)); };
      auto computing = context.compute(std::move(work));
      auto there = co_await computing;
      co_return is_turned ? there.transpose() : there;
    });
  }

  static std::vector<tensor> samples(dtype type, int64_t size) {
    std::vector<tensor> values;
    for (uint32_t i = 0; i < count; ++i)
      values.push_back(sample(type, {2, size}, i));
    return values;
  }

  tensor reduced(reduce_op op, const distributed_value<tensor>& value) {
    return strategy.extended().reduce_to(op, value, "cpu:0").primary();
  }

  troupe::world world = world::threads({.seed = 3, .threads = 2});
  mirrored_strategy strategy;
};

} // namespace

TEST_SUITE("strategies/reduce/emulated_reduction") {
  TEST_CASE("a GPU adds the values that several replicas left on it, to the bits of the host") {
    sharing_replicas replicas;
    for (auto type : {dtype::f32, dtype::f64})
      for (auto op : {reduce_op::sum, reduce_op::mean}) {
        auto there = replicas.left_there(type, 501);
        REQUIRE(there.primary().device().kind == device_kind::cuda);
        auto kernels = emulated::kernels_run(), pageable = emulated::pageable_copies();
        auto sum = replicas.reduced(op, there);
        CHECK(emulated::kernels_run() == kernels + 1);
        CHECK(emulated::pageable_copies() == pageable);
        CHECK(is_same(sum, reduce_arrays(op, sharing_replicas::samples(type, 501))));
      }
  }

  TEST_CASE("values of the host are added there, and no GPU is asked") {
    sharing_replicas replicas;
    auto values = sharing_replicas::samples(dtype::f32, 501);
    auto pinned = emulated::pinned_bytes();
    auto sum = replicas.reduced(reduce_op::sum, distributed_value<tensor>::per_replica(values));
    CHECK(emulated::pinned_bytes() == pinned);
    CHECK(is_same(sum, reduce_arrays(reduce_op::sum, values)));
  }

  TEST_CASE("a batch may be of both, of several dtypes, and wanted anywhere") {
    sharing_replicas replicas;
    std::vector<std::pair<distributed_value<gradient>, destinations>> batch;
    std::vector<tensor> sums;
    auto all = destinations{cpu_devices(sharing_replicas::count)};
    for (auto type : {dtype::f32, dtype::i64, dtype::bf16, dtype::f64, dtype::f32})
      for (const auto& to : {all, destinations{"cpu:1"}}) {
        auto size = static_cast<int64_t>(batch.size() * 7);
        batch.emplace_back(as_gradients(replicas.left_there(type, size)), to);
        auto values = sharing_replicas::samples(type, size);
        batch.emplace_back(as_gradients(distributed_value<tensor>::per_replica(values)), to);
        sums.insert(sums.end(), 2, reduce_arrays(reduce_op::sum, values));
      }
    for (int64_t bytes : {0, 100}) {
      auto reduced = replicas.strategy.extended().batch_reduce_to(reduce_op::sum, batch,
                                                                  {.bytes_per_pack = bytes});
      REQUIRE(reduced.size() == sums.size());
      for (size_t i = 0; i < sums.size(); ++i)
        CHECK(is_same(std::get<tensor>(reduced[i].primary()), sums[i]));
    }
  }

  TEST_CASE("gradients that replicas leave on their GPU come to the owner as one, with its bits") {
    sharing_replicas replicas;
    auto trained = [&](uint32_t on_host, reduce_op aggregation) {
      auto weights = replicas.strategy.make_variable(
        fmt::format("w{}{}", on_host, to_string(aggregation)), zeros({2, 501}));
      optimizer optimizer{rules::adam{}, {.aggregation = aggregation}};
      replicas.strategy.run([&](replica_context& context) -> task<void> {
        auto id = context.replica_id_in_sync_group();
        auto own = sample(dtype::f32, {2, 501}, id);
        auto work = [=](std::stop_token, compute_stream& on) {
          return id < on_host ? own : value_or_throw(on.to_device(own));
        };
        auto computing = context.compute(std::move(work));
        auto gradient = co_await computing;
        auto applying = optimizer.apply_gradients(context, gradient, weights);
        co_await applying;
      });
      return replicas.strategy.read(weights);
    };
    for (auto aggregation : {reduce_op::sum, reduce_op::mean}) {
      auto by_owner = trained(sharing_replicas::count, aggregation);
      auto kernels = emulated::kernels_run();
      CHECK(is_same(trained(0, aggregation), by_owner));
      CHECK(emulated::kernels_run() == kernels + 1);
      CHECK(is_same(trained(1, aggregation), by_owner)); // one of them is brought there
    }
  }

  TEST_CASE("an all_reduce and an all_gather are made on the GPU that replicas share") {
    sharing_replicas replicas;
    auto count = sharing_replicas::count;
    for (auto type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i64})
      for (auto op : {reduce_op::sum, reduce_op::mean})
        for (int64_t size : {0, 1, 501}) {
          auto pageable = emulated::pageable_copies();
          auto made = replicas.strategy.run([&](replica_context& context) -> task<tensor> {
            auto own = sample(type, {2, size}, context.replica_id_in_sync_group());
            auto work = [own](std::stop_token, compute_stream& on) {
              return value_or_throw(on.to_device(own));
            };
            auto computing = context.compute(std::move(work));
            auto there = co_await computing;
            auto reducing = context.all_reduce(op, std::pair{there, 1.0});
            auto reduced = co_await reducing;
            CHECK(reduced.first.device().kind == device_kind::cuda);
            auto gathering = context.all_gather(reduced.first, 1); // on the device again
            auto gathered = co_await gathering;
            CHECK(gathered.device().kind == device_kind::cuda);
            auto bringing = context.bring_to_host({&gathered});
            co_await bringing;
            co_return gathered;
          });
          if (type != dtype::i64) CHECK(emulated::pageable_copies() == pageable);
          auto sum = reduce_arrays(op, sharing_replicas::samples(type, size));
          auto whole = cross_device_ops::gather(std::vector<tensor>(count, sum), 1);
          for (uint32_t i = 0; i < count; ++i)
            CHECK(is_same(made.select(i), whole));
        }
  }

  TEST_CASE("rows that replicas leave on their GPU are combined there, to the owner's bits") {
    sharing_replicas replicas;
    auto trained = [&](uint32_t on_host, dtype type) {
      auto table = replicas.strategy.make_variable(fmt::format("t{}{}", on_host, to_string(type)),
                                                   zeros({9, 5}, type));
      optimizer adam{rules::adam{}};
      replicas.strategy.run([&](replica_context& context) -> task<void> {
        auto id = context.replica_id_in_sync_group();
        auto rows = sample(type, {id, 5}, id); // replica 0 has none
        auto work = [=](std::stop_token, compute_stream& on) {
          return id < on_host ? rows : value_or_throw(on.to_device(rows));
        };
        auto computing = context.compute(std::move(work));
        auto there = co_await computing;
        auto numbers = array({id}, {7, 3}, dtype::i64);
        if (id == 2) numbers = array({2}, {3, 3}, dtype::i64);
        gradient given = indexed_slices{numbers, there, {9, 5}};
        auto applying = adam.apply_gradients(context, given, table);
        co_await applying;
      });
      return replicas.strategy.read(table);
    };
    for (auto type : {dtype::f32, dtype::f64}) {
      auto by_owner = trained(sharing_replicas::count, type);
      CHECK(by_owner.element_count() == 45);
      auto kernels = emulated::kernels_run();
      CHECK(is_same(trained(0, type), by_owner));
      CHECK(emulated::kernels_run() == kernels + 1);
      CHECK(is_same(trained(2, type), by_owner)); // some of them are brought there
    }
  }

  TEST_CASE("values on a GPU are reduced, gathered and assigned outside of replicas, too") {
    sharing_replicas replicas;
    auto there = replicas.left_there(dtype::f32, 5);
    auto given = sharing_replicas::samples(dtype::f32, 5);
    auto sum = replicas.strategy.reduce(reduce_op::sum, there);
    auto whole = replicas.strategy.gather(there, 0);
    CHECK(sum.device().kind == device_kind::cuda);
    auto weights = replicas.strategy.make_variable("w", zeros({2, 5}));
    auto rows = replicas.strategy.make_variable("r", zeros({6, 5}));
    CHECK(is_same(replicas.strategy.assign(weights, sum), reduce_arrays(reduce_op::sum, given)));
    CHECK(is_same(replicas.strategy.assign(rows, whole), cross_device_ops::gather(given, 0)));
  }

  TEST_CASE("a value on a GPU that the host is to look at is refused in one line") {
    sharing_replicas replicas;
    auto there = replicas.left_there(dtype::f32, 5);
    auto gathered = refusal_of([&] {
      auto parts = there.local_results();
      static_cast<void>(cross_device_ops::gather(parts, 0));
    });
    CHECK(gathered.code == errc::invalid_argument);
    CHECK(gathered.message.find("the value of replica 0 lies on gpu:0, and is to be combined on "
                                "the host")
          == 0);
    conditional_accumulator collects{replicas.strategy.world(), {.type = dtype::f32}};
    auto given = refusal_of([&] { static_cast<void>(collects.apply_grad(there.primary(), 0)); });
    CHECK(given.code == errc::invalid_argument);
    CHECK(given.message.find("a value of shape [2, 5] lies on gpu:0; have the stream") == 0);
    auto turned = refusal_of([&] {
      static_cast<void>(replicas.reduced(reduce_op::sum, replicas.left_there(dtype::f32, 5, true)));
    });
    CHECK(turned.code == errc::invalid_argument);
    CHECK(turned.message.find("replica 0, of shape [5, 2], lies on gpu:0 with gaps")
          != std::string::npos);
  }

  TEST_CASE("after a reduction without memory of the device comes one with it") {
    for (bool by_nccl : {true, false}) {
      auto library = std::make_shared<lone_collectives>();
      std::unique_ptr<cross_device_ops> ops;
      if (by_nccl)
        ops = std::make_unique<nccl_all_reduce>(std::vector{gpu(0)}, library);
      else
        ops = std::make_unique<hierarchical_copy_all_reduce>(std::vector{gpu(0), gpu(1)});
      emulated::set_memory_bytes(emulated::device_bytes());
      auto refused = refusal_of([&] { static_cast<void>(third_of_sum(*ops)); });
      emulated::set_memory_bytes(size_t{1} << 30);
      CHECK(refused.code == errc::resource);
      CHECK(library->asked == 0);
      CHECK(third_of_sum(*ops) == 33);
    }
  }

  TEST_CASE("no device is asked before there is memory of the host for the result") {
    auto library = std::make_shared<lone_collectives>();
    nccl_all_reduce ops{{gpu(0)}, library};
    emulated::set_pinned_bytes(0);
    auto refused = refusal_of([&] { static_cast<void>(third_of_sum(ops)); });
    emulated::set_pinned_bytes(size_t{1} << 30);
    CHECK(refused.code == errc::resource);
    CHECK(library->asked == 0);
    CHECK(third_of_sum(ops) == 33);
  }
}
