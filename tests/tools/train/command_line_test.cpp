// SPDX-License-Identifier: Apache-2.0
// Goal: flags, file and defaults end up in the right order of strength, and each wrong command line
// is answered by one clear line. Method: whole command lines.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/train/command_line.hpp"

#include <vector>

namespace train_command_line_test {

namespace {

using namespace troupe;

expected<train_command> parse(std::vector<std::string> arguments) {
  std::vector<const char*> pointers{"train"};
  for (const auto& argument : arguments)
    pointers.push_back(argument.c_str());
  return parse_train_options(static_cast<int>(pointers.size()), pointers.data());
}

std::string message_of(std::vector<std::string> arguments) {
  const auto refused = parse(std::move(arguments));
  REQUIRE_FALSE(refused);
  const auto& message = refused.error().message;
  CHECK(message.find('\n') == std::string::npos);
  CHECK_FALSE(message.empty());
  return message;
}

} // namespace

TEST_SUITE("tools/train/command_line") {
  TEST_CASE("has defaults for everything") {
    const auto command = parse({});
    REQUIRE(command);
    CHECK(command->answer.empty());
    CHECK(command->origins.empty());
    CHECK(command->options.replicas == job_defaults::replicas);
    CHECK(command->options.steps == train_defaults::steps);
    CHECK(command->options.learning_rate);
  }

  TEST_CASE("takes values behind a blank or an equals sign") {
    const auto command = parse({"--replicas", "8", "--batch=16", "--slow", "3=2.5", "--slow=1=2",
                                "--epochs", "2", "--hidden", "64,32"});
    REQUIRE(command);
    CHECK(command->options.replicas == 8);
    CHECK(command->options.batch == 16);
    CHECK(command->options.slow == std::vector<slow_replica>{{3, 2.5}, {1, 2}});
    CHECK(command->options.epochs == 2);
    CHECK_FALSE(command->options.steps);
    CHECK(command->options.model.hidden_sizes == std::vector<int64_t>{64, 32});
    CHECK(describe(origin_of(command->origins, "batch")) == "command line");
    CHECK(describe(origin_of(command->origins, "seed")) == "default");
  }

  TEST_CASE("prefers the command line over the file, and the file over the default") {
    test::scratch_folder folder;
    test::write(folder / "run.toml", "replicas = 8\nbatch = 16\nslow = [\"0=2\"]\nsteps = 9\n");
    const auto path = (folder / "run.toml").string();
    const auto command
      = parse({"--batch", "32", "--config", path, "--slow", "1=3", "--epochs", "1"});
    REQUIRE(command);
    CHECK(command->options.replicas == 8);
    CHECK(command->options.batch == 32);
    CHECK(command->options.slow == std::vector<slow_replica>{{1, 3}});
    CHECK(command->options.seed == 1);
    CHECK_FALSE(command->options.steps);
    CHECK(describe(origin_of(command->origins, "replicas")) == path + ":1");
    CHECK(describe(origin_of(command->origins, "batch")) == "command line");
  }

  TEST_CASE("prints help and configuration instead of running") {
    for (const char* flag : {"--help", "-h"}) {
      const auto command = parse({flag});
      REQUIRE(command);
      CHECK(command->answer.find("Usage: troupe train") != std::string::npos);
    }
    const auto dump = parse({"--dump-config", "--seed", "7"});
    REQUIRE(dump);
    CHECK(dump->answer.find("\nseed = 7 ") != std::string::npos);
  }

  TEST_CASE("prints a configuration that it reads back") {
    test::scratch_folder folder;
    const auto first
      = parse({"--dump-config", "--slow", "3=2.5", "--policy", "cancel", "--epochs", "3"});
    REQUIRE(first);
    test::write(folder / "run.toml", first->answer);
    const auto second = parse({"--config", (folder / "run.toml").string()});
    REQUIRE(second);
    CHECK(second->options == first->options);
  }

  TEST_CASE("a file that names a run to go on with is refused, for that run has its own options") {
    test::scratch_folder folder;
    const auto path = (folder / "run.toml").string();
    test::write(folder / "run.toml", "batch = 16\nresume = \"runs/old\"\n");
    CHECK(message_of({"--config", path})
          == path
               + ":2: resume: --config and --resume exclude each other: a run that goes on has "
                 "the options of its config.toml; leave out this line, or --config");
  }

  TEST_CASE("the configuration of a run that goes on starts a new run") {
    test::scratch_folder folder;
    const auto run = folder.path().string();
    test::write(folder / "config.toml", "batch = 16\nresume = \"runs/older\"\n");
    const auto resumed = parse({"--resume", run, "--dump-config"});
    REQUIRE(resumed);
    CHECK(resumed->options.resume == run);
    CHECK(resumed->answer.find("\n# resume = \"" + run + '"') != std::string::npos);
    test::write(folder / "again.toml", resumed->answer);
    const auto again = parse({"--config", (folder / "again.toml").string()});
    REQUIRE(again);
    CHECK(again->options.batch == 16);
    CHECK(again->options.resume.empty());
  }

  TEST_CASE("names the nearest option for an unknown one") {
    CHECK(message_of({"--replcas", "3"})
          == "unknown option '--replcas'; the nearest known one is '--replicas'");
    CHECK(message_of({"--learning_rate=0.1"})
          == "unknown option '--learning_rate'; the nearest known one is '--learning-rate'");
    CHECK(message_of({"--dump"}).find("'--dump") != std::string::npos);
    CHECK(message_of({"-q"}).find("unknown option '-q'") == 0);
    CHECK(message_of({"---"}).find("unknown option") == 0);
    CHECK(message_of({"text.txt"}).find("unexpected argument 'text.txt'") == 0);
  }

  TEST_CASE("a perceptron may be asked for without hidden layers") {
    const auto command = parse({"--hidden", "none"});
    REQUIRE(command);
    CHECK(command->options.model.hidden_sizes.empty());
  }

  TEST_CASE("says which option lacks its value") {
    CHECK(message_of({"--batch"}) == "--batch needs a value");
    CHECK(message_of({"--config"}) == "--config needs a value");
    CHECK(message_of({"--text="}) == "--text needs a value");
  }

  TEST_CASE("refuses values that make no sense, with one line") {
    CHECK(message_of({"--replicas", "-1"})
          == "--replicas must be a whole number from 1 to 100,000, not '-1'");
    CHECK(message_of({"--batch", "0"}).find("--batch must be") == 0);
    CHECK(message_of({"--steps", "5", "--epochs", "1"}).find("exclude each other")
          != std::string::npos);
    CHECK(message_of({"--aggregate", "5", "--policy", "cancel"}).find("--aggregate 5") == 0);
    CHECK(message_of({"--slow", "4=2"}).find("--slow 4=2") == 0);
    CHECK(message_of({"--config", "/nonexistent.toml"}).find("--config: cannot read") == 0);
    for (const char* widths : {"8,", ",8", "8,,8", ","})
      CHECK(message_of({"--hidden", widths}).starts_with("--hidden must be whole numbers"));
    CHECK(message_of({"--job-id", std::string(4097, 'x')})
          == "--job-id has 4097 bytes; give a name of at most 4096");
    CHECK(parse({"--job-id", std::string(4096, 'x')}));
  }

  TEST_CASE("a run to go on with that is not there is the fault of --resume") {
    test::scratch_folder folder;
    auto message = message_of({"--resume", (folder / "nope").string()});
    CHECK(message.starts_with("--resume: "));
    CHECK(message.find("nope") != std::string::npos);
    CHECK(message_of({"--config", (folder / "nope").string()}).starts_with("--config: "));
    test::write(folder / "config.toml", "");
    message = message_of({"--resume", folder.path().string()});
    CHECK(message.starts_with("--resume: "));
    CHECK(message.find("config.toml is empty") != std::string::npos);
  }
}

} // namespace train_command_line_test
