// SPDX-License-Identifier: Apache-2.0
// Goal: a job that goes on from a checkpoint ends bit for bit where one ends that was never
// interrupted. Method: the same job in one piece and in two, in worlds of their own; the second
// piece knows nothing of the first but its file.
#include "actors/training/optimizer_settings.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"

#include <cmath>

namespace resume_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t all_steps = 24;
constexpr uint64_t cut = 11;

/// The end of a job, for comparison with others.
struct outcome {
  std::vector<float> value;
  std::map<std::string, std::vector<float>> slots;
  job_report report;
  std::vector<replica_list> accepted; ///< One list for each step.
  std::vector<uint32_t> needed;       ///< By step.

  bool operator==(const outcome& other) const {
    return value == other.value && slots == other.slots && report.step == other.report.step;
  }
};

std::vector<float> floats(const tensor& values) {
  auto numbers = values.values<float>();
  return {numbers.begin(), numbers.end()};
}

struct setting {
  update_plan plan;
  sync_options sync;
  bool threads = false;
  bool equal_times = false;
};

/// Ends a job as a signal does: at a step of its own, whatever the schedule of checkpoints.
class interruption final : public session_hook {
public:
  explicit interruption(uint64_t after) : after_(after) {}

  void after_step(const session_control& control, const step_record& record) override {
    if (record.step == after_) control.request_stop("interrupted");
  }

private:
  uint64_t after_;
};

/// How long a replica computes: different for each, or the same for all but one.
job_time time_of(const setting& of, uint32_t replica, uint64_t iteration) {
  if (of.equal_times) return replica == 1 ? 1500ms : 1000ms;
  random_stream stream{random_key{5, "pace", replica, iteration}};
  return job_time{static_cast<int64_t>(1e9 * (0.1 - std::log(1 - stream.uniform())))};
}

/// Trains a vector of 5 on gradients that depend on replica, iteration and what was kept.
/// @param interrupted After which step the end is asked for; 0: after none.
outcome train_piece(const setting& of, const std::filesystem::path& folder, uint64_t steps,
                    bool resumes, uint64_t interrupted = 0) {
  auto world
    = of.threads ? world::threads({.seed = 3, .threads = 2}) : world::virtual_time({.seed = 3});
  parameter_server_strategy strategy{world, {.replicas = of.sync.total_num_replicas}};
  auto weights = strategy.make_variable("weights", make_tensor({5}, {1, 2, 3, 4, 5}));
  sync_replicas_optimizer optimizer{of.plan, of.sync};
  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(weights);
    auto value = co_await reading;
    auto drawn = context.kept("drawn");
    float before = drawn ? drawn->values<float>()[0] : 0;
    context.keep("drawn", make_tensor({1}, {before + 1}));
    auto key = context.random("gradient");
    auto computing = context.compute([value, key, before](std::stop_token) {
      random_stream noise{key};
      tensor result{dtype::f32, {5}};
      auto from = value.values<float>();
      auto to = result.mutable_values<float>();
      for (size_t i = 0; i < to.size(); ++i)
        to[i] = from[i] + static_cast<float>(noise.uniform()) + 0.01F * before;
      return result;
    });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, weights);
    co_await applying;
  };
  training_options options;
  options.steps = steps;
  if (!of.threads)
    options.pace = [of](uint32_t replica, uint64_t iteration, job_time) {
      return time_of(of, replica, iteration);
    };
  options.hooks.push_back(std::make_shared<checkpoint_saver_hook>(
    folder, checkpoint_options{.every_steps = cut, .keep = 9}));
  if (interrupted > 0) options.hooks.push_back(std::make_shared<interruption>(interrupted));
  if (resumes) options.resume = find_checkpoint(folder)->snapshot;
  outcome result;
  options.on_step = [&](const step_record& record) {
    auto replicas = replicas_of(record.accepted);
    std::ranges::sort(replicas);
    result.accepted.push_back(replicas);
    result.needed.push_back(record.needed);
  };
  result.report = train(strategy, optimizer, step, options);
  result.value = floats(strategy.read(weights));
  for (const auto& [name, values] : optimizer.variables(strategy))
    result.slots[name] = floats(values);
  return result;
}

void check_resumes(const setting& of, uint64_t interrupted = 0) {
  CAPTURE(interrupted);
  CAPTURE(name_of(of.plan.rule));
  CAPTURE(to_string(of.sync.policy));
  scratch_folder whole;
  auto uninterrupted = train_piece(of, whole.path(), all_steps, false);
  REQUIRE_FALSE(uninterrupted.report.failure);
  scratch_folder halves;
  auto first
    = train_piece(of, halves.path(), interrupted > 0 ? all_steps : cut, false, interrupted);
  auto second = train_piece(of, halves.path(), all_steps - first.report.step, true);
  REQUIRE_MESSAGE(!second.report.failure, second.report.failure->message);
  CHECK(second.value == uninterrupted.value);
  CHECK(second.slots == uninterrupted.slots);
  CHECK(second.report.step == all_steps);
  if (of.threads) return;
  std::vector<replica_list> tail(uninterrupted.accepted.begin() + first.report.step,
                                 uninterrupted.accepted.end());
  CHECK(second.accepted == tail);
  CHECK(
    std::ranges::equal(second.needed, std::span{uninterrupted.needed}.subspan(first.report.step)));
}

const sync_options every_policy[] = {
  {.replicas_to_aggregate = 3, .total_num_replicas = 5, .policy = sync_policy::tensorflow},
  {.replicas_to_aggregate = 3, .total_num_replicas = 5, .policy = sync_policy::latest_token},
  {.replicas_to_aggregate = 3, .total_num_replicas = 5, .policy = sync_policy::cancel},
  {.replicas_to_aggregate = 4, .total_num_replicas = 2, .policy = sync_policy::tensorflow},
};

/// Five replicas, and as many gradients a step as estimates say.
sync_options with_dynamic_backups(sync_policy policy, const dynamic_backups& how) {
  sync_options sync{.replicas_to_aggregate = 5, .total_num_replicas = 5, .policy = policy};
  sync.dynamic = how;
  return sync;
}

const update_plan some_plans[] = {
  {.rule = rules::sgd{}},
  {.rule = rules::momentum{.learning_rate = 0.05}},
  {.rule = rules::adam{.learning_rate = 0.05}},
};

} // namespace

TEST_SUITE("strategies/jobs/resume") {
  TEST_CASE("in virtual time a resumed job repeats the uninterrupted one, under every policy") {
    for (const auto& sync : every_policy)
      for (const auto& plan : some_plans)
        check_resumes({plan, sync});
  }

  TEST_CASE(
    "a resumed job repeats it with every optimizer, with an average and a falling learning rate") {
    for (auto name : choice_names<update_rule>()) {
      auto plan = to_plan({.name = std::string{name}}).value();
      plan.schedule = linear_decay(all_steps + 1);
      plan.average = moving_average{.decay = 0.9, .num_updates = true};
      check_resumes({plan, every_policy[1]});
    }
  }

  TEST_CASE(
    "a resumed job repeats it if many compute for the same time, and the seed orders everything") {
    for (const auto& sync : every_policy)
      check_resumes({some_plans[1], sync, false, true});
  }

  TEST_CASE("a job that is stopped between two checkpoints goes on as if none had been taken") {
    for (const auto& sync : every_policy)
      for (auto equal_times : {false, true})
        for (uint64_t interrupted = 1; interrupted < all_steps - 1; ++interrupted)
          if (interrupted + 1 != cut)
            check_resumes({some_plans[1], sync, false, equal_times}, interrupted);
  }

  TEST_CASE("a resumed job with dynamic backups waits for as many gradients as it would have") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      for (const auto& how :
           {dynamic_backups{.gain = gain_model::power}, dynamic_backups{.curvature = 1},
            dynamic_backups{.curvature = 0, .window = 4, .memory = 8}})
        for (const auto& plan : some_plans)
          for (uint64_t interrupted : {0, 3, 17})
            check_resumes({plan, with_dynamic_backups(policy, how)}, interrupted);
  }

  TEST_CASE("a checkpoint without all of its estimates is refused where backups are dynamic") {
    scratch_folder folder;
    setting of{some_plans[0], with_dynamic_backups(sync_policy::cancel, {})};
    REQUIRE_FALSE(train_piece(of, folder.path(), cut, false).report.failure);
    auto snapshot = find_checkpoint(folder.path())->snapshot;
    REQUIRE(snapshot.backups.size() == 4);
    snapshot.backups.pop_back();
    small_job job{of.sync};
    auto refused
      = refusal_of([&] { static_cast<void>(job.run_idle({.steps = 1, .resume = snapshot})); });
    CHECK(refused.code == errc::malformed);
    CHECK(refused.message.find("array 'descent' is missing") != std::string::npos);
  }

  TEST_CASE("a measured computation of the job before gives no gradient, not even a dropped one") {
    scratch_folder folder;
    sync_options sync{2, 2, sync_policy::latest_token};
    training_options saving{.steps = 1, .pace = one_second};
    saving.hooks = {
      std::make_shared<checkpoint_saver_hook>(folder.path(), checkpoint_options{.every_steps = 1})};
    REQUIRE_FALSE(small_job{sync}.run_idle(saving).report.failure);
    auto snapshot = find_checkpoint(folder.path())->snapshot;
    REQUIRE(snapshot.replicas.size() == 2);
    snapshot.replicas[1].computing = true; // as on a computing thread, which knows no rest
    auto seen = small_job{sync}.run_idle({.steps = 2, .resume = snapshot, .pace = one_second});
    CHECK(seen.report.step == 3);
    CHECK(seen.stale_count() == 0);
  }

  TEST_CASE("a variable that is not trainable is no part of steps, and goes on where it was") {
    scratch_folder folder;
    auto count_after = [&](uint64_t steps, bool resumes) {
      small_job job{{.policy = sync_policy::latest_token}};
      auto count = job.strategy.make_variable(
        "count", zeros({}, dtype::i64),
        {.aggregation = variable_aggregation::sum, .trainable = false});
      auto step = [=, optimizer = job.optimizer,
                   weights = job.weights](replica_context& context) -> task<void> {
        auto counting = context.assign_add(count, 1.0);
        co_await counting;
        auto giving = give(context, optimizer, weights, zeros({1}, dtype::f64));
        co_await giving;
      };
      training_options options{.steps = steps};
      options.hooks = {std::make_shared<checkpoint_saver_hook>(
        folder.path(), checkpoint_options{.every_steps = 1})};
      if (resumes) options.resume = find_checkpoint(folder.path())->snapshot;
      CHECK_FALSE(job.run(step, options).report.failure);
      return job.strategy.read(count).values<int64_t>()[0];
    };
    CHECK(count_after(3, false) == 3);
    CHECK(count_after(2, true) == 5);
  }

  TEST_CASE("a resumed job that needs all replicas repeats it in the threads world, too") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      check_resumes({some_plans[2],
                     {.replicas_to_aggregate = 4, .total_num_replicas = 4, .policy = policy},
                     true});
  }
}

} // namespace resume_test
