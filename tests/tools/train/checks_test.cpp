// SPDX-License-Identifier: Apache-2.0
// Goal: options that cannot work together are refused with a way out. Method: each rule from both
// sides.
#include "tests/doctest.hpp"
#include "tools/options/command_options.hpp"
#include "tools/train/checks.hpp"

namespace train_checks_test {

namespace {

using namespace troupe;

std::string message_of(const train_options& options) {
  const auto refused = check(options, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_argument);
  return refused.error().message;
}

} // namespace

TEST_SUITE("tools/train/checks") {
  TEST_CASE("accepts the defaults") {
    CHECK(check(train_options{}, {}));
  }

  TEST_CASE("accepts fewer replicas than needed under tensorflow, if tokens make up for them") {
    train_options options;
    options.aggregate = 6;
    CHECK(check(options, {}));
    options.initial_tokens = 2;
    CHECK(check(options, {}));
    options.initial_tokens = 1;
    const auto message = message_of(options);
    CHECK(message.find("--aggregate 6 needs at least 2 spare tokens") == 0);
    CHECK(message.find("raise --initial-tokens from 1") != std::string::npos);
  }

  TEST_CASE("refuses to begin with fewer replicas than a step needs, or where tokens grow stale") {
    train_options options;
    options.min_replicas = 3;
    CHECK(message_of(options).find("--min-replicas 3: policy tensorflow puts tokens") == 0);
    options.policy = sync_policy::latest_token;
    CHECK(check(options, {}));
    options.min_replicas = 2;
    CHECK(message_of(options)
          == "--min-replicas 2: a step needs the gradients of 3 replicas: raise it to 3, or lower "
             "--aggregate");
    options.min_replicas = 5;
    CHECK(message_of(options)
          == "--min-replicas 5: there are 4 replicas: lower it, or raise --replicas");
  }

  TEST_CASE("refuses fewer replicas than needed under the other policies") {
    train_options options;
    options.aggregate = 5;
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      options.policy = policy;
      const auto message = message_of(options);
      CHECK(message.find("--aggregate 5 can never be reached by 4 replicas") == 0);
      CHECK(message.find("--policy tensorflow") != std::string::npos);
    }
    options.aggregate = 4;
    CHECK(check(options, {}));
  }

  TEST_CASE("refuses what is no device, and a GPU in a world whose time it does not know") {
    train_options options;
    options.device = "gpu:0,gpu:1"; // which may not be there: that is asked later
    CHECK(check(options, {}));
    options.world = world_kind::virtual_time;
    CHECK(message_of(options).find("--device gpu:0,gpu:1 does not go with --world virtual") == 0);
    options.device = "cpu";
    CHECK(check(options, {}));
    options.device = "tpu:0";
    CHECK(message_of(options)
          == "--device: 'tpu:0' is no device: give cpu, or GPUs as in gpu:0,gpu:1");
  }

  TEST_CASE("refuses variables on a GPU where owners have copies of them, and on several of those "
            "that each process has") {
    train_options options;
    options.variable_device = "gpu:0";
    CHECK(check(options, {}));
    options.replicate_owners = 2;
    CHECK(message_of(options)
          == "--variable-device gpu:0: variables that two parameter servers hold lie in the host's "
             "memory: take cpu, or --replicate-owners 1");
    options.replicate_owners = 1;
    options.strategy = strategy_kind::mirrored;
    options.aggregate = options.replicas;
    CHECK(check(options, {}));
    options.variable_device = "gpu:0,gpu:1";
    CHECK(message_of(options)
          == "--variable-device gpu:0,gpu:1: with --strategy mirrored the variables of a process "
             "lie on one GPU, or with a copy on each where replicas compute: name one, or those of "
             "--device");
    options.device = "gpu:0,gpu:1";
    CHECK(check(options, {}));
    options.device = "cpu";
    options.variable_device = "cpu";
    CHECK(check(options, {}));
    options.variable_device = "gpu:0,gpu:0";
    CHECK(message_of(options).find("--variable-device: ") == 0);
  }

  TEST_CASE("refuses NCCL without GPUs") {
    train_options options;
    options.strategy = strategy_kind::multi_worker_mirrored;
    options.aggregate = options.replicas;
    options.communication = communication_implementation::nccl;
    CHECK(message_of(options)
          == "--communication nccl adds up gradients on GPUs, and replicas are to compute on the "
             "processor: name GPUs, as in --device gpu:0, or take --communication auto");
    options.device = "gpu:0"; // which may not be there: that is asked later
    CHECK(check(options, {}));
    options.device = "cpu";
    for (auto by_messages :
         {communication_implementation::ring, communication_implementation::automatic}) {
      options.communication = by_messages;
      CHECK(check(options, {}));
    }
  }

  TEST_CASE("refuses what does not go with an asynchronous policy") {
    train_options options;
    options.policy = sync_policy::ssp;
    CHECK(message_of(options).find("--aggregate is 3, but under policy ssp every gradient is")
          == 0);
    options.aggregate = 1;
    options.slack = 2;
    CHECK(check(options, {}));
    options.policy = sync_policy::k_async;
    CHECK(message_of(options).find("--slack has no meaning under policy k_async") == 0);
    options.slack.reset();
    options.replicate_owners = 2;
    CHECK(check(options, {}));
    options.aggregate = 5;
    CHECK(message_of(options).find("--aggregate 5 can never be reached by 4 replicas") == 0);
    options.policy = sync_policy::k_batch_async;
    CHECK(check(options, {}));
  }

  TEST_CASE("refuses to choose backups where late replicas are not dropped at once") {
    train_options options;
    options.backups = backup_kind::dynamic;
    CHECK(message_of(options).find("--backups dynamic does not go with policy tensorflow") == 0);
    options.policy = sync_policy::latest_token;
    options.curvature = 0.5;
    CHECK(check(options, {}));
    options.backups = backup_kind::fixed;
    CHECK(message_of(options).find("--curvature has no meaning where a step needs a fixed") == 0);
  }

  TEST_CASE("refuses initial tokens where there is no queue") {
    train_options options;
    options.initial_tokens = 0;
    CHECK(check(options, {}));
    options.policy = sync_policy::cancel;
    CHECK(message_of(options).find("--initial-tokens has no meaning under policy cancel") == 0);
  }

  TEST_CASE("refuses a slow replica that is not there, or there twice") {
    train_options options;
    options.slow = {{3, 2.5}};
    CHECK(check(options, {}));
    options.slow = {{4, 2.5}};
    CHECK(message_of(options)
          == "--slow 4=2.5 names a replica that is not there: the last one is 3");
    options.slow = {{1, 2}, {1, 3}};
    CHECK(message_of(options) == "--slow names replica 1 twice");
  }

  TEST_CASE("refuses settings that an optimizer has not, that are there twice or out of range") {
    train_options options;
    options.optimizer_settings = {{"beta1", 0.8}, {"clip_norm", 1}};
    CHECK(check(options, {}));
    options.optimizer_settings = {{"beta", 0.8}};
    CHECK(message_of(options)
          == "--optimizer-setting beta=0.8: adam has no such setting; the nearest it has is "
             "'beta1'");
    options.optimizer_settings = {{"learning_rate", 0.1}};
    CHECK(message_of(options)
          == "--optimizer-setting learning_rate=0.1: this is the option --learning-rate");
    options.optimizer_settings = {{"clip_global_norm", 1}};
    CHECK(message_of(options)
          == "--optimizer-setting clip_global_norm=1: this is the option --clip-global-norm");
    options.optimizer_settings = {{"beta1", 0.8}, {"clip_norm", 1}, {"beta1", 0.9}};
    CHECK(message_of(options) == "--optimizer-setting sets beta1 twice");
    const option_origins of_file{
      {"optimizer-setting", {option_origin::source::file, "run.toml:3"}}};
    CHECK(check(options, of_file).error().message
          == "run.toml:3: optimizer-setting sets beta1 twice");
    options.optimizer_settings = {{"beta1", 1}};
    CHECK(message_of(options)
          == "--optimizer-setting: optimizer adam: beta1 is 1: it must be at least 0 and below 1");
    for (const auto name : choice_names<update_rule>()) {
      options.optimizer = name;
      options.optimizer_settings.clear();
      CHECK(check(options, {}));
    }
  }

  TEST_CASE("refuses a warm-up that lasts as long as the run") {
    train_options options;
    options.steps = 10;
    options.warm_up = 9;
    CHECK(check(options, {}));
    options.warm_up = 10;
    CHECK(message_of(options) == "--warm-up 10 leaves no step for training: there are 10");
  }

  TEST_CASE("refuses a tower of layers") {
    train_options options;
    options.model.hidden_sizes.assign(language_model_layers_max, 8);
    CHECK(check(options, {}));
    options.model.hidden_sizes.push_back(8);
    CHECK(message_of(options).find("--hidden lists 65 layers") == 0);
  }

  TEST_CASE("names the place of an option that came from a file") {
    train_options options;
    options.slow = {{9, 2}};
    const option_origins origins{{"slow", {option_origin::source::file, "run.toml:4"}}};
    const auto refused = check(options, origins);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("run.toml:4: slow 9=2 names") == 0);
  }

  TEST_CASE("fills in what follows from other options") {
    train_options options;
    REQUIRE(settle(options, {}));
    CHECK(options.steps == train_defaults::steps);
    CHECK(options.learning_rate == default_learning_rate("adam"));
    train_options with_epochs;
    with_epochs.epochs = 2;
    with_epochs.optimizer = "sgd";
    REQUIRE(settle(with_epochs, {}));
    CHECK_FALSE(with_epochs.steps);
    CHECK(with_epochs.learning_rate == default_learning_rate("sgd"));
  }

  TEST_CASE("where replicas meet, every update takes all gradients") {
    const option_origin command_line{option_origin::source::command_line, ""};
    option_origins origins{{"strategy", command_line}};
    train_options options;
    options.strategy = strategy_kind::multi_worker_mirrored;
    REQUIRE(fit_strategy(options, origins));
    CHECK(options.aggregate == 4);
    fit(options, origins, 3);
    CHECK(options.replicas == 3);
    CHECK(options.aggregate == 3);
    CHECK(check(options, origins));
  }

  TEST_CASE("under ssp every gradient is an update, unless more are asked for") {
    const option_origin command_line{option_origin::source::command_line, ""};
    option_origins origins{{"policy", command_line}};
    train_options options;
    options.policy = sync_policy::ssp;
    REQUIRE(fit_strategy(options, origins));
    CHECK(options.aggregate == 1);
    fit(options, origins, 3);
    CHECK(options.replicas == 3);
    CHECK(options.aggregate == 1);
    CHECK(check(options, origins));
    origins.emplace("aggregate", command_line);
    options.aggregate = 3;
    REQUIRE(fit_strategy(options, origins));
    CHECK(message_of(options).find("--aggregate is 3, but under policy ssp") == 0);
  }

  TEST_CASE("refuses what has no meaning where replicas meet, unless the strategy overrides it") {
    const option_origin file{option_origin::source::file, "run.toml:1"};
    const option_origin command_line{option_origin::source::command_line, ""};
    train_options options;
    options.strategy = strategy_kind::mirrored;
    options.aggregate = 2;
    options.slack = 7;
    option_origins same{{"strategy", file}, {"aggregate", file}};
    const auto refused = fit_strategy(options, same);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message
          == "run.toml:1: aggregate has no meaning under strategy mirrored, where every update "
             "takes the gradients of all replicas: leave it out, or take --strategy "
             "parameter_server");
    option_origins weaker{{"strategy", command_line}, {"aggregate", file}, {"slack", file}};
    REQUIRE(fit_strategy(options, weaker));
    CHECK(options.aggregate == 4);
    CHECK_FALSE(options.slack);
    CHECK_FALSE(weaker.contains("slack"));
    options.strategy = strategy_kind::parameter_server;
    options.aggregate = 2;
    REQUIRE(fit_strategy(options, same));
    CHECK(options.aggregate == 2);
  }

  TEST_CASE("refuses what has no meaning for the model, unless the model overrides it") {
    const option_origin file{option_origin::source::file, "run.toml:1"};
    const option_origin command_line{option_origin::source::command_line, ""};
    train_options options;
    options.model.layers = 5;
    option_origins same{{"layers", command_line}};
    const auto refused = fit_model(options, same);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message
          == "--layers has no meaning for a perceptron: leave it out, or choose the other --model");
    options.model.kind = model_kind::transformer;
    options.model.hidden_sizes = {7};
    option_origins weaker{{"model", command_line}, {"hidden", file}, {"layers", file}};
    REQUIRE(fit_model(options, weaker));
    CHECK(options.model.hidden_sizes == std::vector<int64_t>{512});
    CHECK_FALSE(weaker.contains("hidden"));
    CHECK(options.model.layers == 5);
  }

  TEST_CASE("refuses options of what is not learnt, and forgets them from weaker sources") {
    const option_origin command_line{option_origin::source::command_line, ""};
    const option_origin file{option_origin::source::file, "run.toml:1"};
    train_options options;
    options.data = "set";
    option_origins same{{"data", command_line}};
    const auto refused = fit_learned(options, same);
    REQUIRE_FALSE(refused);
    CHECK(
      refused.error().message
      == "--data has no meaning where a language is learnt: leave it out, or take --learn images");
    options.learn = learned_kind::images;
    options.text = "text";
    option_origins weaker{{"learn", command_line}, {"text", file}, {"data", file}};
    REQUIRE(fit_learned(options, weaker));
    CHECK(options.text == train_defaults::text);
    CHECK_FALSE(weaker.contains("text"));
    CHECK(options.data == "set");
  }

  TEST_CASE("no option of a language model is left where images are learnt") {
    const option_origin command_line{option_origin::source::command_line, ""};
    const option_origin file{option_origin::source::file, "run.toml:1"};
    train_options options;
    options.learn = learned_kind::images;
    options.model.recompute = true;
    option_origins weaker{{"learn", command_line}, {"recompute", file}};
    REQUIRE(fit_learned(options, weaker));
    CHECK_FALSE(options.model.recompute);
    option_origins same{{"learn", command_line}, {"recompute", command_line}};
    CHECK(fit_learned(options, same).error().message
          == "--recompute has no meaning where images are learnt: leave it out, or take --learn "
             "language");
    command_options all;
    add_options(all, options);
    for (const auto& option : all.options())
      if (option.section == "model") {
        option_origins given{{"learn", command_line}, {option.key, file}};
        REQUIRE(fit_learned(options, given));
        CHECK_MESSAGE(given.size() == 1, option.key);
      }
  }

  TEST_CASE("images need a data set and some convolutions, and have defaults of their own") {
    train_options options;
    options.learn = learned_kind::images;
    CHECK(message_of(options)
          == "--learn images needs a data set: name the folder of its files with --data DIR");
    options.data = "set";
    CHECK(check(options, {}));
    for (size_t count : {size_t{0}, image_model_layers_max + 1}) {
      options.images.filters.assign(count, 8);
      CHECK(message_of(options)
            == "--filters lists " + std::to_string(count) + " convolutions; 1 to 16 are possible");
    }
    REQUIRE(settle(options, {}));
    CHECK(options.steps == train_defaults::image_steps);
    CHECK(options.learning_rate == default_learning_rate("adam") / 10);
  }

  TEST_CASE("a transformer has a context, a dropout and a learning rate of its own") {
    const option_origin command_line{option_origin::source::command_line, ""};
    train_options options;
    options.model.kind = model_kind::transformer;
    REQUIRE(settle(options, {}));
    CHECK(options.model == usual_transformer());
    CHECK(options.learning_rate == default_learning_rate("adam") / 10);
    train_options given;
    given.model.kind = model_kind::transformer;
    given.model.context = 7;
    given.model.hidden_dropout = 0.5;
    given.learning_rate = 0.25;
    REQUIRE(settle(given, {{"context", command_line}, {"hidden-dropout", command_line}}));
    CHECK(given.model.context == 7);
    CHECK(given.model.hidden_dropout == 0.5);
    CHECK(given.learning_rate == 0.25);
  }

  TEST_CASE("refuses heads that do not divide the width") {
    train_options options;
    options.model.kind = model_kind::transformer;
    CHECK(check(options, {}));
    options.model.heads = 3;
    CHECK(message_of(options)
          == "--width 128 cannot be shared evenly by --heads 3: take a multiple");
    options.model.kind = model_kind::perceptron;
    CHECK(check(options, {}));
  }

  TEST_CASE("lets the stronger source decide between steps and epochs") {
    const option_origin file{option_origin::source::file, "run.toml:1"};
    const option_origin command_line{option_origin::source::command_line, ""};
    train_options options;
    options.steps = 5;
    options.epochs = 2;
    auto epochs_win = options;
    REQUIRE(settle(epochs_win, {{"steps", file}, {"epochs", command_line}}));
    CHECK_FALSE(epochs_win.steps);
    CHECK(epochs_win.epochs == 2);
    auto steps_win = options;
    REQUIRE(settle(steps_win, {{"steps", command_line}, {"epochs", file}}));
    CHECK(steps_win.steps == 5);
    CHECK_FALSE(steps_win.epochs);
    const auto refused = settle(options, {{"steps", command_line}, {"epochs", command_line}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "--steps and --epochs exclude each other: give one of them");
    epochs_win.backups = backup_kind::dynamic;
    CHECK(settle(epochs_win, {{"epochs", command_line}}).error().message
          == "--epochs does not go with --backups dynamic, whose steps take a varying number of "
             "gradients: take --steps");
  }
}

} // namespace train_checks_test
