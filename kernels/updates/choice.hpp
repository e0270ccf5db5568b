// SPDX-License-Identifier: Apache-2.0
// Choosing one alternative of a variant by its name, and checking what it is set to.
#pragma once

#include "kernels/updates/rules/setting.hpp"
#include "messages/errors/errc.hpp"
#include "messages/errors/printable.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

// A choice is a variant of plain structs, each with a static `name` and a static template
// `visit_settings(self, visit)` that shows each setting to `visit(name, member, range)`. A member
// is a number, a bool, or a vector of numbers.

/// The name of the chosen alternative, as users write it.
template <class... Alternative>
[[nodiscard]] constexpr std::string_view name_of(const std::variant<Alternative...>& choice) {
  return std::visit([](const auto& chosen) { return chosen.name; }, choice);
}

/// The alternatives at their defaults, in their order; but for an alternative without defaults,
/// whose code is not of this library.
template <class Choice>
[[nodiscard]] const std::vector<Choice>& choice_defaults() {
  static const auto defaults = []<size_t... Index>(std::index_sequence<Index...>) {
    std::vector<Choice> made;
    auto add = [&]<size_t At>(std::in_place_index_t<At> index) {
      if constexpr (std::default_initializable<std::variant_alternative_t<At, Choice>>)
        made.emplace_back(index);
    };
    (add(std::in_place_index<Index>), ...);
    return made;
  }
  (std::make_index_sequence<std::variant_size_v<Choice>>{});
  return defaults;
}

/// The names of `choice_defaults`, in their order.
template <class Choice>
[[nodiscard]] std::span<const std::string_view> choice_names() {
  static const auto names = [] {
    std::vector<std::string_view> list;
    for (const auto& choice : choice_defaults<Choice>())
      list.push_back(name_of(choice));
    return list;
  }();
  return names;
}

/// The alternative of that name, at its defaults.
/// @param kind The kind of choice, for the refusal: "optimizer".
/// Errors: not_found, listing those there are.
template <class Choice>
[[nodiscard]] expected<Choice> choice_of_name(std::string_view kind, std::string_view name) {
  const auto& defaults = choice_defaults<Choice>();
  for (const auto& choice : defaults)
    if (name_of(choice) == name) return choice;
  std::string line{"no "};
  line.append(kind).append(" '").append(name).append("'; there are");
  for (auto known : choice_names<Choice>())
    line.append(known == name_of(defaults[0]) ? " " : ", ").append(known);
  return fail(errc::not_found, line);
}

/// Shows every setting of the chosen alternative to `visit(name, member, range)`.
template <class Visit, class... Alternative>
void visit_settings(std::variant<Alternative...>& choice, const Visit& visit) {
  std::visit([&]<class Chosen>(Chosen& chosen) { Chosen::visit_settings(chosen, visit); }, choice);
}

/// Shows every setting of a constant choice, which `visit` can only read.
template <class Visit, class... Alternative>
void visit_settings(const std::variant<Alternative...>& choice, const Visit& visit) {
  std::visit([&]<class Chosen>(const Chosen& chosen) { Chosen::visit_settings(chosen, visit); },
             choice);
}

namespace detail {

template <class T>
void for_each_number(const T& number, const auto& body) {
  body(static_cast<double>(number));
}

template <class T>
void for_each_number(const std::vector<T>& numbers, const auto& body) {
  for (auto number : numbers)
    body(static_cast<double>(number));
}

} // namespace detail

/// The first complaint about a setting.
class setting_check {
public:
  /// Checks a setting that `visit_settings` shows.
  template <class Member>
  void operator()(std::string_view name, const Member& member, setting_range range) {
    detail::for_each_number(member, [&](double value) {
      if (holds(range, value) || !line_.empty()) return;
      line_.append(name).append(" is ").append(printable(value));
      line_.append(": it must be ").append(to_string(range));
    });
  }

  /// Errors: invalid_argument; the line names the setting and its range.
  [[nodiscard]] expected<void> result() const {
    if (!line_.empty()) return fail(errc::invalid_argument, line_);
    return {};
  }

private:
  std::string line_;
};

} // namespace troupe
