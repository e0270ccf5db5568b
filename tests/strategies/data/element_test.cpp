// SPDX-License-Identifier: Apache-2.0
// Goal: elements become a batch, or say why they cannot. Method: small tensors, views among them.
#include "strategies/data/element.hpp"
#include "tests/doctest.hpp"

namespace element_test {

TEST_SUITE("strategies/data/element") {
  using namespace troupe;

  TEST_CASE("stacks tensors and lists texts") {
    const auto table = make_tensor({2, 2}, {1, 2, 3, 4});
    const std::vector<element> elements{
      {{table, make_tensor({}, {10})}, {"a"}},
      {{table.transpose(), make_tensor({}, {20})}, {"b"}},
    };
    auto batch = stack(elements);
    REQUIRE(batch);
    REQUIRE(batch->tensors.size() == 2);
    CHECK(batch->tensors[0].extents() == shape{2, 2, 2});
    const auto values = batch->tensors[0].values<float>();
    CHECK(std::vector(values.begin(), values.end()) == std::vector<float>{1, 2, 3, 4, 1, 3, 2, 4});
    CHECK(batch->tensors[1].extents() == shape{2});
    CHECK(batch->tensors[1].values<float>()[1] == 20);
    CHECK(batch->texts == std::vector<std::string>{"a", "b"});
  }

  TEST_CASE("stacks tensors without elements, and elements without tensors") {
    CHECK(stack(std::vector<element>{{{zeros({0, 3})}, {}}, {{zeros({0, 3})}, {}}})
            ->tensors[0]
            .extents()
          == shape{2, 0, 3});
    CHECK(stack(std::vector<element>{{{}, {"a"}}, {{}, {"b"}}})->texts.size() == 2);
  }

  TEST_CASE("refuses elements that differ, and names them") {
    const auto complaint = [](const element& first, const element& second) {
      auto batch = stack(std::vector<element>{first, second});
      REQUIRE_FALSE(batch);
      CHECK(batch.error().code == errc::invalid_argument);
      return batch.error().message;
    };
    CHECK(
      complaint({{zeros({3})}, {}}, {{zeros({4})}, {}})
      == "batch: tensor 0 of element 1 of the batch is f32 [4], of the first f32 [3]: make them "
         "alike with map()");
    CHECK(
      complaint({{zeros({3})}, {}}, {{zeros({3}, dtype::f64)}, {}})
      == "batch: tensor 0 of element 1 of the batch is f64 [3], of the first f32 [3]: make them "
         "alike with map()");
    CHECK(complaint({{zeros({3})}, {}}, {{}, {""}})
          == "batch: element 1 of the batch has 0 tensors and 1 texts, the first has 1 and 0");
  }
}

} // namespace element_test
