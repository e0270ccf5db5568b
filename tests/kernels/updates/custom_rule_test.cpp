// SPDX-License-Identifier: Apache-2.0
// Goal: a rule that a program brings is a rule like any other. Method: momentum, written here once
// more, against the library's, bit for bit; names and settings that are refused.
#include "kernels/updates/learning_rate.hpp"
#include "kernels/updates/sparse_update.hpp"
#include "kernels/updates/update.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/updates/own_rules.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace custom_rule_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 4096};

/// Signum: velocity = decay * velocity + (1 - decay) * gradient; value -= learning_rate * its sign.
struct signum {
  double learning_rate = 0.001;
  double decay = 0.9;

  static constexpr std::string_view name = "signum";
  static constexpr std::array<std::string_view, 1> slot_names{"velocity"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, troupe::setting_range::non_negative);
    visit("decay", rule.decay, troupe::setting_range::decay);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const signum& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        decay(static_cast<T>(settings.decay)) {}

    T operator()(T value, T gradient, std::array<T, 1>& slots) const {
      slots[0] = decay * slots[0] + (1 - decay) * gradient;
      return value - (slots[0] == 0 ? T{0} : std::copysign(learning_rate, slots[0]));
    }

    T learning_rate;
    T decay;
  };
};

struct unnamed : own_momentum {
  static constexpr std::string_view name{};
};

struct with_twin_slots : own_momentum {
  static constexpr std::string_view name = "with_twin_slots";
  static constexpr std::array<std::string_view, 2> slot_names{"a", "a"};

  template <class T>
  struct for_elements {
    explicit for_elements(const own_momentum&) {}

    T operator()(T value, T, std::array<T, 2>&) const { return value; }
  };
};

struct second_sgd : own_momentum {
  static constexpr std::string_view name = "sgd";
};

/// A variable and its momentum.
template <class T>
struct moved {
  explicit moved(size_t count) : value(normal<T>(count, 1)), velocity(normal<T>(count, 2)) {}

  guarded<T> value;
  guarded<T> velocity;

  bool operator==(moved& other) {
    auto is_same = [](std::span<T> a, std::span<T> b) {
      return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
    };
    return is_same(value.span(), other.value.span())
           && is_same(velocity.span(), other.velocity.span());
  }
};

template <class T>
void update_dense(const auto& on, const update_rule& rule, moved<T>& target) {
  auto gradient = normal<float>(target.value.span().size(), 3);
  auto other = normal<float>(target.value.span().size(), 4);
  const elements sources[] = {elements{gradient.view()}, elements{other.view()}};
  const replaced<T> slots[] = {in_place(target.velocity.span())};
  update<T>(on, rule, {.sources = sources, .divisor = 2}, in_place(target.value.span()), slots);
}

template <class T>
void update_rows(const auto& on, const update_rule& rule, moved<T>& target, size_t width) {
  auto gradient = normal<float>(3 * width, 5);
  const int64_t rows[] = {4, 0, 4};
  const row_source sources[] = {{rows, elements{gradient.view()}}};
  std::vector<row_entry> entries(6);
  std::vector<size_t> starts(4);
  auto order = order_rows(sources, entries, starts);
  const std::span<T> slots[] = {target.velocity.span()};
  sparse_update<T>(on, rule, {.sources = sources, .order = order, .width = width},
                   target.value.span(), slots);
}

} // namespace

TEST_SUITE("kernels/updates/custom_rule") {
  TEST_CASE_TEMPLATE("a program's momentum has the bits of the library's, dense and by rows", T,
                     float, double) {
    const update_rule known = rules::momentum{.learning_rate = 0.3, .decay = 0.8};
    const auto own = custom_rule(own_momentum{.learning_rate = 0.3, .decay = 0.8});
    for (size_t count : {0, 1, 31, 1000, 20011}) {
      CAPTURE(count);
      moved<T> expected{count}, vectorised{count}, single{count};
      update_dense(plain, known, expected);
      update_dense(fast, own, vectorised);
      update_dense(plain, own, single);
      CHECK(vectorised == expected);
      CHECK(single == expected);
    }
    for (size_t width : {1, 33, 5000}) {
      CAPTURE(width);
      moved<T> expected{5 * width}, vectorised{5 * width}, single{5 * width};
      update_rows(plain, known, expected, width);
      update_rows(fast, own, vectorised, width);
      update_rows(plain, own, single, width);
      CHECK(vectorised == expected);
      CHECK(single == expected);
    }
  }

  TEST_CASE("it is found by its name, at its defaults, once it is registered") {
    register_own_rules();
    auto found = rule_of_name("own_momentum");
    REQUIRE(found);
    CHECK(name_of(*found) == "own_momentum");
    CHECK(slot_names(*found)[0] == "velocity");
    std::vector<double> values;
    visit_settings(*found,
                   [&](std::string_view, double value, setting_range) { values.push_back(value); });
    CHECK(values == std::vector<double>{0.01, 0.9});
    CHECK(rule_of_name("own_momenta").error().code == errc::not_found);
    CHECK(rule_of_name("own_momenta").error().message.find("lamb, own_momentum") > 0);
  }

  TEST_CASE("a name that is taken or empty is refused") {
    register_own_rules();
    CHECK(register_rule<own_momentum>().error().message
          == "there is an optimizer 'own_momentum' already; give this one another name");
    CHECK(register_rule<second_sgd>().error().message
          == "there is an optimizer 'sgd' already; give this one another name");
    CHECK(register_rule<unnamed>().error().code == errc::invalid_argument);
    CHECK(
      register_rule<with_twin_slots>().error().message
      == "optimizer 'with_twin_slots' has two slots 'a'; a checkpoint finds them by their names");
  }

  TEST_CASE("its settings have their ranges") {
    CHECK(validate(custom_rule(own_momentum{})));
    CHECK(validate(custom_rule(own_momentum{.decay = 1})).error().message
          == "decay is 1: it must be at least 0 and below 1");
    CHECK_FALSE(validate(custom_rule(own_momentum{.learning_rate = -1})));
  }

  TEST_CASE("it is told the number of the update and the learning rate of the moment") {
    auto rule = custom_rule(own_careful_descent{.initial = 7, .only_even = true});
    CHECK(initial_slot_value(rule, 0) == 7);
    double value = 1, seen = 7;
    auto update_once = [&](uint64_t number) {
      const float gradient[] = {1};
      const elements sources[] = {elements{std::span<const float>{gradient}}};
      const replaced<double> slots[] = {in_place(std::span{&seen, 1})};
      update<double>(fast, at_update(linear_decay(4).at(rule, number), number),
                     {.sources = sources}, in_place(std::span{&value, 1}), slots);
    };
    update_once(1);
    CHECK(value == 1);
    update_once(2);
    CHECK(value == 1 - 0.5 * 0.75);
    CHECK(seen == 9);
  }

  TEST_CASE("the example of the documentation goes by the sign of its velocity") {
    double value = 1, velocity = -3;
    const float gradient[] = {2};
    const elements sources[] = {elements{std::span<const float>{gradient}}};
    const replaced<double> slots[] = {in_place(std::span{&velocity, 1})};
    update<double>(fast, custom_rule(signum{.learning_rate = 0.25, .decay = 0.5}),
                   {.sources = sources}, in_place(std::span{&value, 1}), slots);
    CHECK(value == 1.25);
    CHECK(velocity == -0.5);
  }

  TEST_CASE("an exception of a rule comes out of the pass, whatever thread it was thrown on") {
    constexpr size_t count = 100000;
    std::vector<float> value(count), seen(count), gradient(count);
    gradient[70000] = std::numeric_limits<float>::quiet_NaN();
    const elements sources[] = {elements{std::span<const float>{gradient}}};
    const replaced<float> slots[] = {in_place(std::span{seen})};
    auto rule = custom_rule(own_careful_descent{});
    CHECK_THROWS_WITH_AS(
      update<float>(fast, rule, {.sources = sources}, in_place(std::span{value}), slots),
      "the gradient is not a number", std::domain_error);
  }
}

} // namespace custom_rule_test
