// SPDX-License-Identifier: Apache-2.0
// A vector of what a function makes of each element of a range.
#pragma once

#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// The vector of `function(element)` for the elements of a range, in its order; `function` may be a
/// pointer to a member. The vector's elements have the type that the function returns, without
/// reference and const, or the type `Element`, to which that converts.
template <class Element = void, class Range, class Function>
[[nodiscard]] auto mapped(Range&& range, Function&& function) {
  using made = std::invoke_result_t<Function&, decltype(*std::begin(range))>;
  std::vector<std::conditional_t<std::is_void_v<Element>, std::remove_cvref_t<made>, Element>> all;
  if constexpr (requires { std::size(range); }) all.reserve(std::size(range));
  for (auto&& element : range)
    all.push_back(std::invoke(function, std::forward<decltype(element)>(element)));
  return all;
}

} // namespace troupe
