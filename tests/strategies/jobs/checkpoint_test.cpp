// SPDX-License-Identifier: Apache-2.0
// Goal: what is saved under one strategy goes on under another. Method: files in a scratch folder.
#include "actors/checkpoint/safetensors_file.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/exponential_moving_average.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/small_job.hpp"

#include <fmt/format.h>
#include <fstream>

namespace checkpoint_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr variable_options total{.synchronization = variable_synchronization::on_read,
                                 .aggregation = variable_aggregation::sum};

void step(strategy& strategy, const optimizer& with, const variable& weights) {
  strategy.run([=](replica_context& context) -> task<void> {
    auto applying = with.apply_gradients(context, make_tensor({1}, {1}), weights);
    co_await applying;
  });
}

float number_in(strategy& strategy, const variable& source) {
  return strategy.read(source).values<float>()[0];
}

} // namespace

TEST_SUITE("strategies/jobs/checkpoint") {
  TEST_CASE("a damaged checkpoint is passed over, and refused if no other is there") {
    scratch_folder folder;
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    auto weights = strategy.make_variable("w", zeros({1}));
    save_checkpoint(strategy, folder.path(), 1);
    strategy.assign(weights, 5);
    save_checkpoint(strategy, folder.path(), 2);
    for (auto step : {2, 1}) {
      auto file = folder / fmt::format("checkpoint-{}.safetensors", step);
      auto bytes = content(file);
      bytes.resize(bytes.size() - 5);
      write(file, bytes);
      if (step == 2) {
        CHECK(restore_checkpoint(strategy, folder.path()) == 1);
        CHECK(number_in(strategy, weights) == 0);
      }
    }
    auto refused
      = refusal_of([&] { static_cast<void>(restore_checkpoint(strategy, folder.path())); });
    CHECK(refused.code == errc::malformed);
    CHECK(
      refused.message.starts_with("no checkpoint in " + folder.path().string() + " is whole: "));
  }

  TEST_CASE("variables and slots go on under whatever strategy") {
    scratch_folder folder;
    auto world = world::virtual_time();
    optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
    {
      one_device_strategy strategy{world};
      auto weights = strategy.make_variable("w", zeros({1}));
      step(strategy, momentum, weights);
      save_checkpoint(strategy, folder.path(), 1);
    }
    for_every_strategy([&](troupe::strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      CHECK(restore_checkpoint(strategy, folder.path()) == 1);
      CHECK(number_in(strategy, weights) == -1);
      optimizer same{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
      step(strategy, same, weights);
      CHECK(number_in(strategy, weights) == -2.5); // the velocity was saved, too
    });
  }

  TEST_CASE("an optimizer in use goes on from a checkpoint of before its first update") {
    for_every_strategy([](troupe::strategy& strategy) {
      scratch_folder folder;
      auto weights = strategy.make_variable("w", zeros({1}));
      optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
      save_checkpoint(strategy, folder.path(), 0);
      step(strategy, momentum, weights);
      CHECK(restore_checkpoint(strategy, folder.path()) == 0);
      for (auto expected : {-1.0F, -2.5F}) {
        step(strategy, momentum, weights);
        CHECK(number_in(strategy, weights) == expected);
      }
    });
  }

  TEST_CASE("an optimizer in use begins with slots of its own where another's are restored") {
    for_every_strategy([](troupe::strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
      optimizer adagrad{rules::adagrad{.learning_rate = 1, .initial_accumulator_value = 99},
                        {reduce_op::mean}};
      step(strategy, momentum, weights);
      auto saved = take_snapshot(strategy, 1);
      step(strategy, adagrad, weights);
      restore_snapshot(strategy, saved);
      step(strategy, adagrad, weights); // which has as many slots
      CHECK(number_in(strategy, weights) == doctest::Approx(-1.1));
      CHECK(take_snapshot(strategy, 2).variables[0].state.optimizer == "adagrad");
      restore_snapshot(strategy, saved);
      step(strategy, momentum, weights);
      CHECK(number_in(strategy, weights) == -2.5);
    });
  }

  TEST_CASE("an average goes on from a checkpoint of before its first update") {
    for_every_strategy([](troupe::strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({1}));
      exponential_moving_average average{0.5};
      update_plan plan{.rule = rules::sgd{.learning_rate = 1}, .average = average.settings()};
      optimizer averaging{plan, {reduce_op::mean}};
      auto saved = take_snapshot(strategy, 0);
      step(strategy, averaging, weights);
      restore_snapshot(strategy, saved);
      step(strategy, averaging, weights);
      auto shadow = average.average(strategy, weights);
      REQUIRE(shadow);
      CHECK(numbers_of(*shadow) == numbers{-0.5});
    });
  }

  TEST_CASE("copies that add up are saved as their sum, and share it when it is restored") {
    scratch_folder folder;
    auto world = world::virtual_time();
    mirrored_strategy two{world, {cpu_devices(2)}};
    auto seen = two.make_variable("seen", zeros({1}), total);
    two.run([=](replica_context& context) -> task<void> {
      auto adding = context.assign_add(seen, 1.0 + context.replica_id_in_sync_group());
      co_await adding;
    });
    save_checkpoint(two, folder.path(), 7);
    mirrored_strategy four{world, {cpu_devices(4)}};
    auto restored = four.make_variable("seen", zeros({1}), total);
    CHECK(restore_checkpoint(four, folder.path()) == 7);
    CHECK(number_in(four, restored) == 3);
    auto own = four.run([=](replica_context& context) -> task<float> {
      auto reading = context.read(restored);
      auto value = co_await reading;
      co_return value.values<float>()[0];
    });
    CHECK(own[3] == 0.75F);
  }

  TEST_CASE("a variable that is made after its state was restored begins with it, slots and all") {
    scratch_folder folder;
    auto world = world::virtual_time();
    optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
    {
      one_device_strategy strategy{world};
      auto weights = strategy.make_variable("w", zeros({1}));
      static_cast<void>(strategy.make_variable("other", make_tensor({2}, {3, 4})));
      step(strategy, momentum, weights);
      save_checkpoint(strategy, folder.path(), 1);
    }
    for_every_strategy([&](troupe::strategy& strategy) {
      CHECK(restore_checkpoint(strategy, folder.path()) == 1);
      CHECK(strategy.extended().deferred().names() == std::vector<std::string>{"other", "w"});
      auto weights = strategy.make_variable("w", zeros({1}));
      CHECK(strategy.extended().deferred().names() == std::vector<std::string>{"other"});
      CHECK(number_in(strategy, weights) == -1);
      optimizer same{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
      step(strategy, same, weights);
      CHECK(number_in(strategy, weights) == -2.5); // the velocity was saved, too
      auto unknown = strategy.make_variable("unknown", make_tensor({1}, {5}));
      CHECK(number_in(strategy, unknown) == 5);
    });
  }

  TEST_CASE("a variable that replicas make begins with what was restored before") {
    scratch_folder folder;
    auto world = world::virtual_time();
    {
      one_device_strategy strategy{world};
      static_cast<void>(strategy.make_variable("w", make_tensor({1}, {7})));
      save_checkpoint(strategy, folder.path(), 1);
    }
    for_every_strategy([&](troupe::strategy& strategy) {
      CHECK(restore_checkpoint(strategy, folder.path()) == 1);
      auto seen = strategy.run([](replica_context& context) -> task<float> {
        auto making = context.make_variable("w", zeros({1}));
        auto weights = co_await making;
        auto reading = context.read(weights);
        auto value = co_await reading;
        co_return value.values<float>()[0];
      });
      for (auto each : seen.local_results())
        CHECK(each == 7);
    });
  }

  TEST_CASE("copies that add up and are made later share what was restored before") {
    scratch_folder folder;
    auto world = world::virtual_time();
    {
      one_device_strategy strategy{world};
      static_cast<void>(strategy.make_variable("seen", make_tensor({1}, {8})));
      save_checkpoint(strategy, folder.path(), 1);
    }
    mirrored_strategy four{world, {cpu_devices(4)}};
    CHECK(restore_checkpoint(four, folder.path()) == 1);
    auto seen = four.make_variable("seen", zeros({1}), total);
    CHECK(number_in(four, seen) == 8);
    auto own = four.run([=](replica_context& context) -> task<float> {
      auto reading = context.read(seen);
      auto value = co_await reading;
      co_return value.values<float>()[0];
    });
    CHECK(own[3] == 2);
  }

  TEST_CASE("a variable that is made in another form than was restored before is refused") {
    scratch_folder folder;
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    {
      one_device_strategy saved{world};
      static_cast<void>(saved.make_variable("w", zeros({2})));
      save_checkpoint(saved, folder.path(), 3);
    }
    CHECK(restore_checkpoint(strategy, folder.path()) == 3);
    auto refused = [&](const tensor& initial) {
      return refusal_of([&] { static_cast<void>(strategy.make_variable("w", initial)); });
    };
    CHECK(refused(zeros({1}))
          == error{errc::invalid_argument,
                   "variable 'w' is made with shape [1], but the checkpoint of step 3, which was "
                   "restored before, has it with [2]; make it as it was saved, or under another "
                   "name"});
    CHECK(refused(zeros({2}, dtype::f64))
          == error{errc::type_mismatch,
                   "variable 'w' is made as f64, but the checkpoint of step 3, which was restored "
                   "before, has it as f32; make it as it was saved, or under another name"});
    CHECK(strategy.variables().empty());
    CHECK(refused(make_tensor({2}, {1, 1})) == error{}); // it still waits
    CHECK(numbers_of(strategy.read(strategy.variables()[0])) == numbers{0, 0});
  }

  TEST_CASE("variables that are made later begin with the last restored of two checkpoints") {
    scratch_folder folder;
    scratch_folder nothing;
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    for (uint64_t saved : {1, 2}) {
      one_device_strategy earlier{world};
      auto value = static_cast<float>(saved);
      static_cast<void>(earlier.make_variable("w", make_tensor({1}, {value})));
      if (saved == 1) static_cast<void>(earlier.make_variable("old", zeros({1})));
      save_checkpoint(earlier, folder.path(), saved);
      CHECK(restore_checkpoint(strategy, folder.path()) == saved);
    }
    CHECK_FALSE(restore_checkpoint(strategy, nothing.path())); // nothing changes
    CHECK(strategy.extended().deferred().names() == std::vector<std::string>{"w"});
    CHECK(number_in(strategy, strategy.make_variable("w", zeros({1}))) == 2);
  }

  TEST_CASE("a folder without a checkpoint is no failure; one of other variables is") {
    scratch_folder folder;
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    CHECK_FALSE(restore_checkpoint(strategy, folder.path()));
    save_checkpoint(strategy, folder.path(), 1);
    strategy.make_variable("w", zeros({1}));
    auto refused
      = refusal_of([&] { static_cast<void>(restore_checkpoint(strategy, folder.path())); });
    CHECK(refused.code == errc::not_found);
    CHECK(refused.message == "the checkpoint of step 1 has no variable 'w'");
  }

  TEST_CASE("variables take the arrays of their names from the file of another program") {
    scratch_folder folder;
    auto file = folder.path() / "model.safetensors";
    // As Python's safetensors writes what PyTorch calls a state dict.
    std::string header = R"({"__metadata__":{"format":"pt"},)"
                         R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("half":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},)"
                         R"("steps":{"dtype":"I64","shape":[],"data_offsets":[12,20]}})";
    header.resize(232, ' ');
    const std::vector<unsigned char> payload{0,  0,   0, 63, 0, 0, 0, 192, 128, 63,
                                             64, 192, 7, 0,  0, 0, 0, 0,   0,   0};
    std::ofstream out{file, std::ios::binary};
    const uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
    out.write(reinterpret_cast<const char*>(payload.data()),
              static_cast<std::streamsize>(payload.size()));
    out.close();
    for_every_strategy([&](troupe::strategy& strategy) {
      const std::vector<variable> both{strategy.make_variable("w", zeros({2})),
                                       strategy.make_variable("half", zeros({2}))};
      CHECK(load_variables(strategy, file, both) == std::vector<std::string>{"steps"});
      CHECK(numbers_of(strategy.read(both[0])) == numbers{0.5, -2});
      CHECK(numbers_of(strategy.read(both[1])) == numbers{1, -3});
    });
  }

  TEST_CASE("a file of another program that does not fit changes nothing") {
    scratch_folder folder;
    auto file = (folder.path() / "model.safetensors").string();
    value_or_throw(
      write_safetensors(file, std::vector<named_tensor>{{"w", make_tensor({1}, {1})},
                                                        {"b", zeros({2}, dtype::f64)}}));
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    auto w = strategy.make_variable("w", zeros({1}));
    auto refusal_with = [&](const variable& other) {
      auto loading = [&] {
        static_cast<void>(load_variables(strategy, file, std::vector{w, other}));
      };
      return refusal_of(loading);
    };
    CHECK(refusal_with(strategy.make_variable("c", zeros({1})))
          == error{errc::not_found, file + " has no array 'c'"});
    CHECK(refusal_with(strategy.make_variable("b", zeros({2})))
          == error{errc::type_mismatch,
                   "'b' is f64 in " + file + ", which does not widen to the f32 that it is here"});
    one_device_strategy another{world};
    auto wide = another.make_variable("w", zeros({3}));
    CHECK(refusal_of([&] { static_cast<void>(load_variables(another, file, std::vector{wide})); })
          == error{errc::invalid_argument, "'w' has shape [1] in " + file + ", but [3] here"});
    CHECK(number_in(strategy, w) == 0);
    CHECK(refusal_of([&] { static_cast<void>(load_variables(strategy, file + ".none", {})); }).code
          == errc::not_found);
  }
}

} // namespace checkpoint_test
