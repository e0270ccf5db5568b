// SPDX-License-Identifier: Apache-2.0
// Goal: what replicas leave on devices is reduced, gathered and assigned from there, to the bits of
// the host, and comes back to where each had its own. Method: devices that are parts of the
// processor and say that they are GPUs, with arrays that nothing else looks at; and the host's own
// sums.
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/leaving_replicas.hpp"
#include "tests/strategies/small_job.hpp"

#include <map>
#include <tuple>

namespace arrays_on_devices_test {

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<tensor> samples(uint32_t count, dtype type, const shape& extents) {
  std::vector<tensor> values;
  for (uint32_t i = 0; i < count; ++i)
    values.push_back(sample(type, extents, i));
  return values;
}

/// Some arrays and a number, as a struct that shows its parts.
struct outputs {
  tensor logits;
  double loss = 0;

  static auto members(auto& self) { return std::tie(self.logits, self.loss); }
};

} // namespace

TEST_SUITE("strategies/reduce/arrays_on_devices") {
  TEST_CASE("an all_reduce of arrays on GPUs has the host's bits, and its result lies there") {
    for (size_t gpus : {1U, 2U})
      for (uint32_t replicas : {1U, 2U, 3U, 5U}) {
        leaving_replicas all{gpus, replicas};
        for (auto type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64})
          for (const auto& extents : {shape{7, 3}, shape{0}, shape{}, shape{1003}})
            for (auto op : {reduce_op::sum, reduce_op::mean}) {
              auto given = samples(replicas, type, extents);
              auto reduce = [&](replica_context& context, tensor there) {
                return context.all_reduce(op, there);
              };
              auto sums = all.left(given, reduce);
              for (uint32_t i = 0; i < replicas; ++i) {
                CHECK(sums.places[i] == all.place_of(i));
                CHECK(is_same(sums.values[i], reduce_arrays(op, given)));
              }
            }
      }
  }

  TEST_CASE("a result is to be used on the device again, without a copy") {
    leaving_replicas all{1, 3};
    auto given = samples(3, dtype::f32, {501});
    auto reduce = [](replica_context& context, tensor there) -> task<tensor> {
      auto reducing = context.all_reduce(reduce_op::sum, there);
      auto sum = co_await reducing;
      auto work = [sum](std::stop_token, compute_stream& on) {
        const tensor twice[] = {value_or_throw(on.to_device(sum)), sum};
        return value_or_throw(on.sum(twice));
      };
      auto computing = context.compute(std::move(work));
      auto doubled = co_await computing;
      co_return doubled;
    };
    auto sums = all.left(given, reduce);
    CHECK(all.gpus[0]->uploads() == 3); // what the replicas brought
    auto sum = reduce_arrays(reduce_op::sum, given);
    const tensor twice[] = {sum, sum};
    CHECK(is_same(sums.values[2], reduce_arrays(reduce_op::sum, twice)));
  }

  TEST_CASE("a nest may hold arrays of devices and of the host, rows and numbers") {
    for (size_t gpus : {1U, 2U}) {
      leaving_replicas all{gpus, 3};
      auto given = samples(3, dtype::f32, {4, 2});
      using nest_type
        = std::tuple<std::map<std::string, std::vector<tensor>>, outputs, std::optional<gradient>>;
      auto reduce = [&](replica_context& context, tensor there) -> task<tensor> {
        auto id = context.replica_id_in_sync_group();
        auto own = given[id];
        auto numbers = array({4}, {3, 1, 1, static_cast<double>(id)}, dtype::i64);
        nest_type nest{{{"a", {there, own}}, {"b", {there}}},
                       outputs{there, 1.0 + id},
                       gradient{indexed_slices{numbers, there, {9, 2}}}};
        auto reducing = context.all_reduce(reduce_op::mean, std::move(nest));
        auto reduced = co_await reducing;
        auto& [arrays, shown, rows] = reduced;
        CHECK(shown.loss == 2);
        CHECK(is_same(arrays["a"][1], reduce_arrays(reduce_op::mean, given)));
        auto& slices = std::get<indexed_slices>(*rows);
        CHECK(numbers_of(slices.indices) == test::numbers{3, 1, 1, 0, 3, 1, 1, 1, 3, 1, 1, 2});
        CHECK(slices.values.device() == there.device());
        auto bringing = context.bring_to_host({&slices.values, &arrays["a"][0], &arrays["b"][0]});
        co_await bringing;
        auto all_rows = cross_device_ops::gather(given, 0);
        CHECK(is_same(slices.values, divided_sum({&all_rows, 1}, 3)));
        CHECK(is_same(arrays["a"][0], arrays["a"][1]));
        CHECK(is_same(arrays["b"][0], arrays["a"][1]));
        co_return shown.logits;
      };
      auto sums = all.left(given, reduce);
      CHECK(is_same(sums.values[1], reduce_arrays(reduce_op::mean, given)));
      CHECK(sums.places[1] == all.place_of(1));
    }
  }

  TEST_CASE("arrays on devices and on the host are brought together; each result lies where "
            "the replica's own array was") {
    leaving_replicas all{2, 3};
    auto given = samples(3, dtype::f32, {501});
    auto reduce = [&](replica_context& context, tensor there) -> task<tensor> {
      auto id = context.replica_id_in_sync_group();
      auto own = id == 1 ? there : given[id];
      auto reducing = context.all_reduce(reduce_op::sum, own);
      auto sum = co_await reducing;
      auto gathering = context.all_gather(sum, 0);
      auto gathered = co_await gathering;
      CHECK(gathered.device() == sum.device());
      co_return sum;
    };
    auto sums = all.left(given, reduce);
    CHECK(sums.places[0] == device{});
    CHECK(sums.places[1] == all.place_of(1));
    for (const auto& sum : sums.values)
      CHECK(is_same(sum, reduce_arrays(reduce_op::sum, given)));
  }

  TEST_CASE("arrays on GPUs are gathered along any axis, whatever their dtype") {
    for (size_t gpus : {1U, 2U})
      for (uint32_t replicas : {1U, 3U}) {
        leaving_replicas all{gpus, replicas};
        for (auto type : {dtype::f32, dtype::i64, dtype::bf16})
          for (int64_t axis : {0, 1, -1}) {
            std::vector<tensor> given;
            for (uint32_t i = 0; i < replicas; ++i) {
              std::vector<int64_t> dims{2, 3, 4};
              dims[static_cast<size_t>(axis < 0 ? 2 : axis)] = i; // of one: nothing
              given.push_back(sample(type, shape{dims}, i));
            }
            auto gather = [&](replica_context& context, tensor there) {
              return context.all_gather(there, axis);
            };
            auto whole = all.left(given, gather);
            for (uint32_t i = 0; i < replicas; ++i) {
              CHECK(is_same(whole.values[i], cross_device_ops::gather(given, axis)));
              CHECK(whole.places[i] == all.place_of(i));
            }
          }
      }
  }

  TEST_CASE("the gradient of an all_gather is a part of the sum, on the device") {
    leaving_replicas all{1, 2};
    auto given = samples(2, dtype::f32, {4, 3});
    auto gather = [](replica_context& context, tensor there) {
      auto extent = context.replica_id_in_sync_group() == 0 ? 1 : 3;
      return context.all_gather_gradient(there, 0, extent);
    };
    auto parts = all.left(given, gather);
    auto sum = reduce_arrays(reduce_op::sum, given);
    CHECK(is_same(parts.values[0], sum.slice(0, 1)));
    CHECK(is_same(parts.values[1], sum.slice(1, 4)));
    CHECK(parts.places[1] == all.place_of(1));
  }

  TEST_CASE("the cross-replica reduce and gather leave their result on the device") {
    for (size_t gpus : {1U, 2U}) {
      leaving_replicas all{gpus, 3};
      auto given = samples(3, dtype::f64, {5, 2});
      auto there = all.distributed(given);
      for (auto op : {reduce_op::sum, reduce_op::mean}) {
        auto sum = all.strategy.reduce(op, there);
        CHECK(sum.device() == all.place_of(0));
        CHECK(is_same(all.on_host(sum), reduce_arrays(op, given)));
        auto by_axis = all.strategy.reduce(op, there, 0); // by way of the host
        CHECK(by_axis.device() == all.place_of(0));
        auto on_host = distributed_value<tensor>::per_replica(given);
        CHECK(is_same(all.on_host(by_axis), all.strategy.reduce(op, on_host, 0)));
      }
      auto whole = all.strategy.gather(there, 1);
      CHECK(whole.device() == all.place_of(0));
      CHECK(is_same(all.on_host(whole), cross_device_ops::gather(given, 1)));
    }
  }

  TEST_CASE("rows that lie on GPUs are reduced to where they are wanted, by way of the host") {
    leaving_replicas all{2, 2};
    auto given = samples(2, dtype::f32, {2, 3});
    auto there = all.distributed(given);
    std::vector<gradient> rows, on_host;
    for (uint32_t i = 0; i < 2; ++i) {
      auto numbers = array({2}, {1, static_cast<double>(i)}, dtype::i64);
      rows.emplace_back(indexed_slices{numbers, there[i], {4, 3}});
      on_host.emplace_back(indexed_slices{numbers, given[i], {4, 3}});
    }
    auto reduced = all.strategy.extended().reduce_to(
      reduce_op::mean, distributed_value<gradient>::per_replica(rows), destinations{"cpu:0"});
    auto& got = std::get<indexed_slices>(reduced.primary());
    auto expected = std::get<indexed_slices>(reduce_components(reduce_op::mean, on_host));
    CHECK(is_same(got.values, expected.values));
    CHECK(is_same(got.indices, expected.indices));
  }

  TEST_CASE("the mean of rows on GPUs has the host's bits, of integers, too") {
    for (auto type : {dtype::f32, dtype::f16, dtype::i32, dtype::i64}) {
      leaving_replicas all{1, 2};
      auto given = samples(2, type, {2, 3});
      auto numbers = array({2}, {1, 3}, dtype::i64);
      auto reduce = [&](replica_context& context, tensor there) -> task<tensor> {
        gradient own = indexed_slices{numbers, there, {4, 3}};
        auto reducing = context.all_reduce(reduce_op::mean, own);
        auto mean = co_await reducing;
        co_return std::get<indexed_slices>(mean).values;
      };
      auto means = all.left(given, reduce);
      std::vector<gradient> on_host;
      for (const auto& values : given)
        on_host.emplace_back(indexed_slices{numbers, values, {4, 3}});
      auto expected = std::get<indexed_slices>(reduce_components(reduce_op::mean, on_host));
      CHECK(is_same(means.values[1], expected.values));
    }
  }

  TEST_CASE("one array for all replicas is its own mean, and has no sum, wherever it lies") {
    leaving_replicas all{1, 2};
    auto one = distributed_value<tensor>::mirrored(
      all.distributed(samples(2, dtype::f32, {3})).primary(), 2);
    CHECK(
      is_same(all.on_host(all.strategy.reduce(reduce_op::mean, one)), sample(dtype::f32, {3}, 0)));
    auto refused = refusal_of([&] { static_cast<void>(all.strategy.reduce(reduce_op::sum, one)); });
    CHECK(refused.code == errc::invalid_argument);
  }

  TEST_CASE("variables are changed by what lies on GPUs as by what lies on the host") {
    for (auto aggregation : {variable_aggregation::sum, variable_aggregation::mean,
                             variable_aggregation::only_first_replica, variable_aggregation::none})
      for (auto how : {change::assign, change::add}) {
        std::vector<tensor> results;
        for (bool on_devices : {true, false}) {
          leaving_replicas all{2, 3};
          auto target = all.strategy.make_variable("v", zeros({501}), {.aggregation = aggregation});
          auto given = samples(3, dtype::f32, {501});
          auto change_it = [&](replica_context& context, tensor there) {
            auto value = on_devices ? there : given[context.replica_id_in_sync_group()];
            return how == change::add ? context.assign_add(target, value)
                                      : context.assign(target, value);
          };
          results.push_back(all.left(given, change_it).values[2]);
        }
        CHECK(is_same(results[0], results[1]));
      }
  }

  TEST_CASE("a variable may begin with what lies on a GPU, if a replica makes it") {
    leaving_replicas all{1, 2};
    auto given = samples(2, dtype::f32, {5});
    auto make = [](replica_context& context, tensor there) -> task<tensor> {
      auto making = context.make_variable("v", there);
      auto made = co_await making;
      auto reading = context.read(made);
      auto value = co_await reading;
      co_return value;
    };
    CHECK(is_same(all.left(given, make).values[1], given[0]));
    auto there = all.distributed(given).primary();
    auto refused = refusal_of([&] { static_cast<void>(all.strategy.make_variable("w", there)); });
    CHECK(refused.message.find("a value of shape [5] lies on gpu:0; have the stream copy") == 0);
  }

  TEST_CASE("rows that lie on GPUs are scattered, and the strategy assigns from there") {
    std::vector<tensor> results;
    for (bool on_devices : {true, false}) {
      leaving_replicas all{1, 3};
      auto target = all.strategy.make_variable("v", zeros({5, 2}),
                                               {.aggregation = variable_aggregation::sum});
      auto given = samples(3, dtype::f32, {3, 2});
      auto change_it = [&](replica_context& context, tensor there) {
        auto id = context.replica_id_in_sync_group();
        indexed_slices rows{array({3}, {0, 4, static_cast<double>(id)}, dtype::i64),
                            on_devices ? there : given[id],
                            {5, 2}};
        return context.scatter_add(target, rows);
      };
      results.push_back(all.left(given, change_it).values[0]);
      auto whole = samples(3, dtype::f32, {5, 2});
      auto there = all.distributed(whole).primary();
      all.strategy.assign_add(target, on_devices ? there : whole.front());
      results.push_back(all.strategy.read(target));
    }
    CHECK(is_same(results[0], results[2]));
    CHECK(is_same(results[1], results[3]));
  }

  TEST_CASE("gradients on GPUs, dense ones and rows, come to the owner with its bits") {
    for (uint32_t batches : {1U, 2U})
      for (size_t gpus : {1U, 2U}) {
        std::vector<tensor> results;
        for (auto on_devices : {3U, 0U, 1U}) {
          leaving_replicas all{gpus, 3};
          auto dense = all.strategy.make_variable("d", zeros({3, 2}));
          auto table = all.strategy.make_variable("t", zeros({9, 2}));
          optimizer adam{rules::adam{}, {.accumulation_steps = batches}};
          auto given = samples(3, dtype::f32, {3, 2});
          auto apply = [&](replica_context& context, tensor there) -> task<tensor> {
            auto id = context.replica_id_in_sync_group();
            auto own = id < on_devices ? there : given[id];
            indexed_slices rows{array({3}, {7, 2, static_cast<double>(id)}, dtype::i64), own, {}};
            if (id == 2) rows.indices = array({3}, {2, 2, 8}, dtype::i32);
            for (uint32_t i = 0; i < batches; ++i) {
              std::vector<gradient_and_variable> both;
              both.push_back({own, dense});
              both.push_back({rows, table});
              auto applying = adam.apply_gradients(context, std::move(both));
              co_await applying;
            }
            co_return own;
          };
          static_cast<void>(all.left(given, apply));
          results.push_back(all.strategy.read(dense));
          results.push_back(all.strategy.read(table));
        }
        for (size_t i = 2; i < results.size(); ++i)
          CHECK(is_same(results[i], results[i % 2]));
      }
  }

  TEST_CASE("rows on GPUs that do not fit their variable are refused by its owner") {
    leaving_replicas all{1, 2};
    auto table = all.strategy.make_variable("t", zeros({9, 2}));
    optimizer adam{rules::adam{}};
    auto apply = [&](replica_context& context, tensor there) -> task<tensor> {
      gradient rows = indexed_slices{array({3}, {0, 9, 1}, dtype::i64), there, {9, 2}};
      auto applying = adam.apply_gradients(context, rows, table);
      co_await applying;
      co_return there;
    };
    auto refused = refusal_of([&] {
      static_cast<void>(all.left(samples(2, dtype::f32, {3, 2}), apply));
    });
    CHECK(refused.code == errc::invalid_argument);
    CHECK_MESSAGE(refused.message.find("exceeded limits of shape; index is 9") != std::string::npos,
                  refused.message);
  }

  TEST_CASE("arrays that have gaps, do not fit together, or meet no GPU are refused in one line") {
    leaving_replicas all{1, 2};
    auto refusal = [&](const std::vector<tensor>& given, auto use) {
      return refusal_of([&] { static_cast<void>(all.left(given, use)); });
    };
    auto turned
      = refusal(samples(2, dtype::f32, {3, 2}), [](replica_context& context, tensor there) {
          return context.all_reduce(reduce_op::sum, there.transpose());
        });
    CHECK(turned.message.find("the value of replica 0, of shape [2, 3], lies on gpu:0 with gaps")
          == 0);
    std::vector<tensor> unlike{zeros({3}), zeros({4})};
    auto reduce = [](replica_context& context, tensor there) {
      return context.all_reduce(reduce_op::sum, there);
    };
    CHECK(refusal(unlike, reduce).message.find("replica 1 has a value of shape [4]") == 0);
    auto gather
      = [](replica_context& context, tensor there) { return context.all_gather(there, 1); };
    CHECK(refusal(unlike, gather).message.find("`axis` = 1 out of range") == 0);
    auto reduce_rows = [](replica_context& context, tensor there) -> task<tensor> {
      auto own_count = 2 + 2 * static_cast<int64_t>(context.replica_id_in_sync_group());
      indexed_slices rows{zeros({own_count}, dtype::i64), there, {9, 2}}; // as many as rows, in all
      auto reducing = context.all_reduce(reduce_op::sum, rows);
      auto sum = co_await reducing;
      co_return sum.values;
    };
    CHECK(refusal(samples(2, dtype::f32, {3, 2}), reduce_rows)
            .message.find("replica 0 has rows with numbers of shape [2] and values of shape [3, 2]")
          == 0);
    auto there = all.distributed(samples(2, dtype::f32, {3}));
    mirrored_strategy without{all.world, {.devices = cpu_devices(2)}};
    auto elsewhere = refusal_of([&] { static_cast<void>(without.reduce(reduce_op::sum, there)); });
    CHECK(elsewhere.message.find("lies on gpu:0; have the stream copy it") != std::string::npos);
  }

  TEST_CASE("a device that is lost, or has no memory, fails the reduction and is named") {
    for (bool is_lost : {true, false}) {
      leaving_replicas all{1, 2, 4096};
      auto reduce = [&](replica_context& context, tensor there) -> task<tensor> {
        if (is_lost) all.gpus[0]->lose({errc::unavailable, "CUDA error 700"});
        auto reducing = context.all_reduce(reduce_op::sum, there);
        auto sum = co_await reducing;
        co_return sum;
      };
      auto refused
        = refusal_of([&] { static_cast<void>(all.left(samples(2, dtype::f32, {500}), reduce)); });
      CHECK(refused.code == (is_lost ? errc::unavailable : errc::resource));
      CHECK(refused.message.find("gpu:0") != std::string::npos);
    }
  }

  TEST_CASE("a job takes gradients that its replicas leave on a GPU") {
    std::vector<tensor> results;
    for (bool on_devices : {true, false}) {
      auto gpus = make_playing_gpus(1, 3);
      auto world = world::virtual_time({.seed = 3});
      parameter_server_strategy strategy{world, {.replicas = 3, .compute_devices = as_given(gpus)}};
      auto weights = strategy.make_variable("w", zeros({501}));
      auto table = strategy.make_variable("t", zeros({9, 2}));
      sync_replicas_optimizer optimizer{rules::momentum{.learning_rate = 0.1}, {2, 3}};
      auto step = [&](replica_context& context) -> task<void> {
        auto own = sample(dtype::f32, {501}, static_cast<uint32_t>(context.iteration()));
        auto part = own.slice(0, 4).reshape({2, 2});
        auto work = [=](std::stop_token, compute_stream& on) {
          if (!on_devices) return std::pair{own, part};
          return std::pair{value_or_throw(on.to_device(own)), value_or_throw(on.to_device(part))};
        };
        auto computing = context.compute(std::move(work));
        auto left = co_await computing;
        std::vector<gradient_and_variable> both;
        both.push_back({left.first, weights});
        both.push_back(
          {indexed_slices{array({2}, {5, 5}, dtype::i64), left.second, {9, 2}}, table});
        auto applying = optimizer.apply_gradients(context, std::move(both));
        co_await applying;
      };
      training_options options{.steps = 7};
      options.pace = [](uint32_t, uint64_t, job_time) { return std::chrono::milliseconds{100}; };
      auto seen = play(strategy, optimizer, step, options);
      CHECK(seen.report.step == 7);
      results.push_back(strategy.read(weights));
      results.push_back(strategy.read(table));
    }
    CHECK(is_same(results[0], results[2]));
    CHECK(is_same(results[1], results[3]));
  }
}

} // namespace arrays_on_devices_test
