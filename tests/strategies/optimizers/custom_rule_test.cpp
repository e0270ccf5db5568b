// SPDX-License-Identifier: Apache-2.0
// Goal: jobs train with an optimizer of the program's own as with the library's. Method: momentum,
// written once more, against the library's, bit for bit; a rule that throws, and saved slots that
// do not fit.
#include "actors/training/optimizer_settings.hpp"
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/kinds/one_device_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/kernels/updates/own_rules.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>

namespace custom_rule_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr sync_options two_replicas{.replicas_to_aggregate = 2, .total_num_replicas = 2};

struct never_registered : own_momentum {
  static constexpr std::string_view name = "never_registered";
};

struct without_beginning : own_momentum {
  static constexpr std::string_view name = "without_beginning";

  [[nodiscard]] static double initial_slot_value(size_t) {
    throw std::domain_error{"no beginning"};
  }
};

struct refused_by_owners : without_beginning {
  static constexpr std::string_view name = "refused_by_owners";
};

/// The final numbers and the report of a job.
struct trained {
  std::vector<float> numbers; ///< Variables, then slots.
  job_report report;
};

void add(std::vector<float>& numbers, const tensor& from) {
  auto values = from.values<float>();
  numbers.insert(numbers.end(), values.begin(), values.end());
}

update_plan plan_with(update_rule rule) {
  return {.rule = std::move(rule),
          .schedule = linear_decay(20),
          .clip = {.norm_max = 2},
          .average = moving_average{.decay = 0.9}};
}

/// Trains a vector on dense gradients and a table on rows, in memory of two owners.
trained train_piece(const update_plan& plan, const std::filesystem::path& folder, uint64_t steps,
                    bool resumes, float spoilt = 1) {
  auto world = world::virtual_time({.seed = 3});
  parameter_server_strategy strategy{world, {.replicas = 2}};
  auto weights = strategy.make_variable("weights", make_tensor({3}, {1, 2, 3}));
  auto table = strategy.make_variable("table", make_tensor({3, 2}, {1, 2, 3, 4, 5, 6}));
  sync_replicas_optimizer optimizer{plan, two_replicas};
  auto step = [=](replica_context& context) -> task<void> {
    random_stream draw{context.random("gradient")};
    auto number = [&] { return spoilt * static_cast<float>(draw.normal()); };
    auto dense = make_tensor({3}, {number(), number(), number()});
    tensor rows{dtype::i64, {1}};
    rows.mutable_values<int64_t>()[0] = context.iteration() % 2 == 0 ? 2 : 0;
    indexed_slices slices{rows, make_tensor({1, 2}, {number(), number()}), {3, 2}};
    std::vector<gradient_and_variable> gradients{{dense, weights}, {slices, table}};
    auto applying = optimizer.apply_gradients(context, gradients);
    co_await applying;
  };
  training_options options;
  options.steps = steps;
  options.hooks.push_back(
    std::make_shared<checkpoint_saver_hook>(folder, checkpoint_options{.every_steps = 4}));
  if (resumes) options.resume = find_checkpoint(folder)->snapshot;
  trained result;
  result.report = train(strategy, optimizer, step, options);
  add(result.numbers, strategy.read(weights));
  add(result.numbers, strategy.read(table));
  for (const auto& [name, values] : optimizer.variables(strategy))
    add(result.numbers, values);
  return result;
}

trained train_whole(const update_plan& plan) {
  scratch_folder folder;
  return train_piece(plan, folder.path(), 9, false);
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace

TEST_SUITE("strategies/optimizers/custom_rule") {
  TEST_CASE("a job with a momentum of its own ends with the bits of the library's") {
    register_own_rules();
    auto known = train_whole(plan_with(rules::momentum{.learning_rate = 0.3, .decay = 0.8}));
    auto own
      = train_whole(plan_with(custom_rule(own_momentum{.learning_rate = 0.3, .decay = 0.8})));
    REQUIRE_MESSAGE(!own.report.failure, own.report.failure->message);
    CHECK(own.numbers.size() == 18);
    CHECK(have_same_bits(own.numbers, known.numbers));
  }

  TEST_CASE("a job that goes on from a checkpoint ends with the same bits") {
    register_own_rules();
    auto plan = plan_with(custom_rule(own_momentum{.learning_rate = 0.3, .decay = 0.8}));
    auto whole = train_whole(plan);
    scratch_folder folder;
    auto first = train_piece(plan, folder.path(), 4, false);
    auto second = train_piece(plan, folder.path(), 5, true);
    REQUIRE_MESSAGE(!second.report.failure, second.report.failure->message);
    CHECK(have_same_bits(second.numbers, whole.numbers));
  }

  TEST_CASE("a checkpoint of another optimizer is refused") {
    register_own_rules();
    scratch_folder folder;
    train_piece(plan_with(rules::momentum{}), folder.path(), 4, false);
    CHECK_THROWS_WITH(
      train_piece(plan_with(custom_rule(own_momentum{})), folder.path(), 4, true),
      doctest::Contains("was made with the optimizer momentum, this job has own_momentum"));
  }

  TEST_CASE("an exception of a rule ends the job with its text") {
    register_own_rules();
    scratch_folder folder;
    auto failed = train_piece({.rule = custom_rule(own_careful_descent{})}, folder.path(), 4, false,
                              std::numeric_limits<float>::quiet_NaN());
    REQUIRE(failed.report.failure);
    CHECK(failed.report.failure->code == errc::user_code);
    CHECK(failed.report.failure->message.find("optimizer 'own_careful_descent' failed at variable")
          != std::string::npos);
    CHECK(failed.report.failure->message.find("the gradient is not a number") != std::string::npos);
  }

  TEST_CASE("a rule whose slots cannot begin ends the job, and the variable takes another one") {
    REQUIRE(register_rule<without_beginning>());
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 1}};
    auto weights = strategy.make_variable("w", make_tensor({2}, {1, 2}));
    auto use = [&](update_rule rule) {
      return ask<msg<wire::OptimizerInUse>>(
        world, weights.owner(), make_use_optimizer(to_settings({.rule = std::move(rule)})));
    };
    for (int i = 0; i < 2; ++i)
      CHECK(use(custom_rule(without_beginning{})).error().message
            == "optimizer 'without_beginning' failed at variable 'w': no beginning");
    CHECK(use(rules::momentum{}));
    CHECK(strategy.read(weights).values<float>()[1] == 2);
  }

  TEST_CASE("an owner that refuses a rule is asked again, and gives the same reason") {
    REQUIRE(register_rule<refused_by_owners>());
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    auto weights = strategy.make_variable("w", zeros({2}));
    optimizer own{custom_rule(refused_by_owners{})};
    for (int i = 0; i < 2; ++i)
      CHECK(refusal_of([&] {
              strategy.run([=](replica_context& context) -> task<void> {
                auto applying = own.apply_gradients(context, zeros({2}), weights);
                co_await applying;
              });
            }).message
            == "optimizer 'refused_by_owners' failed at variable 'w': no beginning");
  }

  TEST_CASE("a process that lacks the rule refuses it by name") {

    scratch_folder folder;
    CHECK_THROWS_WITH(
      train_piece({.rule = custom_rule(never_registered{})}, folder.path(), 1, false),
      doctest::Contains("no optimizer 'never_registered'; there are"));
  }

  TEST_CASE("saved slots of other names or another shape are refused") {
    register_own_rules();
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 1}};
    auto weights = strategy.make_variable("w", zeros({2}));
    auto use_after = [&](const std::string& slot, const shape& extents) {
      auto restored = ask<msg<wire::OptimizerInUse>>(
        world, weights.owner(),
        make_restore_state(
          {.value = zeros({2}), .optimizer = "own_momentum", .slots = {{slot, zeros(extents)}}}));
      if (!restored) return restored.error().message;
      auto plan = update_plan{.rule = custom_rule(own_momentum{})};
      auto used = ask<msg<wire::OptimizerInUse>>(world, weights.owner(),
                                                 make_use_optimizer(to_settings(plan)));
      return used ? std::string{"goes on"} : used.error().message;
    };
    CHECK(use_after("velocity", {2}) == "goes on");
    CHECK(use_after("velocity", {3})
          == "'velocity' was saved with shape [3], but variable 'w' has shape [2]");
    CHECK(use_after("speed", {2})
          == "variable 'w' was saved with the slots [speed] of optimizer 'own_momentum', which has "
             "[velocity] here");
  }
}

} // namespace custom_rule_test
