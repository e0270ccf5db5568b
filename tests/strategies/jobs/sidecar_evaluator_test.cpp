// SPDX-License-Identifier: Apache-2.0
// Goal: an evaluator evaluates what others save, harms no files of others, and says why it ends.
// Method: a folder of checkpoints of the test's own, in virtual time.
#include "actors/checkpoint/job_file.hpp"
#include "strategies/jobs/sidecar_evaluator.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/refusal.hpp"

#include <stdexcept>

namespace sidecar_evaluator_test {

namespace {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

constexpr auto no_bytes = std::string_view{"no checkpoint"};

/// A folder that the test saves into, and an evaluator that gives each step's own number.
struct stage {
  void save(uint64_t step) {
    auto content = to_content({.step = step}, {{"who", "me"}});
    auto directory = checkpoint_directory::open(folder).value();
    CHECK(directory.write(step, content.tensors, content.metadata));
  }

  sidecar_report run() {
    options.checkpoint_dir = folder;
    if (!options.evaluate)
      options.evaluate
        = [](const found_checkpoint& found) { return static_cast<double>(found.snapshot.step); };
    options.on_result = [this](const found_checkpoint& found, double value) {
      CHECK(found.notes.at("who") == "me");
      results.push_back(value);
      if (when_evaluated) when_evaluated(found.snapshot.step);
    };
    options.on_warning = [this](const std::string& line) { warnings.push_back(line); };
    return sidecar_evaluator{world, options}.start();
  }

  scratch_folder scratch;
  std::filesystem::path folder = scratch / "checkpoints";
  troupe::world world = world::virtual_time();
  sidecar_evaluator_options options{.limits = {.timeout = 60s}};
  std::vector<double> results;
  std::vector<std::string> warnings;
  std::function<void(uint64_t)> when_evaluated;
};

using values = std::vector<double>;

} // namespace

TEST_SUITE("strategies/jobs/sidecar_evaluator") {
  TEST_CASE("evaluates each new checkpoint in order, until the one of the last step") {
    stage stage;
    stage.save(100);
    stage.save(20);
    stage.when_evaluated = [&](uint64_t step) {
      if (step == 100) stage.save(150);
    };
    stage.options.limits.last_step = 150;
    auto report = stage.run();
    CHECK_FALSE(report.failure);
    CHECK(report.evaluations == 3);
    CHECK(report.last_step == 150);
    CHECK(stage.results == values{20, 100, 150});
  }

  TEST_CASE("waits for a folder that is not there yet, and looks at it once a second") {
    stage stage;
    int looks = 0;
    stage.options.progress = [&]() -> uint64_t {
      if (++looks == 31) stage.save(1);
      return 0;
    };
    stage.options.limits.max_evaluations = 1;
    CHECK_FALSE(stage.run().failure);
    CHECK(stage.results == values{1});
    CHECK(stage.world.now() == 30s);
  }

  TEST_CASE("evaluates the last checkpoint of a training that has ended, and finishes") {
    stage stage;
    stage.options.is_over = [&] {
      stage.save(7); // the last thing that training did
      return true;
    };
    CHECK_FALSE(stage.run().failure);
    CHECK(stage.results == values{7});
    CHECK(stage.world.now() == 0s);
  }

  TEST_CASE("a training that ended without a checkpoint leaves nothing to evaluate") {
    stage stage;
    stage.options.is_over = [] { return true; };
    auto report = stage.run();
    CHECK_FALSE(report.failure);
    CHECK_FALSE(report.last_step);
  }

  TEST_CASE("names the process that it has waited for in vain, and the last step") {
    stage stage;
    stage.options.waits_for = "chief 0 (10.0.0.1:2222)";
    auto report = stage.run();
    REQUIRE(report.failure);
    CHECK(report.failure->code == errc::deadline_exceeded);
    CHECK(report.failure->message
          == "chief 0 (10.0.0.1:2222) has left no checkpoint in " + stage.folder.string()
               + " and no sign of life for 60 s");
    CHECK(stage.world.now() == 61s);
    stage.save(3);
    CHECK(stage.run().failure->message.find(" after that of step 3 and no sign of life")
          != std::string::npos);
  }

  TEST_CASE("waits as long as there is a sign of life") {
    stage stage;
    uint64_t life = 0;
    stage.options.progress = [&] { return std::min<uint64_t>(++life, 1000); };
    CHECK(stage.run().failure->code == errc::deadline_exceeded);
    CHECK(stage.world.now() > 1000s);
  }

  TEST_CASE("a damaged checkpoint, and one that is no job's, are passed over with a warning") {
    stage stage;
    stage.save(1);
    write(stage.folder / "checkpoint-2.safetensors", no_bytes);
    const named_tensor alone[] = {{"x", tensor{dtype::f32, {1}}}};
    CHECK(checkpoint_directory::open(stage.folder).value().write(3, alone, {}));
    stage.save(4);
    stage.options.is_over = [] { return true; };
    CHECK(stage.run().evaluations == 2);
    CHECK(stage.results == values{1, 4});
    REQUIRE(stage.warnings.size() == 2);
    CHECK(stage.warnings[0].find("checkpoint-2.safetensors") != std::string::npos);
    CHECK(stage.warnings[1].find("checkpoint-3.safetensors") != std::string::npos);
  }

  TEST_CASE("one that cannot be read is tried again until it can be, with one warning") {
    stage stage;
    stage.save(1);
    auto second = stage.folder / "checkpoint-2.safetensors";
    std::filesystem::create_symlink(second, second); // a loop
    int looks = 0;
    stage.options.progress = [&]() -> uint64_t {
      if (++looks == 20) {
        std::filesystem::remove(second);
        stage.save(2);
      }
      return 0;
    };
    stage.options.is_over = [] { return true; };
    CHECK_FALSE(stage.run().failure);
    CHECK(stage.results == values{1, 2});
    CHECK(stage.world.now() == 18s);
    REQUIRE(stage.warnings.size() == 1);
    CHECK(stage.warnings[0]
          == "cannot read " + second.string()
               + ": Too many levels of symbolic links; tried again for 60 s");
  }

  TEST_CASE("a checkpoint or a folder that stays unreadable ends it with that reason") {
    stage stage;
    stage.save(1);
    auto end_at = [&](job_time when) {
      auto report = stage.run();
      REQUIRE(report.failure);
      CHECK(report.failure->code == errc::resource);
      CHECK(stage.world.now() == when);
    };
    auto second = stage.folder / "checkpoint-2.safetensors";
    std::filesystem::create_symlink(second, second);
    end_at(61s);
    std::filesystem::remove_all(stage.folder);
    std::filesystem::create_symlink(stage.folder, stage.folder);
    end_at(122s);
    CHECK(stage.warnings.size() == 2);
  }

  TEST_CASE("one that is removed before its turn is passed over") {
    stage stage;
    stage.save(1);
    stage.save(2);
    stage.options.evaluate = [&](const found_checkpoint& found) {
      std::filesystem::remove(stage.folder / "checkpoint-2.safetensors");
      return static_cast<double>(found.snapshot.step);
    };
    stage.options.is_over = [] { return true; };
    CHECK_FALSE(stage.run().failure);
    CHECK(stage.results == values{1});
  }

  TEST_CASE("a file that is still being written stays as it is") {
    stage stage;
    stage.save(1);
    auto partial = stage.folder / ".checkpoint-2.safetensors.partial";
    write(partial, no_bytes);
    stage.options.is_over = [] { return true; };
    CHECK(stage.run().evaluations == 1);
    CHECK(content(partial) == no_bytes);
  }

  TEST_CASE("an exception of the function ends the evaluator, and names the step") {
    stage stage;
    stage.save(9);
    stage.options.evaluate
      = [](const found_checkpoint&) -> double { throw std::runtime_error{"no such layer"}; };
    auto report = stage.run();
    REQUIRE(report.failure);
    CHECK(report.failure->code == errc::user_code);
    CHECK(report.failure->message == "evaluating the checkpoint of step 9: no such layer");
  }

  TEST_CASE("asked to stop, it ends after the evaluation under way, or while it waits") {
    stage stage;
    std::stop_source source;
    stage.options.stop = source.get_token();
    stage.save(1);
    stage.save(2);
    stage.when_evaluated = [&](uint64_t) { source.request_stop(); };
    auto report = stage.run();
    CHECK(report.is_stopped);
    CHECK(report.last_step == 1);
    CHECK_FALSE(report.failure);
  }

  TEST_CASE("refuses to have nothing to look at, or nothing to do") {
    auto world = world::virtual_time();
    auto refused = [&](sidecar_evaluator_options options) {
      return refusal_of([&] { sidecar_evaluator{world, options}; }).code;
    };
    CHECK(refused({.evaluate = [](const found_checkpoint&) { return 0.0; }})
          == errc::invalid_argument);
    CHECK(refused({.checkpoint_dir = "somewhere"}) == errc::invalid_argument);
    CHECK(refused({.checkpoint_dir = "somewhere",
                   .evaluate = [](const found_checkpoint&) { return 0.0; },
                   .poll_every = job_time{0}})
          == errc::invalid_argument);
  }
}

} // namespace sidecar_evaluator_test
