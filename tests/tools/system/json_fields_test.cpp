// SPDX-License-Identifier: Apache-2.0
// Goal: what another program says tells a terminal nothing, and surprises no reader. Method: texts
// with control characters, and fields that are not what they should be.
#include "tests/doctest.hpp"
#include "tools/system/json_fields.hpp"

#include <nlohmann/json.hpp>

namespace json_fields_test {

using namespace troupe;

TEST_SUITE("tools/system/json_fields") {
  TEST_CASE("a field is what its kind says, or nothing") {
    auto object = nlohmann::json::parse(
      R"({"text": "a\u001b[2J", "number": 1.5, "large": 1e300, "count": 7, "negative": -7})");
    CHECK(text_at(object, "text") == "a?[2J");
    CHECK(text_at(object, "number").empty());
    CHECK(text_at(object, "none").empty());
    CHECK(number_at(object, "number") == 1.5);
    CHECK(number_at(object, "large") == 1e9);
    CHECK(number_at(object, "negative") == -7);
    CHECK_FALSE(number_at(object, "text"));
    CHECK(count_at(object, "count") == 7);
    for (const auto* key : {"negative", "number", "text", "none"})
      CHECK_FALSE(count_at(object, key));
  }
}

} // namespace json_fields_test
