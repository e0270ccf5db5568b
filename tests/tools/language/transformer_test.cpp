// SPDX-License-Identifier: Apache-2.0
// Goal: the transformer's windows, variables, losses and refusals are what they say.
// Method: tiny texts and shapes by hand; a few serial steps must learn a text that repeats.
#include "actors/gpu/cpu_device.hpp"
#include "tests/doctest.hpp"
#include "tests/tools/small_language.hpp"
#include "tools/language/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

namespace transformer_test {

using namespace troupe;
using test::list;

namespace {

constexpr std::string_view pangram = "the quick brown fox jumps over the lazy dog. ";

/// Small enough to learn in a moment, and without dropout.
const language_model_config tiny{.kind = model_kind::transformer,
                                 .context = 8,
                                 .hidden_dropout = 0,
                                 .layers = 2,
                                 .heads = 2,
                                 .width = 12};

std::string repeated(size_t bytes) {
  std::string text;
  while (text.size() < bytes)
    text += pangram;
  return text;
}

/// Values that a training with this seed comes to, on a text that repeats.
const std::vector<tensor>& trained() {
  static const auto values = [] {
    auto result = test::variables_of(tiny, 1);
    const auto text = repeated(1500);
    for (uint64_t step = 0; step < 1500; ++step) {
      auto batch = draw_batch(tiny, text, 16, {1, "batch", 0, step});
      auto computed = differentiate(tiny, result, batch, {1, "dropout", 0, step});
      REQUIRE(computed.has_value());
      for (size_t i = 0; i < result.size(); ++i) {
        auto to = result[i].mutable_values<float>();
        auto by = std::get<tensor>(computed->gradients[i]).values<float>();
        for (size_t j = 0; j < to.size(); ++j)
          to[j] -= 0.5F * by[j];
      }
    }
    return result;
  }();
  return values;
}

/// The cross-entropy of a prediction, in bits.
double surprise(const std::vector<double>& logits, char next) {
  double sum = 0;
  for (double logit : logits)
    sum += std::exp(logit);
  return std::log2(sum) - logits[static_cast<unsigned char>(next)] / std::numbers::ln2;
}

std::string sampled(const std::vector<tensor>& values, const sampling& how) {
  std::string text;
  REQUIRE(sample_text(tiny, values, how, [&](char byte) { text += byte; }));
  return text;
}

} // namespace

TEST_SUITE("tools/language/transformer") {
  TEST_CASE("a batch holds windows of the text, and the same a byte later") {
    auto config = tiny;
    config.context = 3;
    auto batch = batch_at(config, "abcdefgh", 1, 7);
    CHECK(batch.contexts.extents() == shape{2, 3});
    CHECK(list(batch.contexts) == std::vector<int64_t>{'a', 'b', 'c', 'd', 'e', 'f'});
    CHECK(list(batch.next) == std::vector<int64_t>{'b', 'c', 'd', 'e', 'f', 'g'});
    CHECK(list(batch_at(config, "\xff\xfe\xfd", 0, 3).contexts)
          == std::vector<int64_t>{0, 255, 254});
  }

  TEST_CASE("a drawn batch depends on its key alone, and reaches both ends of the text") {
    auto config = tiny;
    config.context = 3;
    random_key key{1, "batch", 2, 3};
    auto batch = draw_batch(config, "abcdef", 100, key);
    CHECK(batch.contexts.extents() == shape{100, 3});
    CHECK(list(batch.contexts) == list(draw_batch(config, "abcdef", 100, key).contexts));
    CHECK(list(batch.contexts)
          != list(draw_batch(config, "abcdef", 100, {1, "batch", 2, 4}).contexts));
    auto contexts = list(batch.contexts), next = list(batch.next);
    CHECK(std::ranges::count(contexts, 'a') > 0);
    CHECK(std::ranges::count(next, 'f') > 0);
    for (size_t i = 0; i < contexts.size(); ++i)
      CHECK(next[i] == contexts[i] + 1);
    CHECK(list(draw_batch(config, "abcd", 1, key).next) == std::vector<int64_t>{'b', 'c', 'd'});
  }

  TEST_CASE("the variables have names, shapes, and values that the seed decides") {
    auto variables = initial_values(variables_of(tiny), 7);
    REQUIRE(variables.size() == 28);
    auto is = [&](size_t at, std::string_view name, const shape& extents) {
      CHECK(variables[at].name == name);
      CHECK(variables[at].value.extents() == extents);
    };
    is(0, "embedding", {256, 12});
    is(1, "positions", {8, 12});
    is(2, "layer_0/attention_norm/gain", {12});
    is(4, "layer_0/attention/weights", {12, 36});
    is(6, "layer_0/projection/weights", {12, 12});
    is(9, "layer_0/hidden_norm/bias", {12});
    is(10, "layer_0/hidden/weights", {12, 48});
    is(24, "layer_1/output/weights", {48, 12});
    is(27, "norm/bias", {12});
    CHECK(variables[2].value.values<float>()[3] == 1);
    CHECK(variables[5].value.values<float>()[3] == 0);
    auto first
      = [](const std::vector<initial_variable>& from) { return from[4].value.values<float>()[0]; };
    CHECK(first(variables) == first(initial_values(variables_of(tiny), 7)));
    CHECK(first(variables) != first(initial_values(variables_of(tiny), 8)));
    CHECK(element_count(variables_of(tiny))
          == 256 * 12 + 8 * 12 + 2 * (12 * 12 * 12 + 13 * 12) + 2 * 12);
    CHECK(describe(tiny) == "transformer, context 8, layers 2, heads 2, width 12");
    CHECK(describe(language_model_config{}) == "perceptron, context 5, embedding 32, hidden 512");
    CHECK(guesses_per_example(tiny) == 8);
    CHECK(guesses_per_example(language_model_config{}) == 1);
  }

  TEST_CASE("the gradients fit the variables, and the table of bytes has a dense one") {
    auto values = test::variables_of(tiny, 1);
    auto result = differentiate(tiny, values, batch_at(tiny, pangram, 0, 24), {1, "d"});
    REQUIRE(result.has_value());
    REQUIRE(result->gradients.size() == values.size());
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(std::get<tensor>(result->gradients[i]).extents() == values[i].extents());
    // The model has learned nothing yet: about the surprise of an even guess.
    CHECK(result->loss == doctest::Approx(std::log(256)).epsilon(0.01));
  }

  TEST_CASE("a step on a device comes to the bits of one without") {
    auto config = tiny;
    config.hidden_dropout = 0.3;
    auto values = test::variables_of(config, 1);
    auto batch = draw_batch(config, pangram, 4, {1, "batch"});
    auto plain = differentiate(config, values, batch, {1, "dropout"});
    cpu_device device{0};
    auto there = differentiate_on(device.stream(0), config, values, batch, {1, "dropout"});
    REQUIRE(plain);
    REQUIRE(there);
    CHECK(nats_of(there->loss) == plain->loss);
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(std::ranges::equal(std::get<tensor>(plain->gradients[i]).values<float>(),
                               std::get<tensor>(there->gradients[i]).values<float>()));
    CHECK(differentiate(config, values, batch, {1, "dropout", 0, 1})->loss != plain->loss);
  }

  TEST_CASE("layers that are computed again come to the same bits") {
    auto config = tiny;
    config.hidden_dropout = 0.3;
    auto values = test::variables_of(config, 1);
    auto batch = draw_batch(config, pangram, 4, {1, "batch"});
    auto plain = differentiate(config, values, batch, {1, "dropout"});
    config.recompute = true;
    auto again = differentiate(config, values, batch, {1, "dropout"});
    REQUIRE(plain);
    REQUIRE(again);
    CHECK(again->loss == plain->loss);
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(std::ranges::equal(std::get<tensor>(plain->gradients[i]).values<float>(),
                               std::get<tensor>(again->gradients[i]).values<float>()));
  }

  TEST_CASE("the evaluation is the mean over all bytes, in windows of which the last is shorter") {
    const auto& values = trained();
    const auto text = repeated(700);
    double bits = 0;
    for (size_t at = 100; at < text.size(); ++at) { // of which each sees its window
      auto begin = at - (at - 100) % 8;
      bits += surprise(*next_byte_logits(tiny, values, text.substr(begin - 1, at - begin + 1)),
                       text[at]);
    }
    CHECK(*bits_per_byte(tiny, values, text, 100)
          == doctest::Approx(bits / static_cast<double>(text.size() - 100)));
  }

  TEST_CASE("a guess depends on the last bytes only, as many as the context") {
    const auto& values = trained();
    auto guess = [&](std::string_view text) { return *next_byte_logits(tiny, values, text); };
    CHECK(guess("12345678") == guess("x12345678"));
    CHECK(guess("12345678") != guess("22345678"));
    CHECK(guess("") == guess(std::string_view{"\0", 1}));
  }

  TEST_CASE("some steps of gradient descent learn a text that repeats, and to write it") {
    CHECK(*bits_per_byte(tiny, trained(), repeated(2000), 1500) < 0.7);
    auto text = sampled(trained(), {.bytes = 90, .temperature = 0, .prompt = "the quick bro"});
    CHECK(repeated(200).substr(13, 90) == text);
  }

  TEST_CASE("a sampled text depends on the seed, and a temperature of 0 draws nothing") {
    auto sample = [](double temperature, uint64_t seed) {
      return sampled(trained(), {.bytes = 40, .temperature = temperature, .seed = seed});
    };
    CHECK(sample(2, 1) == sample(2, 1));
    CHECK(sample(2, 1) != sample(2, 2));
    CHECK(sample(0, 1) == sample(0, 2));
    CHECK(sampled(trained(), {.bytes = 0, .prompt = "the"}).empty());
  }

  TEST_CASE("a byte is drawn by its share, which a low temperature sharpens") {
    const double logits[] = {std::log(1.0), std::log(2.0), std::log(5.0)};
    CHECK(chosen_byte(logits, 1, 0) == 0);
    CHECK(chosen_byte(logits, 1, 0.124) == 0);
    CHECK(chosen_byte(logits, 1, 0.126) == 1);
    CHECK(chosen_byte(logits, 1, 0.374) == 1);
    CHECK(chosen_byte(logits, 1, 0.376) == 2);
    CHECK(chosen_byte(logits, 1, 0.999999) == 2);
    CHECK(chosen_byte(logits, 0.5, 0.126) == 1); // shares of 1, 4 and 25 of 30
    CHECK(chosen_byte(logits, 0.5, 0.17) == 2);
    CHECK(chosen_byte(logits, 0, 0) == 2);
  }

  TEST_CASE("a model that has diverged is not sampled") {
    auto values = test::variables_of(tiny, 1);
    values.back().mutable_values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    auto refused = sample_text(tiny, values, {.bytes = 1}, [](char) { FAIL("drawn"); });
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("its training has diverged") != std::string::npos);
  }

  TEST_CASE("variables of another model, and values out of range, are refused by name") {
    auto values = test::variables_of(tiny, 1);
    auto few = std::span(values).first(27);
    constexpr auto line = "the language model has 28 variables, not 27";
    auto batch = batch_at(tiny, pangram, 0, 8);
    CHECK(differentiate(tiny, few, batch, {1, "d"}).error().message == line);
    CHECK(bits_per_byte(tiny, few, pangram, 0).error().message == line);
    CHECK(next_byte_logits(tiny, few, pangram).error().message == line);
    CHECK(sample_text(tiny, few, {.bytes = 1}, [](char) {}).error().message == line);
    auto longer = tiny;
    longer.context = 16;
    CHECK(bits_per_byte(longer, values, pangram, 0).error().message
          == "the language model has positions [16, 12], not [8, 12]");
    auto refused = [](language_model_config config, std::string_view part) {
      config.kind = model_kind::transformer;
      auto result = validate(config);
      REQUIRE_FALSE(result.has_value());
      CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, result.error().message);
    };
    CHECK(validate(usual_transformer()).has_value());
    refused({.hidden_dropout = 1}, "hidden dropout");
    refused({.layers = 0}, "layers is 0, not within [1, 64]");
    refused({.layers = 65}, "layers is 65");
    refused({.heads = 0}, "heads is 0");
    refused({.width = 0}, "width is 0");
    refused({.heads = 5}, "a width of 128 cannot be shared evenly by 5 heads");
  }
}

} // namespace transformer_test
