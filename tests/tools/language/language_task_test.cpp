// SPDX-License-Identifier: Apache-2.0
// Goal: replicas of a simulation draw from the parts of a text that are theirs, and are judged by
// what they have not seen. Method: texts of one letter a part.
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"
#include "tools/language/language_task.hpp"

namespace language_task_test {

using namespace troupe;

namespace {

std::shared_ptr<const std::string> text_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

std::vector<tensor> values_of(const learning_task& task) {
  return mapped(task.variables, [](const auto& variable) { return variable.second; });
}

} // namespace

TEST_SUITE("tools/language/language_task") {
  TEST_CASE("with data of its own, a replica learns its own part") {
    language_options options{.text = text_of(std::string(100, 'a') + std::string(100, 'b')),
                             .replicas = 2,
                             .own_data = true};
    auto task = language_task(options).value();
    auto values = values_of(task);
    for (uint64_t batch = 0; batch < 20; ++batch)
      values = descended(values, task.differentiate(values, 0, batch).gradients, 0.5);
    const uint32_t first[] = {0};
    const uint32_t second[] = {1};
    CHECK(task.evaluate(values, first) < 0.5);
    CHECK(task.evaluate(values, second) > 4);
  }

  TEST_CASE("without, all replicas share the text, and every batch is drawn by its number") {
    language_options options{.text = text_of(std::string(400, 'x')), .replicas = 3};
    auto task = language_task(options).value();
    auto values = values_of(task);
    const uint32_t all[] = {0, 1, 2};
    const uint32_t one[] = {2};
    CHECK(task.evaluate(values, all) == task.evaluate(values, one));
    CHECK(task.differentiate(values, 1, 4).loss == task.differentiate(values, 1, 4).loss);
  }

  TEST_CASE("a text that is too short to be divided is refused") {
    language_options options{
      .text = text_of(std::string(100, 'x')), .replicas = 3, .own_data = true};
    auto refused = language_task(options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message
          == "the text has 100 bytes, which makes 33 for each of 3 parts; 40 are needed: take a "
             "longer one");
  }
}

} // namespace language_task_test
