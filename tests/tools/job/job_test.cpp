// SPDX-License-Identifier: Apache-2.0
// Goal: a job that is used wrongly says so in a line. Method: jobs in this process, most of which
// make no step; what they print goes into a file.
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/throw_failure.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/taken_output.hpp"
#include "tools/job/job.hpp"

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <unistd.h>
#include <utility>

namespace job_test {

using namespace troupe;
using test::taken_output;

namespace {

/// The command line of a job with a folder of its own.
struct arguments {
  test::scratch_folder folder;
  std::string run = (folder / "run").string();
  std::array<const char*, 3> words{"trainer", "--run-dir", run.c_str()};
};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const failure& failed) {
    CHECK(failed.reason().code == errc::failed_precondition);
    return failed.what();
  }
  return "accepted";
}

constexpr int failed = 1;
constexpr int misused = 2;
constexpr int bad_checkpoint = 6;

} // namespace

TEST_SUITE("tools/job/job") {
  TEST_CASE("calls for the body are refused before it and after it") {
    arguments given;
    test::taken_output output;
    job job{given.words.size(), given.words.data()};
    auto all_are_refused = [&](const std::string& when) {
      auto line = [&](const std::string& name) {
        return "job: " + name + " " + when + " run: call it in the function given to run";
      };
      auto train = [&] { static_cast<void>(job.train(job.optimizer(rules::sgd{}), {})); };
      CHECK(refusal([&] { static_cast<void>(job.strategy()); }) == line("strategy()"));
      CHECK(refusal([&] { static_cast<void>(job.server()); }) == line("server()"));
      CHECK(refusal([&] { static_cast<void>(job.world()); }) == line("world()"));
      CHECK(refusal(train) == line("train()"));
    };
    all_are_refused("before");
    CHECK(refusal([&] { static_cast<void>(job.is_chief()); })
          == "job: is_chief() before the cluster was found: call it in the function given to run, "
             "or after find_cluster()");
    std::string place;
    CHECK(job.run([&] {
      CHECK(job.is_chief());
      CHECK(job.strategy().num_replicas_in_sync() == 4);
      CHECK(refusal([&] { job.option("--late", "WORD", "", place); })
            == "job: option(\"--late\") after the command line was read: call it before run and "
               "find_cluster");
    }) == 0);
    all_are_refused("after");
    CHECK(job.is_chief());
  }

  TEST_CASE("an option named as another, or not at all, is refused in a line") {
    using text_pair = std::pair<const char*, const char*>;
    for (auto [name, line] :
         {text_pair{"--steps", "there are two options --steps: the program must give its own"},
          text_pair{"--help", "there are two options --help: the program must give its own"},
          text_pair{"--twice", "there are two options --twice: the program must give its own"},
          text_pair{"--", "the program's option '--' has no name for an option: "}}) {
      arguments given;
      test::taken_output output;
      job job{given.words.size(), given.words.data()};
      std::string place;
      job.option("--twice", "WORD", "", place);
      job.option(name, "WORD", "", place);
      CHECK(job.run([] { FAIL("has begun"); }) == misused);
      CHECK(output.said().starts_with(std::string{"trainer: "} + line));
    }
  }

  TEST_CASE("a default that a file could not give back is refused before the run") {
    auto refuses = [](auto value, const std::string& line) {
      test::taken_output output;
      arguments given;
      job job{given.words.size(), given.words.data()};
      job.option("--limit", "NUMBER", "", value);
      CHECK(job.run([] { FAIL("has begun"); }) == misused);
      CHECK(output.said().starts_with("trainer: the program's default of --limit must be " + line));
      CHECK_FALSE(std::filesystem::exists(given.run));
    };
    refuses(std::numeric_limits<uint64_t>::max(), "a whole number from 0 to ");
    refuses(std::numeric_limits<double>::infinity(), "a number from ");
    refuses(std::numeric_limits<double>::quiet_NaN(), "a number from ");
    test::taken_output output;
    arguments given;
    job endless{given.words.size(),
                given.words.data(),
                {.defaults = {.deadline_seconds = std::numeric_limits<double>::infinity()}}};
    CHECK(endless.run([] { FAIL("has begun"); }) == misused);
    CHECK(output.said().starts_with("trainer: the program's default of --deadline must be "));
  }

  TEST_CASE("a process knows its role before it runs, by the command line") {
    constexpr const char* cluster = "chief=127.0.0.1:1;worker=127.0.0.1:2,127.0.0.1:3";
    for (auto [task, is_chief] : {std::pair{"chief:0", true}, std::pair{"worker:1", false}}) {
      std::array words{"trainer", "--cluster", cluster, "--task", task};
      job job{words.size(), words.data()};
      REQUIRE(job.find_cluster());
      CHECK(job.is_chief() == is_chief);
      CHECK(job.options().replicas == 3); // shared evenly
      std::string place;
      CHECK(refusal([&] {
              job.option("--late", "WORD", "", place);
            }).starts_with("job: option(\"--late\") after the command line was read"));
    }
  }

  TEST_CASE("a command line that was refused before the run ends it, with one line") {
    test::taken_output output;
    std::array words{"trainer", "--steps", "many"};
    job job{words.size(), words.data()};
    auto found = job.find_cluster();
    REQUIRE_FALSE(found);
    CHECK(found.error().message.starts_with("--steps must be a whole number"));
    CHECK(job.run([] { FAIL("has begun"); }) == misused);
    CHECK(output.said() == "trainer: " + found.error().message + "\n");
  }

  TEST_CASE("a job that finds its cluster first still has the options of the command line") {
    arguments given;
    test::taken_output output;
    uint64_t width = 3;
    std::array words{"trainer", "--width", "5", "--run-dir", given.run.c_str()};
    job job{words.size(), words.data()};
    job.option("--width", "COUNT", "", width);
    REQUIRE(job.find_cluster());
    CHECK(width == 5);
    CHECK(job.run([] {}) == 0);
    CHECK(width == 5);
  }

  TEST_CASE("a job that finds its cluster first still answers --help") {
    test::taken_output answer{STDOUT_FILENO};
    std::array words{"trainer", "--help", "--cluster", "chief"};
    job job{words.size(), words.data()};
    REQUIRE(job.find_cluster());
    CHECK(job.is_chief());
    CHECK(job.run([] { FAIL("has begun"); }) == 0);
    CHECK(answer.said().find("Usage: trainer [OPTIONS]\n") != std::string::npos);
  }

  TEST_CASE("a job runs once, and not within another; the next one runs after it") {
    arguments given;
    arguments other;
    test::taken_output output;
    job first{given.words.size(), given.words.data()};
    job second{other.words.size(), other.words.data()};
    job third{other.words.size(), other.words.data()};
    CHECK(first.run([&] {
      CHECK(first.run([] { FAIL("has begun"); }) == misused);
      CHECK(second.run([] { FAIL("has begun"); }) == misused);
    }) == 0);
    auto said = output.said();
    CHECK(said.find("trainer: a job runs once: make another job to run again\n")
          != std::string::npos);
    CHECK(said.find("trainer: another job runs in this process: run this one after it\n")
          != std::string::npos);
    bool has_run = false;
    CHECK(third.run([&] { has_run = true; }) == 0);
    CHECK(has_run);
  }

  TEST_CASE("a body that throws before it trains ends the job with the code of its error") {
    auto code_of = [](const std::function<void()>& body) {
      arguments given;
      test::taken_output output;
      job job{given.words.size(), given.words.data()};
      auto code = job.run(body);
      CHECK(output.said().ends_with("trainer: no data\n"));
      CHECK_FALSE(std::filesystem::exists(given.run));
      return code;
    };
    auto code_of_failure
      = [&](errc code) { return code_of([code] { throw_failure(code, "no data"); }); };
    CHECK(code_of([] { throw std::runtime_error{"no data"}; }) == failed);
    CHECK(code_of_failure(errc::user_code) == failed);
    CHECK(code_of_failure(errc::resource) == failed);
    CHECK(code_of_failure(errc::invalid_argument) == misused);
    CHECK(code_of_failure(errc::not_found) == misused);
  }

  TEST_CASE("a checkpoint is to blame only for errors of the training that was given it") {
    arguments given;
    test::taken_output output;
    auto train = [](job& job, int64_t elements) {
      auto weights = job.strategy().make_variable("w", zeros({elements}));
      auto optimizer = job.optimizer(rules::sgd{});
      auto step = [=](replica_context& context) -> task<void> {
        auto computing = context.compute([=](std::stop_token) { return zeros({elements}); });
        auto gradient = co_await computing;
        auto applying = optimizer.apply_gradients(context, gradient, weights);
        co_await applying;
      };
      job.train(optimizer, step);
    };
    const auto* run = given.run.c_str();
    std::array words{"trainer", "--run-dir", run, "--steps", "2", "--world", "virtual"};
    job first{words.size(), words.data()};
    REQUIRE(first.run([&] { train(first, 3); }) == 0);
    auto other = (given.folder / "other").string();
    auto code_of = [&](const std::function<void(job&)>& body) {
      std::array more{"trainer", "--run-dir", other.c_str(), "--resume", run, "--steps", "4"};
      job resumed{more.size(), more.data()};
      return resumed.run([&] { body(resumed); });
    };
    CHECK(code_of([&](job& job) { train(job, 4); }) == bad_checkpoint); // of another model
    CHECK(code_of([](auto&) { throw_failure(errc::not_found, "no data"); }) == misused);
    CHECK(code_of([](auto&) { throw std::runtime_error{"no data"}; }) == failed);
  }

  TEST_CASE("the program's handler of a signal is in its place again when the job has run") {
    static volatile std::sig_atomic_t taken = 0;
    auto before = std::signal(SIGTERM, [](int) { taken = taken + 1; });
    arguments given;
    test::taken_output output;
    job job{given.words.size(), given.words.data()};
    CHECK(job.run([] {}) == 0);
    std::raise(SIGTERM);
    CHECK(taken == 1);
    std::signal(SIGTERM, before);
  }
}

} // namespace job_test
