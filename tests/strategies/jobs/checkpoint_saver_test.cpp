// SPDX-License-Identifier: Apache-2.0
// Goal: checkpoints come when they are due, the newest stay, and what is wrong is said in one line.
// Method: small jobs in folders of their own, damaged by hand.
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tests/actors/refusing_world.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"
#include "tests/taken_output.hpp"

#include <stdexcept>

namespace checkpoint_saver_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::vector<uint64_t> steps_in(const std::filesystem::path& folder) {
  return checkpoint_directory::open(folder).value().steps().value();
}

/// Steps of a second each, saved as the options say.
course save(const std::filesystem::path& folder, uint64_t steps, checkpoint_options options,
            update_rule rule = rules::sgd{}) {
  small_job job{{.policy = sync_policy::latest_token}};
  job.optimizer = sync_replicas_optimizer{rule, {.policy = sync_policy::latest_token}};
  training_options training{.steps = steps, .pace = one_second};
  training.hooks = {std::make_shared<checkpoint_saver_hook>(folder, std::move(options))};
  return job.run_idle(training);
}

} // namespace

TEST_SUITE("strategies/jobs/checkpoint_saver_hook") {
  TEST_CASE("saves every so many steps and at the end, and keeps the newest") {
    scratch_folder scratch;
    CHECK_FALSE(save(scratch.path(), 11, {.every_steps = 3, .keep = 3}).report.failure);
    CHECK(steps_in(scratch.path()) == std::vector<uint64_t>{6, 9, 11});
    CHECK(find_checkpoint(scratch.path())->snapshot.step == 11);
  }

  TEST_CASE("saves after the first step that ends so long after the last one") {
    scratch_folder scratch;
    CHECK_FALSE(save(scratch.path(), 10, {.every = 4s, .keep = 9}).report.failure);
    CHECK(steps_in(scratch.path()) == std::vector<uint64_t>{4, 8, 10});
  }

  TEST_CASE("notes stand in the file, and are found with it") {
    scratch_folder scratch;
    static_cast<void>(save(scratch.path(), 2, {.every_steps = 1, .notes = {{"who", "me"}}}));
    CHECK(find_checkpoint(scratch.path())->notes.at("who") == "me");
  }

  TEST_CASE("an empty folder holds no checkpoint, nor does one that is not there") {
    scratch_folder scratch;
    CHECK_FALSE(find_checkpoint(scratch.path()));
    CHECK_FALSE(find_checkpoint(scratch / "none"));
    CHECK_FALSE(std::filesystem::exists(scratch / "none"));
  }

  TEST_CASE("a look for a checkpoint leaves one that is being written") {
    scratch_folder scratch;
    write(scratch / ".checkpoint-2.safetensors.partial", "half");
    CHECK_FALSE(find_checkpoint(scratch.path()));
    CHECK(std::filesystem::exists(scratch / ".checkpoint-2.safetensors.partial"));
  }

  TEST_CASE("an old checkpoint that cannot be removed is told of once, and fails no job") {
    scratch_folder scratch;
    std::filesystem::create_directories(scratch / "checkpoint-1.safetensors/of somebody else");
    std::vector<std::string> warnings;
    auto seen
      = save(scratch.path(), 6, {.every_steps = 2, .keep = 2, .on_warning = [&](const auto& line) {
                                   warnings.push_back(line);
                                 }});
    CHECK_FALSE(seen.report.failure);
    CHECK(steps_in(scratch.path()) == std::vector<uint64_t>{1, 4, 6});
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].starts_with("a checkpoint that is not needed any more stays: cannot remove"));
  }

  TEST_CASE("a damaged checkpoint is passed over for the one before it, with a warning") {
    scratch_folder scratch;
    static_cast<void>(save(scratch.path(), 4, {.every_steps = 2}));
    auto newest = scratch / "checkpoint-4.safetensors";
    auto bytes = content(newest);
    bytes[bytes.size() - 3] ^= 1;
    write(newest, bytes);
    std::vector<std::string> warnings;
    auto found
      = find_checkpoint(scratch.path(), [&](const std::string& line) { warnings.push_back(line); });
    REQUIRE(found);
    CHECK(found->snapshot.step == 2);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("checkpoint-4.safetensors") != std::string::npos);
    taken_output output; // of a program without a function for warnings
    CHECK(find_checkpoint(scratch.path()));
    CHECK(output.said() == warnings[0] + "\n");
  }

  TEST_CASE("a folder whose checkpoints are all damaged is refused: no job begins anew there") {
    scratch_folder scratch;
    write(scratch / "checkpoint-2.safetensors", "damaged");
    taken_output output;
    auto refused = refusal_of([&] { static_cast<void>(find_checkpoint(scratch.path())); });
    CHECK(refused.code == errc::malformed);
    CHECK(
      refused.message.starts_with("no checkpoint in " + scratch.path().string() + " is whole: "));
    CHECK_FALSE(find_checkpoint(scratch.path(), {}, 2)); // none before it
  }

  TEST_CASE("a folder or a checkpoint that cannot be read is refused, and not called empty") {
    scratch_folder scratch;
    std::filesystem::create_symlink("loop", scratch / "loop");
    std::filesystem::create_symlink("checkpoint-2.safetensors",
                                    scratch / "checkpoint-2.safetensors");
    for (const auto& folder : {scratch / "loop", scratch.path()})
      CHECK(refusal_of([&] { static_cast<void>(find_checkpoint(folder)); }).code == errc::resource);
  }

  TEST_CASE("a hook that would never save, or keep nothing, is refused") {
    scratch_folder scratch;
    auto make = [&](checkpoint_options options) {
      return refusal_of([&] { checkpoint_saver_hook hook(scratch.path(), options); }).code;
    };
    CHECK(make({}) == errc::invalid_argument);
    CHECK(make({.every_steps = 1, .keep = 0}) == errc::invalid_argument);
    CHECK(make({.every_steps = 1}) == errc::none);
  }

  TEST_CASE("a job that cannot write its last checkpoint fails, and says which and why") {
    scratch_folder scratch;
    std::vector<std::string> warnings;
    auto folder = scratch / "gone";
    small_job job{{.policy = sync_policy::latest_token}};
    training_options training{.steps = 3, .pace = one_second};
    training.hooks = {std::make_shared<checkpoint_saver_hook>(
      folder, checkpoint_options{.every_steps = 2, .on_warning = [&](const std::string& line) {
                                   warnings.push_back(line);
                                 }})};
    training.on_step = [&](const step_record&) { std::filesystem::remove_all(folder); };
    auto seen = job.run_idle(training);
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->code == errc::resource);
    CHECK(seen.report.step == 3); // all the steps were made
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("no checkpoint of step 2, ") == 0);
  }

  TEST_CASE("a world without a thread for files is as a disk that cannot be written") {
    scratch_folder scratch;
    std::vector<std::string> warnings;
    checkpoint_saver_hook hook{
      scratch.path(),
      {.every_steps = 1, .on_warning = [&](const std::string& line) { warnings.push_back(line); }}};
    auto world = world::virtual_time();
    refusing_world refusing{world};
    session_plan plan{.world = refusing.world};
    hook.begin(plan);
    hook.after_snapshot({.step = 2});
    hook.after_snapshot({.step = 4});
    CHECK(warnings
          == std::vector<std::string>{
            "no checkpoint of step 2, nor of those that follow until that changes: no thread"});
    auto refused = [&] { return refusal_of([&] { hook.end({}); }); };
    CHECK(refused() == error{errc::resource, "no thread"});
    refusing.refuses = false;
    hook.after_snapshot({.step = 6});
    CHECK(refused().code == errc::none);
    CHECK(steps_in(scratch.path()) == std::vector<uint64_t>{6});
  }

  TEST_CASE("a program that throws when it is warned goes on") {
    scratch_folder scratch;
    auto folder = scratch / "gone";
    small_job job{{.policy = sync_policy::latest_token}};
    training_options training{.steps = 3, .pace = one_second};
    training.hooks = {std::make_shared<checkpoint_saver_hook>(
      folder, checkpoint_options{.every_steps = 2, .on_warning = [](const std::string&) {
                                   throw std::runtime_error{"no log"};
                                 }})};
    training.on_step = [&](const step_record&) { std::filesystem::remove_all(folder); };
    CHECK(job.run_idle(training).report.step == 3);
  }

  TEST_CASE("trouble with the disk is reported once, and again when it changes") {
    scratch_folder scratch;
    std::vector<std::string> warnings;
    auto folder = scratch / "disk";
    small_job job{{.policy = sync_policy::latest_token}};
    training_options training{.steps = 15, .pace = one_second};
    training.hooks = {std::make_shared<checkpoint_saver_hook>(
      folder, checkpoint_options{.every_steps = 1, .on_warning = [&](const std::string& line) {
                                   warnings.push_back(line);
                                 }})};
    training.on_step = [&](const step_record& record) {
      if (record.step == 4) std::filesystem::remove_all(folder);
      if (record.step == 6 || record.step == 12) {
        std::filesystem::remove_all(folder);
        write(folder, "a file");
      }
      if (record.step == 8) {
        std::filesystem::remove(folder);
        std::filesystem::create_directory(folder);
      }
    };
    auto seen = job.run_idle(training);
    REQUIRE(seen.report.failure);
    CHECK(seen.report.step == 15);
    REQUIRE(warnings.size() == 3);
    CHECK(warnings[0].find("No such file or directory") != std::string::npos);
    CHECK(warnings[1].find("Not a directory") != std::string::npos);
    CHECK(warnings[2].find("Not a directory") != std::string::npos);
  }

  TEST_CASE("a checkpoint of another job is refused before anything is changed") {
    scratch_folder scratch;
    static_cast<void>(save(scratch.path(), 2, {.every_steps = 1}));
    auto snapshot = find_checkpoint(scratch.path())->snapshot;
    auto resume_with = [&](const std::string& variable, update_rule rule, uint64_t seed = 0) {
      auto world = world::virtual_time({.seed = seed});
      parameter_server_strategy strategy{world};
      auto weights = strategy.make_variable(variable, zeros({1}, dtype::f64));
      sync_replicas_optimizer optimizer{rule, {}};
      auto step = [=](replica_context& context) -> task<void> {
        auto giving = give(context, optimizer, weights, zeros({1}, dtype::f64));
        co_await giving;
      };
      return refusal_of([&] {
        static_cast<void>(
          train(strategy, optimizer, step_function{step}, {.steps = 1, .resume = snapshot}));
      });
    };
    CHECK(resume_with("w", rules::sgd{}).code == errc::none);
    auto other_variable = resume_with("v", rules::sgd{});
    CHECK(other_variable.code == errc::failed_precondition);
    CHECK(other_variable.message
          == "the checkpoint of step 2 holds variable 'w', which this job does not have");
    auto other_seed = resume_with("w", rules::sgd{}, 5);
    CHECK(other_seed.message
          == "the checkpoint of step 2 is of a world with seed 0, this one has 5");
    auto other_optimizer = resume_with("w", rules::adam{});
    CHECK(other_optimizer.message
          == "the checkpoint of step 2 was made with the optimizer sgd, this job has adam");
  }
}

} // namespace checkpoint_saver_test
