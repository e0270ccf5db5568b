// SPDX-License-Identifier: Apache-2.0
// Goal: each kind of option takes what it should, refuses what it should not, and prints what it
// reads. Method: a table of texts per kind.
#include "tests/doctest.hpp"
#include "tools/options/config_file.hpp"
#include "tools/train/train_options.hpp"

namespace option_value_test {

namespace {

using namespace troupe;

expected<void> give(train_options& options, std::string_view key,
                    const option_value::text_list& texts) {
  command_options all;
  add_options(all, options);
  const auto* option = all.find(key);
  REQUIRE(option != nullptr);
  return all.store(*option, texts, {option_origin::source::command_line, ""});
}

void refuses(std::string_view key, const std::string& text) {
  train_options options;
  const auto refused = give(options, key, {text});
  CAPTURE(key);
  CAPTURE(text);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_argument);
  CHECK(refused.error().message.find("--" + std::string{key} + " must be ") == 0);
  CHECK(refused.error().message.find("'" + text + "'") != std::string::npos);
}

} // namespace

TEST_SUITE("tools/options/option_value") {
  TEST_CASE("takes values of each kind") {
    train_options options;
    CHECK(give(options, "text", {"a b.txt"}));
    CHECK(give(options, "replicas", {"100000"}));
    CHECK(give(options, "initial-tokens", {"0"}));
    CHECK(give(options, "held-out", {"0.25"}));
    CHECK(give(options, "learning-rate", {"1e-3"}));
    CHECK(give(options, "hidden", {"64, 32"}));
    CHECK(give(options, "optimizer", {"adamw"}));
    CHECK(give(options, "optimizer-setting", {"beta1=0.8"}));
    CHECK(give(options, "policy", {"latest_token"}));
    CHECK(give(options, "world", {"virtual"}));
    CHECK(options.text == "a b.txt");
    CHECK(options.replicas == 100'000);
    CHECK(options.initial_tokens == 0);
    CHECK(options.held_out == 0.25);
    CHECK(options.learning_rate == 1e-3);
    CHECK(options.model.hidden_sizes == std::vector<int64_t>{64, 32});
    CHECK(options.optimizer == "adamw");
    CHECK(options.optimizer_settings == std::vector<optimizer_setting>{{"beta1", 0.8}});
    CHECK(options.policy == sync_policy::latest_token);
    CHECK(options.world == world_kind::virtual_time);
  }

  TEST_CASE("refuses what is no whole number in range") {
    for (const char* text :
         {"", "x", "-1", "0", "1.5", "1e3", " 4", "4 ", "0x10", "100001", "99999999999999999999"})
      refuses("replicas", text);
  }

  TEST_CASE("refuses what is no number in range") {
    for (const char* text : {"", "x", "0", "-0.1", "0.91", "nan", "inf", "1,5"})
      refuses("held-out", text);
    refuses("hidden-dropout", "1");
    refuses("learning-rate", "0");
  }

  TEST_CASE("refuses unknown names and bad lists") {
    refuses("policy", "fifo");
    refuses("policy", "Tensorflow");
    refuses("hidden", "64,x");
    refuses("hidden", "64,,32");
    refuses("hidden", "0");
  }

  TEST_CASE("an empty text is no value, whether a word or a file gives it") {
    train_options options;
    CHECK(give(options, "text", {""}).error()
          == error{errc::invalid_argument, "--text needs a value"});
    command_options all;
    add_options(all, options);
    CHECK(read_config("\ndevice = \"\"\n", "run.toml", all).error()
          == error{errc::invalid_argument, "run.toml:2: device needs a value"});
  }

  TEST_CASE("refuses a slow replica without a sensible factor") {
    for (const char* text : {"", "3", "3=", "=2", "3=0.9", "3=nan", "3=inf", "x=2", "-1=2", "3=2x"})
      refuses("slow", text);
  }

  TEST_CASE("replaces a list as a whole") {
    train_options options;
    CHECK(give(options, "slow", {"1=2", "3=2.5"}));
    CHECK(options.slow == std::vector<slow_replica>{{1, 2}, {3, 2.5}});
    CHECK(give(options, "slow", {"0=4"}));
    CHECK(options.slow == std::vector<slow_replica>{{0, 4}});
  }

  TEST_CASE("keeps the last of several single values") {
    train_options options;
    CHECK(give(options, "batch", {"8", "16"}));
    CHECK(options.batch == 16);
  }

  TEST_CASE("takes a value away where no text is given") {
    train_options options;
    options.slow = {{3, 2.5}};
    options.slack = 3;
    options.run_dir = "run";
    for (const auto* key : {"slow", "slack", "run-dir"})
      CHECK(give(options, key, {}));
    CHECK(options == train_options{});
  }

  TEST_CASE("stores again what it gives as texts") {
    train_options from;
    from.slow = {{3, 2.5}, {1, 7}};
    from.model.hidden_sizes = {64, 32};
    from.held_out = 0.123456789012345;
    from.policy = sync_policy::cancel;
    from.slack = 4;
    command_options all;
    add_options(all, from);
    train_options to;
    for (const auto& option : all.options())
      CHECK(give(to, option.key, option.value.texts()));
    CHECK(to == from);
  }

  TEST_CASE("prints for a file what it prints for a person, in quotes and brackets") {
    train_options options;
    options.text = "quote\" back\\slash\n";
    options.slow = {{3, 2.5}};
    options.model.hidden_sizes = {64, 32};
    command_options all;
    add_options(all, options);
    const auto toml = [&](std::string_view key) { return toml_text(*all.find(key)); };
    CHECK(toml("text") == R"("quote\" back\\slash\u000a")");
    CHECK(toml("slow") == R"(["3=2.5"])");
    CHECK(toml("hidden") == "[64, 32]");
    CHECK(toml("policy") == R"("tensorflow")");
    CHECK(toml("replicas") == "4");
    CHECK(toml("run-dir").empty());
    CHECK(toml("initial-tokens").empty());
  }
}

} // namespace option_value_test
