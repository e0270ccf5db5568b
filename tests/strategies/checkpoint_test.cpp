// SPDX-License-Identifier: Apache-2.0
// Goal: what is saved under one strategy goes on under another. Method: files in a scratch folder.
#include "strategies/checkpoint.hpp"
#include "strategies/optimizer.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/small_job.hpp"

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

TEST_SUITE("strategies/checkpoint") {
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
}
