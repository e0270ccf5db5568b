// SPDX-License-Identifier: Apache-2.0
// Goal: variables that lie on a GPU are trained there to the bits of those in the host's memory.
// Method: the jobs of variable_devices_test, on an emulated GPU with memory that the host cannot
// read, and kernels of its own.
#include "actors/gpu/cuda_device.hpp"
#include "tests/kernels/updates/own_rules.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/placed_job.hpp"

namespace {

using namespace troupe;
using namespace troupe::test;

placed_job make_job(const placed_job_layout& where, const update_plan& plan,
                    const sync_options& sync) {
  return {world::threads({.seed = 3, .threads = 2}),
          [](uint32_t streams) { return value_or_throw(open_cuda_device(0, streams)); }, where,
          plan, sync};
}

void train_for(placed_job& job, training_options options) {
  auto seen = job.run(std::move(options));
  REQUIRE_MESSAGE(!seen.report.failure, seen.report.failure->message);
}

placed_outcome train_in(const placed_job_layout& where, const update_plan& plan,
                        const sync_options& sync) {
  auto job = make_job(where, plan, sync);
  train_for(job, {.steps = 6});
  return job.outcome();
}

void check_ways(const update_plan& plan, const sync_options& sync) {
  CAPTURE(to_string(sync.policy));
  CAPTURE(name_of(plan.rule));
  auto expected = train_in({}, plan, sync);
  for (const auto& where : ways_with_gpu)
    CHECK(train_in(where, plan, sync) == expected);
}

} // namespace

TEST_SUITE("strategies/kinds/emulated_variables") {
  TEST_CASE("variables on an emulated GPU come to the bits of those of the host") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      for (const auto& plan : placed_plans())
        check_ways(plan, {4, 4, policy});
  }

  TEST_CASE("so they do with a clip by the norm of all variables, where updates are held") {
    sync_options sync{4, 4, sync_policy::latest_token};
    sync.clip_global_norm = 2;
    check_ways({.rule = rules::adam{.learning_rate = 0.05}}, sync);
  }

  TEST_CASE("a job goes on from a snapshot of variables on an emulated GPU, and there from any") {
    const auto plan = placed_plans()[1];
    const sync_options sync{4, 4, sync_policy::latest_token};
    auto expected = train_in({}, plan, sync);
    for (const auto& [first, second] : {std::pair{ways_with_gpu[0], placed_job_layout{}},
                                        {placed_job_layout{}, ways_with_gpu[0]}}) {
      scratch_folder folder;
      auto before = make_job(first, plan, sync);
      training_options options{.steps = 3};
      options.hooks = {std::make_shared<checkpoint_saver_hook>(
        folder.path(), checkpoint_options{.every_steps = 3})};
      train_for(before, options);
      auto after = make_job(second, plan, sync);
      options = {.steps = 3};
      options.resume = find_checkpoint(folder.path())->snapshot;
      train_for(after, options);
      CHECK(after.outcome() == expected);
    }
  }

  TEST_CASE("a rule of a program's own is refused for variables on a GPU") {
    auto world = world::threads({.threads = 2});
    parameter_server_strategy strategy{
      world, {.variable_devices = {value_or_throw(open_cuda_device(0, 1))}}};
    strategy.make_variable("w", zeros({4}));
    static_cast<void>(value_or_throw(register_rule<own_momentum>()));
    sync_replicas_optimizer optimizer{custom_rule(own_momentum{}),
                                      {1, 1, sync_policy::latest_token}};
    auto refused = refusal_of([&] {
      static_cast<void>(
        train(strategy, optimizer, [](replica_context&) -> task<void> { co_return; }, {}));
    });
    CHECK(refused.code == errc::unimplemented);
    CHECK(refused.message
          == "optimizer 'own_momentum' is a program's own, and has no code for GPUs; leave its "
             "variables in the host's memory");
  }
}
