// SPDX-License-Identifier: Apache-2.0
// Goal: what is printed reads back to the same options. Method: print, read, compare.
#include "tests/doctest.hpp"
#include "tools/options/config_file.hpp"
#include "tools/train/checks.hpp"
#include "tools/train/train_options.hpp"

namespace train_options_test {

namespace {

using namespace troupe;

train_options read_back(const std::string& text) {
  train_options options;
  options.batch = 77; // So that a line left out would show.
  command_options all;
  add_options(all, options);
  const auto done = read_config(text, "dump.toml", all);
  REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
  return options;
}

} // namespace

TEST_SUITE("tools/train/train_options") {
  TEST_CASE("reads back to the defaults") {
    train_options options;
    REQUIRE(settle(options, {}));
    CHECK(read_back(config_text(options, {})) == options);
  }

  TEST_CASE("reads back to anything") {
    train_options options;
    options.text = "a \"quoted\"\tfile\\name";
    options.held_out = 0.123456789012345;
    options.replicas = 50;
    options.aggregate = 46;
    options.policy = sync_policy::latest_token;
    options.initial_tokens = 9;
    options.slow = {{3, 2.5}, {49, 1e6}};
    options.epochs = 12;
    options.batch = 1;
    options.optimizer = "momentum";
    options.optimizer_settings = {{"nesterov", 1}, {"momentum", 0.1234567890123456}};
    options.learning_rate = 1e-20;
    options.learning_rate_decay = decay_kind::cosine;
    options.warm_up = 100;
    options.precision = product_precision::f16;
    options.seed = 9'200'000'000'000'000'000u;
    options.evaluate_every = 0;
    options.model = {.context = 32,
                     .embedding_size = 8,
                     .hidden_sizes = {},
                     .embedding_dropout = 0.5,
                     .hidden_dropout = 0.25};
    options.run_dir = "runs/\xc3\xa9t\xc3\xa9";
    options.world = world_kind::virtual_time;
    options.deadline_seconds = 0.25;
    options.on_loss = loss_reaction::stop;
    options.rejoin_timeout_seconds = 7.5;
    options.replicate_owners = 2;
    CHECK(read_back(config_text(options, {})) == options);
  }

  TEST_CASE("leaves out what has no meaning under the strategy, so that it reads back") {
    train_options options;
    options.strategy = strategy_kind::mirrored;
    options.aggregate = options.replicas;
    REQUIRE(settle(options, {}));
    const auto text = config_text(options, {});
    CHECK(text.find("strategy = \"mirrored\"") != std::string::npos);
    for (const auto* key : {"aggregate", "policy", "on-loss"})
      CHECK(text.find(std::string{key} + " = ") == std::string::npos);
    CHECK(read_back(text).strategy == strategy_kind::mirrored);
  }

  TEST_CASE("leaves out what has no meaning for the model, so that it reads back") {
    train_options options;
    options.model = {.kind = model_kind::transformer,
                     .context = 9,
                     .hidden_dropout = 0.25,
                     .layers = 3,
                     .heads = 2,
                     .width = 16,
                     .recompute = true};
    REQUIRE(settle(options, {{"context", {}}, {"hidden-dropout", {}}}));
    const auto text = config_text(options, {});
    for (const auto* key : {"hidden", "embedding", "embedding-dropout"})
      CHECK(text.find("\n" + std::string{key} + " = ") == std::string::npos);
    CHECK(read_back(text) == options);
    CHECK(config_text({}, {}).find("layers") == std::string::npos);
  }

  TEST_CASE("leaves out what has no meaning for what is learnt, so that it reads back") {
    train_options options;
    options.learn = learned_kind::images;
    options.data = "set";
    options.images = {.filters = {8}, .dense = 9};
    REQUIRE(settle(options, {}));
    const auto text = config_text(options, {});
    for (const auto* key : {"text", "model", "context"})
      CHECK(text.find("\n" + std::string{key} + " = ") == std::string::npos);
    CHECK(read_back(text) == options);
    CHECK(config_text({}, {}).find("filters") == std::string::npos);
  }

  TEST_CASE("notes where each value came from") {
    train_options options;
    options.batch = 128;
    REQUIRE(settle(options, {}));
    option_origins origins;
    origins["batch"] = {option_origin::source::command_line, ""};
    origins["seed"] = {option_origin::source::file, "run.toml:3"};
    const auto text = config_text(options, origins);
    CHECK(text.find("batch = 128                                     # command line\n")
          != std::string::npos);
    CHECK(text.find("seed = 1                                        # run.toml:3\n")
          != std::string::npos);
    CHECK(text.find("replicas = 4                                    # default\n")
          != std::string::npos);
    CHECK(text.find("# run-dir: runs/<date-time>\n") != std::string::npos);
  }

  TEST_CASE("leaves the folder of the run out on request, so that the file starts another run") {
    train_options options;
    options.run_dir = "runs/old";
    REQUIRE(settle(options, {}));
    CHECK(read_back(config_text(options, {}, true)).run_dir == "runs/old");
    const auto text = config_text(options, {}, false);
    CHECK(read_back(text).run_dir.empty());
    CHECK(text.find("# run-dir = \"runs/old\"") != std::string::npos);
  }
}

} // namespace train_options_test
