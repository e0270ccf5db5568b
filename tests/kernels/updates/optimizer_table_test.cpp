// SPDX-License-Identifier: Apache-2.0
// Goal: our optimizers are those that others mean by their names. Method: several steps beside
// PyTorch's, and beside transcriptions of the papers that were made apart from our code.
#include "kernels/updates/update.hpp"
#include "messages/mapped.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/updates/optimizer_table.hpp"

#include <algorithm>
#include <vector>

namespace optimizer_table_test {

using namespace troupe;
using namespace troupe::test;

namespace {

template <class T>
std::span<const table_case<T>> table() {
  if constexpr (std::is_same_v<T, float>)
    return table_of_float;
  else
    return table_of_double;
}

/// A variable and its slots, as an owner holds them.
template <class T>
class held_variable {
public:
  explicit held_variable(const update_rule& rule)
    : rule_(rule), value_(table_start.begin(), table_start.end()) {
    for (size_t slot = 0; slot < slot_count(rule); ++slot)
      slots_.emplace_back(table_elements, static_cast<T>(initial_slot_value(rule, slot)));
  }

  std::span<T> update(size_t step) {
    std::vector<T> gradient{table_gradients[step].begin(), table_gradients[step].end()};
    const elements sources[] = {std::span<const T>{gradient}};
    auto slots = mapped(slots_, [](auto& slot) { return in_place(std::span<T>{slot}); });
    cpu::update<T>({}, at_update(rule_, step + 1), {.sources = sources},
                   in_place(std::span<T>{value_}), slots);
    return value_;
  }

private:
  update_rule rule_;
  std::vector<T> value_;
  std::vector<std::vector<T>> slots_;
};

} // namespace

TEST_SUITE("kernels/updates/optimizer_table") {
  TEST_CASE_TEMPLATE("every step is as others take it", T, float, double) {
    const bound allowed{roundings<T>(100), roundings<T>(20)};
    for (size_t row = 0; row < table<T>().size(); ++row) {
      const auto& expected = table<T>()[row];
      CAPTURE(row);
      CAPTURE(name_of(expected.rule));
      held_variable<T> held{expected.rule};
      for (size_t step = 0; step < table_steps; ++step) {
        CAPTURE(step);
        auto got = held.update(step);
        auto wanted = expected.values[step];
        CHECK(first_not_close(got, std::span<T>{wanted}, allowed) == table_elements);
      }
    }
  }

  TEST_CASE("the table knows every optimizer") {
    auto names = mapped<std::string_view>(table<double>(),
                                          [](const auto& one) { return name_of(one.rule); });
    for (auto name : choice_names<update_rule>())
      CHECK(std::ranges::count(names, name) > 0);
  }
}

} // namespace optimizer_table_test
