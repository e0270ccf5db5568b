// SPDX-License-Identifier: Apache-2.0
// Goal: a vector holds what a function makes of each element. Method: ranges of all kinds by hand.
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"

#include <concepts>
#include <forward_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mapped_test {

using namespace troupe;

TEST_SUITE("messages/mapped") {
  TEST_CASE("each element is mapped, in the order of its range") {
    const int numbers[] = {3, 1, 2};
    auto halves = mapped(std::span{numbers}, [](int number) { return number / 2.; });
    CHECK(halves == std::vector<double>{1.5, 0.5, 1});
    CHECK(halves.capacity() == 3); // made in one piece
    const std::forward_list<int> list{1, 2};
    CHECK(mapped(list, std::identity{}) == std::vector<int>{1, 2}); // it has no size
    CHECK(mapped(std::vector<int>{}, std::identity{}).empty());
  }

  TEST_CASE("a member of each element is taken by its pointer, and copied") {
    struct task {
      std::string name;

      [[nodiscard]] size_t length() const { return name.size(); }
    };

    const std::vector<task> tasks{{"chief"}, {"ps"}};
    auto names = mapped(tasks, &task::name);
    static_assert(std::same_as<decltype(names), std::vector<std::string>>);
    CHECK(names == std::vector<std::string>{"chief", "ps"});
    CHECK(tasks[0].name == "chief");
    CHECK(mapped(tasks, &task::length) == std::vector<size_t>{5, 2});
    const auto shared = std::make_shared<task>(tasks[1]);
    CHECK(mapped(std::vector{shared}, &task::name) == std::vector<std::string>{"ps"});
  }

  TEST_CASE("the elements are of another type if it is named") {
    const std::map<std::string, int> ages{{"a", 1}, {"b", 2}};
    auto names = mapped<std::string_view>(
      ages, [](const auto& age) -> auto& { return age.first; });
    static_assert(std::same_as<decltype(names), std::vector<std::string_view>>);
    CHECK(names == std::vector<std::string_view>{"a", "b"});
    CHECK(names[0].data() == ages.begin()->first.data());
  }

  TEST_CASE("the function may change the elements, and keep pointers to them") {
    std::vector<int> numbers{1, 2};
    auto places = mapped(numbers, [](int& number) { return &++number; });
    CHECK(places == std::vector<int*>{&numbers[0], &numbers[1]});
    CHECK(numbers == std::vector<int>{2, 3});
  }
}

} // namespace mapped_test
