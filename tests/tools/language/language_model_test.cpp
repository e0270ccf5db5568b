// SPDX-License-Identifier: Apache-2.0
// Goal: the language model's batches, variables, losses and refusals are what they say.
// Method: tiny texts and shapes by hand; a few serial steps must learn a text that repeats.
#include "actors/gpu/cpu_device.hpp"
#include "tests/doctest.hpp"
#include "tests/tools/small_language.hpp"
#include "tools/language/language_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace language_model_test {

using namespace troupe;
using test::list;

namespace {

constexpr std::string_view pangram = "the quick brown fox jumps over the lazy dog. ";

/// Small enough to learn in a moment, and without dropout.
const language_model_config small{.context = 3,
                                  .embedding_size = 4,
                                  .hidden_sizes = {16},
                                  .embedding_dropout = 0,
                                  .hidden_dropout = 0};

/// variable -= rate * gradient.
void descend(tensor& variable, const gradient& given, float rate) {
  auto values = variable.mutable_values<float>();
  if (const auto* dense = std::get_if<tensor>(&given)) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] -= rate * dense->values<float>()[i];
    return;
  }
  const auto& rows = std::get<indexed_slices>(given);
  auto width = static_cast<size_t>(rows.dense_extents[1]);
  auto indices = rows.indices.values<int64_t>();
  for (size_t i = 0; i < indices.size() * width; ++i)
    values[static_cast<size_t>(indices[i / width]) * width + i % width]
      -= rate * rows.values.values<float>()[i];
}

} // namespace

TEST_SUITE("tools/language/language_model") {
  TEST_CASE("a step on a device comes to the bits of one without") {
    auto config = small;
    config.embedding_dropout = 0.3;
    config.hidden_dropout = 0.3;
    auto variables = test::variables_of(config, 1);
    auto batch = draw_batch(config, pangram, 16, {1, "batch"});
    random_key key{1, "dropout"};
    auto plain = differentiate(config, variables, batch, key);
    cpu_device device{0};
    auto there = differentiate_on(device.stream(0), config, variables, batch, key);
    REQUIRE(plain);
    REQUIRE(there);
    CHECK(nats_of(there->loss) == plain->loss);
    for (size_t i = 1; i < variables.size(); ++i) {
      auto a = std::get<tensor>(plain->gradients[i]).values<float>();
      auto b = std::get<tensor>(there->gradients[i]).values<float>();
      CHECK(std::ranges::equal(a, b));
    }
    CHECK(list(std::get<indexed_slices>(there->gradients[0]).indices)
          == list(std::get<indexed_slices>(plain->gradients[0]).indices));
    CHECK(device.uploads() == variables.size());
  }

  TEST_CASE("a step on a device that has no room says so") {
    auto variables = test::variables_of(small, 1);
    cpu_device device{0, {.bytes_max = 1024}};
    auto refused = differentiate_on(device.stream(0), small, variables,
                                    draw_batch(small, pangram, 4, {1, "batch"}), {1, "dropout"});
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::resource);
    CHECK(refused.error().message.find("cpu:0 has no room for") == 0);
  }

  TEST_CASE("a batch holds each byte and the bytes before it, the nearest first") {
    auto batch = batch_at(small, "abcde", 1, 4);
    CHECK(list(batch.next) == std::vector<int64_t>{'b', 'c', 'd'});
    CHECK(list(batch.contexts) == std::vector<int64_t>{'a', 0, 0, 'b', 'a', 0, 'c', 'b', 'a'});
    CHECK(batch.contexts.extents() == shape{3, 3});
    CHECK(list(batch_at(small, "\xff\xfe", 1, 2).contexts).front() == 255);
    CHECK(batch_at(small, "abc", 3, 3).next.element_count() == 0);
  }

  TEST_CASE("a drawn batch depends on its key alone, and reaches every byte of the text") {
    random_key key{1, "batch", 2, 3};
    auto batch = draw_batch(small, pangram, 1000, key);
    CHECK(list(batch.contexts) == list(draw_batch(small, pangram, 1000, key).contexts));
    CHECK(list(batch.next) != list(draw_batch(small, pangram, 1000, {1, "batch", 2, 4}).next));
    CHECK(list(batch.next) != list(draw_batch(small, pangram, 1000, {1, "batch", 3, 3}).next));
    for (size_t at = 0; at < pangram.size(); ++at) {
      auto wanted = batch_at(small, pangram, at, at + 1);
      auto contexts = list(batch.contexts);
      bool found = false;
      for (size_t row = 0; row < 1000 && !found; ++row)
        found = std::equal(contexts.begin() + static_cast<int64_t>(3 * row),
                           contexts.begin() + static_cast<int64_t>(3 * row + 3),
                           list(wanted.contexts).begin());
      CHECK(found);
    }
  }

  TEST_CASE("the variables have names, shapes, and values that the seed decides") {
    auto variables = initial_values(variables_of(small), 7);
    REQUIRE(variables.size() == 5);
    CHECK(variables[0].name == "embedding");
    CHECK(variables[0].value.extents() == shape{256, 4});
    CHECK(variables[1].name == "hidden_0/weights");
    CHECK(variables[1].value.extents() == shape{12, 16});
    CHECK(variables[2].name == "hidden_0/bias");
    CHECK(variables[2].value.values<float>()[0] == 0);
    CHECK(variables[3].name == "output/weights");
    CHECK(variables[3].value.extents() == shape{16, 256});
    CHECK(variables[4].name == "output/bias");
    auto first
      = [](const std::vector<initial_variable>& from) { return from[1].value.values<float>()[0]; };
    CHECK(first(variables) == first(initial_values(variables_of(small), 7)));
    CHECK(first(variables) != first(initial_values(variables_of(small), 8)));
  }

  TEST_CASE("a model without hidden layers is a model, too") {
    auto config = small;
    config.hidden_sizes.clear();
    auto values = test::variables_of(config, 1);
    CHECK(values.size() == 3);
    auto result = differentiate(config, values, batch_at(config, pangram, 0, 9), {1, "d"});
    REQUIRE(result.has_value());
    CHECK(result->gradients.size() == 3);
  }

  TEST_CASE("the gradients fit the variables, and the embedding's has only the rows of the batch") {
    auto values = test::variables_of(small, 1);
    auto result = differentiate(small, values, batch_at(small, "aabbaa", 3, 6), {1, "d"});
    REQUIRE(result.has_value());
    const auto& rows = std::get<indexed_slices>(result->gradients[0]);
    CHECK(list(rows.indices) == std::vector<int64_t>{'a', 'b'});
    for (size_t i = 1; i < values.size(); ++i)
      CHECK(std::get<tensor>(result->gradients[i]).extents() == values[i].extents());
    // The model has learned nothing yet: about the surprise of an even guess.
    CHECK(result->loss == doctest::Approx(std::log(256)).epsilon(0.2));
  }

  TEST_CASE("dropout is drawn from the key, and evaluation has none") {
    auto config = small;
    config.hidden_dropout = 0.5;
    config.embedding_dropout = 0.5;
    auto values = test::variables_of(config, 1);
    auto batch = batch_at(config, pangram, 0, 20);
    auto loss = [&](uint64_t step) {
      return differentiate(config, values, batch, {1, "dropout", 0, step})->loss;
    };
    CHECK(loss(1) == loss(1));
    CHECK(loss(1) != loss(2));
    auto plain = differentiate(small, values, batch, {1, "dropout"});
    CHECK(*bits_per_byte(config, values, pangram.substr(0, 20), 0)
          == doctest::Approx(plain->loss / std::numbers::ln2));
  }

  TEST_CASE("the evaluation is the mean over all bytes, in pieces of any size") {
    std::string text;
    while (text.size() < 1500)
      text += pangram;
    auto values = test::variables_of(small, 1);
    auto whole = differentiate(small, values, batch_at(small, text, 100, text.size()), {1, "d"});
    CHECK(*bits_per_byte(small, values, text, 100)
          == doctest::Approx(whole->loss / std::numbers::ln2));
  }

  TEST_CASE("a few hundred steps of gradient descent learn a text that repeats") {
    std::string text;
    while (text.size() < 2000)
      text += pangram;
    auto values = test::variables_of(small, 1);
    auto training = std::string_view{text}.substr(0, 1500);
    for (uint64_t step = 0; step < 400; ++step) {
      auto batch = draw_batch(small, training, 64, {1, "batch", 0, step});
      auto result = differentiate(small, values, batch, {1, "dropout", 0, step});
      REQUIRE(result.has_value());
      for (size_t i = 0; i < values.size(); ++i)
        descend(values[i], result->gradients[i], 0.5F);
    }
    CHECK(*bits_per_byte(small, values, text, 1500) < 0.2);
  }

  TEST_CASE("a stop request ends the work") {
    std::stop_source source;
    source.request_stop();
    auto values = test::variables_of(small, 1);
    auto batch = batch_at(small, pangram, 0, 5);
    CHECK(differentiate(small, values, batch, {1, "d"}, source.get_token()).error().code
          == errc::cancelled);
    CHECK(bits_per_byte(small, values, pangram, 0, source.get_token()).error().code
          == errc::cancelled);
  }

  TEST_CASE("variables of another model, and an empty text, are refused by name") {
    auto values = test::variables_of(small, 1);
    auto batch = batch_at(small, pangram, 0, 5);
    auto few = std::span(values).first(4);
    CHECK(differentiate(small, few, batch, {1, "d"}).error().message
          == "the language model has 5 variables, not 4");
    CHECK(bits_per_byte(small, few, pangram, 0).error().code == errc::invalid_argument);
    CHECK(bits_per_byte(small, values, pangram, pangram.size()).error().code
          == errc::invalid_argument);
    auto other = small;
    other.context = 5;
    CHECK(differentiate(other, values, batch, {1, "d"}).error().code == errc::invalid_argument);
  }

  TEST_CASE("a configuration out of range is refused by name") {
    auto refused = [](language_model_config config, std::string_view part) {
      auto result = validate(config);
      REQUIRE_FALSE(result.has_value());
      CHECK(result.error().code == errc::invalid_argument);
      CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, result.error().message);
    };
    CHECK(validate(language_model_config{}).has_value());
    CHECK(validate(language_model_config{.hidden_sizes = {}}).has_value());
    refused({.context = 0}, "context is 0, not within [1, 65536]");
    refused({.context = -3}, "context is -3");
    refused({.embedding_size = 65537}, "embedding size is 65537");
    refused({.hidden_sizes = {8, 0}}, "hidden size is 0");
    refused({.hidden_sizes = std::vector<int64_t>(65, 8)}, "more than 64 hidden layers");
    refused({.embedding_dropout = 1}, "embedding dropout");
    refused({.hidden_dropout = -0.1}, "hidden dropout");
    refused({.hidden_dropout = std::nan("")}, "hidden dropout");
  }
}

} // namespace language_model_test
