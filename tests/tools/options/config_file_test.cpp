// SPDX-License-Identifier: Apache-2.0
// Goal: a file sets what it names, and every slip in it is an error with its line. Method: small
// files as texts.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/options/config_file.hpp"
#include "tools/train/train_options.hpp"

namespace config_file_test {

namespace {

using namespace troupe;

struct fixture {
  fixture() { add_options(all, options); }

  train_options options;
  command_options all;
};

std::string message_of(std::string_view toml) {
  fixture of_train;
  const auto refused = read_config(toml, "run.toml", of_train.all);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_argument);
  return refused.error().message;
}

} // namespace

TEST_SUITE("tools/options/config_file") {
  TEST_CASE_FIXTURE(fixture, "sets what it names and notes the line") {
    REQUIRE(read_config("# a comment\n"
                        "replicas = 8\n"
                        "held-out = 0.2\n"
                        "deadline = 5\n"
                        "policy = \"cancel\"\n"
                        "slow = [\"3=2.5\", \"1=2\"]\n"
                        "[model]\n"
                        "hidden = [64, 32]\n",
                        "run.toml", all));
    CHECK(options.replicas == 8);
    CHECK(options.held_out == 0.2);
    CHECK(options.deadline_seconds == 5);
    CHECK(options.policy == sync_policy::cancel);
    CHECK(options.slow == std::vector<slow_replica>{{3, 2.5}, {1, 2}});
    CHECK(options.model.hidden_sizes == std::vector<int64_t>{64, 32});
    CHECK(options.batch == train_defaults::batch);
    CHECK(describe(origin_of(all.origins(), "replicas")) == "run.toml:2");
    CHECK(describe(origin_of(all.origins(), "hidden")) == "run.toml:8");
    CHECK(describe(origin_of(all.origins(), "batch")) == "default");
  }

  TEST_CASE_FIXTURE(fixture, "changes nothing if it is empty") {
    REQUIRE(read_config("", "run.toml", all));
    CHECK(options == train_options{});
    CHECK(all.origins().empty());
  }

  TEST_CASE("names file, line and nearest key for an unknown one") {
    CHECK(message_of("batch = 8\nlearning_rate = 0.1\n")
          == "run.toml:2: unknown key 'learning_rate'; the nearest known one is 'learning-rate'");
    CHECK(message_of("\n[model]\ncontxt = 8\n")
          == "run.toml:3: unknown key 'contxt' in [model]; the nearest known one is 'context' in "
             "[model]");
    CHECK(message_of("context = 8\n")
          == "run.toml:1: unknown key 'context'; the nearest known one is 'context' in [model]");
    CHECK(message_of("[model]\nseed = 8\n")
          == "run.toml:2: unknown key 'seed' in [model]; the nearest known one is 'seed'");
    CHECK(message_of("[modle]\nseed = 8\n").find("run.toml:1: unknown key 'modle'") == 0);
    CHECK(message_of("config = \"other.toml\"\n").find("unknown key 'config'")
          != std::string::npos);
  }

  TEST_CASE("names file and line for a value of the wrong type") {
    CHECK(message_of("\nreplicas = \"8\"\n")
          == "run.toml:2: replicas must be a number, not a text");
    CHECK(message_of("text = 8\n") == "run.toml:1: text must be a text in quotes, not a number");
    CHECK(message_of("seed = true\n") == "run.toml:1: seed must be a number, not true or false");
    CHECK(message_of("seed = 2026-01-01\n")
          == "run.toml:1: seed must be a number, not a date or time");
    CHECK(message_of("slow = \"3=2\"\n")
          == "run.toml:1: slow must be a list of texts, such as [\"3=2.5\"], not a text");
    CHECK(message_of("slow = [3]\n").find("must be a list of texts") != std::string::npos);
    CHECK(message_of("[model]\nhidden = 64\n").find("must be a list of whole numbers")
          != std::string::npos);
    CHECK(message_of("[model]\nhidden = [\"64\"]\n").find("must be a list") != std::string::npos);
    CHECK(message_of("model = 3\n") == "run.toml:1: [model] must be a table, not a number");
    CHECK(message_of("[seed]\nx = 1\n") == "run.toml:1: seed must be a number, not a table");
  }

  TEST_CASE("names file and line for a value out of range") {
    CHECK(message_of("\n\nbatch = 0\n")
          == "run.toml:3: batch must be a whole number from 1 to 1,000,000, not '0'");
    CHECK(message_of("batch = 2.5\n").find("must be a whole number") != std::string::npos);
    CHECK(message_of("policy = \"fifo\"\n").find("one of tensorflow, latest_token, cancel")
          != std::string::npos);
    CHECK(message_of("held-out = nan\n").find("run.toml:1: held-out must be") == 0);
  }

  TEST_CASE("names file and line for what is no TOML") {
    CHECK(message_of("batch = 8\nseed = = 3\n").find("run.toml:2: ") == 0);
    CHECK(message_of("batch = 8\nbatch = 9\n").find("run.toml:2: ") == 0);
    CHECK(message_of("\xff\xfe").find("run.toml:1: ") == 0);
  }

  TEST_CASE_FIXTURE(fixture, "says which file cannot be read") {
    test::scratch_folder folder;
    const auto path = (folder / "none.toml").string();
    const auto missing = read_config_file(path, "--config", all);
    REQUIRE_FALSE(missing);
    CHECK(
      missing.error()
      == error{errc::not_found, "--config: cannot read " + path + ": No such file or directory"});
    const auto a_folder = read_config_file(folder.path().string(), "--config", all);
    REQUIRE_FALSE(a_folder);
    CHECK(a_folder.error().message.find("is a folder, not a file") != std::string::npos);
  }

  TEST_CASE_FIXTURE(fixture, "refuses each beginning of a file that was written whole") {
    test::scratch_folder folder;
    const auto path = (folder / "config.toml").string();
    const auto whole = config_text(all, {}, {.program = "troupe train"});
    test::write(path, whole);
    CHECK(read_config_file(path, "--resume", all));
    test::write(path, whole + "[more]\n");
    CHECK_FALSE(read_config_file(path, "--resume", all)); // for another reason
    for (auto length = whole.find('\n') / 2; length + 2 < whole.size(); ++length) {
      test::write(path, whole.substr(0, length));
      const auto refused = read_config_file(path, "--resume", all);
      CAPTURE(length);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().message.starts_with("--resume: the end of " + path + " is missing"));
    }
  }

  TEST_CASE_FIXTURE(fixture, "takes a file that promises no end") {
    test::scratch_folder folder;
    const auto path = (folder / "config.toml").string();
    test::write(path, "# Options of `troupe train`; read back by: troupe train --config FILE\n"
                      "replicas = 7\n");
    REQUIRE(read_config_file(path, "--resume", all));
    CHECK(options.replicas == 7);
  }

  TEST_CASE("passes over the options of another program, where those of a job are enough") {
    test::scratch_folder folder;
    const auto path = (folder / "config.toml").string();
    test::write(path, "width = 8\nreplicas = 7\n[model]\nlayers = 2\n");
    job_options options;
    command_options of_a_job;
    add_options(of_a_job, options);
    REQUIRE(read_known_options(path, "--run", of_a_job));
    CHECK(options.replicas == 7);
    test::write(path, "width = 8\nreplicas = 0\n");
    const auto refused = read_known_options(path, "--run", of_a_job);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find(":2: replicas must be") != std::string::npos);
  }
}

} // namespace config_file_test
