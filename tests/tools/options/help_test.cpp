// SPDX-License-Identifier: Apache-2.0
// Goal: the help names every option and fits a terminal. Method: look for each name, measure each
// line.
#include "tests/doctest.hpp"
#include "tools/cluster.hpp"
#include "tools/launch/command_line.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/advise.hpp"
#include "tools/sim/command_line.hpp"
#include "tools/sim/replay.hpp"
#include "tools/train/command_line.hpp"

#include <fmt/format.h>
#include <sstream>

namespace help_test {

namespace {

constexpr const char* asked[]{"command", "--help"};

std::string train_help() {
  return troupe::parse_train_options(2, asked)->answer;
}

std::string cluster_help() {
  return troupe::parse_cluster_options(2, asked)->answer;
}

std::string sim_help() {
  return troupe::parse_sim_options(2, asked)->answer;
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    longest = std::max(longest, line.size());
  return longest;
}

} // namespace

TEST_SUITE("tools/options/help") {
  using namespace troupe;

  TEST_CASE("lists every option once, with its default, in lines of at most 80 letters") {
    const auto text = train_help();
    train_options options;
    command_options all;
    add_options(all, options);
    for (const auto& option : all.options()) {
      const auto name = "\n  --" + std::string{option.key} + " ";
      const auto place = text.find(name);
      CAPTURE(option.key);
      REQUIRE(place != std::string::npos);
      CHECK(text.find(name, place + 1) == std::string::npos);
    }
    CHECK(text.find("[tensorflow]") != std::string::npos);
    CHECK(text.find("\nSignals:\n") != std::string::npos);
    CHECK(text.find("\n  SIGUSR1 ") != std::string::npos);
    CHECK(text.find("Exit codes:") != std::string::npos);
    CHECK(longest_line(text) <= 80);
    CHECK(text.find("--checkpoint-every STEPS\n") != std::string::npos); // fills its column
  }

  TEST_CASE("states the defaults that the code has") {
    train_options options;
    command_options all;
    add_options(all, options);
    const auto* steps = all.find("steps");
    REQUIRE(steps != nullptr);
    CHECK(steps->when_empty.find(std::to_string(train_defaults::steps) + " ") == 0);
    const auto* rate = all.find("learning-rate");
    REQUIRE(rate != nullptr);
    const auto for_adam = fmt::format("{} for adam", default_learning_rate("adam"));
    const auto for_sgd = fmt::format("{} for sgd", default_learning_rate("sgd"));
    CHECK(rate->when_empty.find(for_adam) != std::string::npos);
    CHECK(rate->when_empty.find(for_sgd) != std::string::npos);
  }

  TEST_CASE("lists every optimizer, and a learning rate for each") {
    const auto text = train_help();
    for (const auto name : choice_names<update_rule>()) {
      CAPTURE(name);
      CHECK(text.find(name) != std::string::npos);
      CHECK(default_learning_rate(name) > 0);
    }
  }

  TEST_CASE("lists what the lab knows in lines of at most 80 letters") {
    const auto text = sim_help();
    CHECK(longest_line(text) <= 80);
    CHECK(text.find("\n  pareto(minimum, alpha[, cap])\n") != std::string::npos);
    CHECK(text.find("--compute DIST") != std::string::npos);
  }

  TEST_CASE("tells what launching, advice and replays take") {
    const auto replay_help = parse_replay_options(2, asked)->answer;
    const auto advise_help = parse_advise_options(2, asked)->answer;
    for (const auto& text : {parse_launch_options(2, asked)->answer, advise_help, replay_help}) {
      CHECK(longest_line(text) <= 80);
      CHECK(text.find("Exit codes:") != std::string::npos);
    }
    for (const auto& text : {sim_help(), advise_help})
      CHECK(text.find("\n  --iterations CURVE ") != std::string::npos);
    CHECK(sim_help().find("\n  --sweep ") != std::string::npos);
    CHECK(advise_help.find("\n  --sweep ") == std::string::npos);
    CHECK(advise_help.find("[tensorflow]") == std::string::npos);
    CHECK(replay_help.find("--repair N,N,...") != std::string::npos);
  }

  TEST_CASE("tells what troupe cluster takes") {
    CHECK(longest_line(cluster_help()) <= 80);
    for (const auto* name : {"cluster", "task", "cluster-file", "kubernetes", "kubernetes-api",
                             "port-base", "interface", "json"})
      CHECK(cluster_help().find(fmt::format("\n  --{}", name)) != std::string::npos);
  }

  TEST_CASE("breaks lines at blanks") {
    CHECK(wrapped("", 2, 10).empty());
    CHECK(wrapped("one two", 2, 10) == "one two");
    CHECK(wrapped("one two three", 2, 10) == "one two\n  three");
    CHECK(wrapped("extraordinarily long", 2, 10) == "extraordinarily\n  long");
  }
}

} // namespace help_test
