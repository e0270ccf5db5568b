// SPDX-License-Identifier: Apache-2.0
// Goal: estimates for dynamic backups come out of a checkpoint's arrays bit for bit, and arrays
// that hold none are refused. Method: there and back, then one thing at a time missing or wrong.
#include "actors/policies/backup_arrays.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <limits>

namespace backup_arrays_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

backup_estimates example() {
  backup_estimates estimates;
  estimates.arrivals.push_back({.local_step = 7, .began = 5s, .arrivals = {{.seconds = 0.1}}});
  estimates.arrivals.push_back(
    {.local_step = 8,
     .began = 6s,
     .arrivals
     = {{.seconds = -0.0}, {}, {.seconds = 1.0 / 3, .is_estimate = true}, {.at_least = 2.5}}});
  estimates.spreads = {{4, 0.5}, {3, 0.25}};
  estimates.descent = {{2.5, -1, 0.125}};
  return estimates;
}

std::vector<named_payload> arrays_with(const std::string& name, tensor value) {
  auto arrays = to_arrays(example());
  std::ranges::find(arrays, name, &named_payload::name)->value = std::move(value);
  return arrays;
}

// The array of that name, with another number at an index.
template <class Element>
std::vector<named_payload> arrays_with(const std::string& name, size_t index, Element number) {
  auto arrays = to_arrays(example());
  auto found = std::ranges::find(arrays, name, &named_payload::name);
  found->value = found->value.clone();
  found->value.mutable_values<Element>()[index] = number;
  return arrays;
}

std::string refusal_of(const std::vector<named_payload>& arrays) {
  auto read = read_backup_estimates(arrays);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::malformed);
  return read.error().message;
}

bool says(const std::string& message, const std::string& what) {
  return message.find("estimates for dynamic backups: " + what + ";") != std::string::npos;
}

constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<double>::infinity();

} // namespace

TEST_SUITE("actors/policies/backup_arrays") {
  TEST_CASE("estimates come back as they were, and a row has a place for every replica") {
    auto read = read_backup_estimates(to_arrays(example())).value();
    auto expected = example();
    expected.arrivals[0].arrivals.resize(4);
    CHECK(read.arrivals == expected.arrivals);
    REQUIRE(read.spreads.size() == 2);
    CHECK(read.spreads[1].squared_norm == 3);
    CHECK(read.spreads[1].variance == 0.25);
    REQUIRE(read.descent.size() == 1);
    CHECK(read.descent[0].loss == 2.5);
    CHECK(read.descent[0].squared_norm == -1);
    CHECK(read.descent[0].squared_update == 0.125);
  }

  TEST_CASE("no estimates come of no arrays, and of arrays without rows") {
    for (const auto& arrays : {std::vector<named_payload>{}, to_arrays({})}) {
      auto read = read_backup_estimates(arrays).value();
      CHECK(read.arrivals.empty());
      CHECK(read.spreads.empty());
      CHECK(read.descent.empty());
    }
  }

  TEST_CASE("an array that is missing is named") {
    for (const auto& missing : to_arrays(example())) {
      auto arrays = to_arrays(example());
      std::erase_if(arrays, [&](const auto& one) { return one.name == missing.name; });
      CHECK(says(refusal_of(arrays), "array '" + missing.name + "' is missing"));
    }
  }

  TEST_CASE("an array of another type or shape is named") {
    for (const auto& [name, value] :
         {named_payload{"steps", zeros({2, 2})}, named_payload{"steps", zeros({4}, dtype::i64)},
          named_payload{"arrivals", zeros({2, 4, 2}, dtype::f64)},
          named_payload{"spreads", zeros({2, 3}, dtype::f64)},
          named_payload{"descent", zeros({}, dtype::f64)}})
      CHECK(says(refusal_of(arrays_with(name, value)),
                 "array '" + name + "' has another type or shape"));
  }

  TEST_CASE("as many steps as elements could never hold are refused") {
    constexpr int64_t many = int64_t{1} << 60;
    CHECK(says(refusal_of(arrays_with("arrivals", tensor{dtype::f64, {many, 0, 3}})),
               "array 'arrivals' has another number of steps than 'steps'"));
    auto wide = arrays_with("steps", tensor{dtype::i64, {0, 2}});
    std::ranges::find(wide, "arrivals", &named_payload::name)->value
      = tensor{dtype::f64, {0, many, 3}};
    CHECK(read_backup_estimates(wide).value().arrivals.empty());
  }

  TEST_CASE("a number that cannot be is refused, and NaN where it does not stand for no time") {
    for (auto number : {int64_t{-1}, INT64_MAX})
      CHECK(says(refusal_of(arrays_with("steps", 1, number)),
                 "array 'steps' holds a number below 0, or a time that is too long"));
    for (auto number : {infinity, -infinity, 1e300})
      CHECK(says(refusal_of(arrays_with("arrivals", 0, number)),
                 "array 'arrivals' holds a time that is too long"));
    for (auto number : {nan, infinity})
      for (const std::string name : {"spreads", "descent"})
        CHECK(says(refusal_of(arrays_with(name, 1, number)),
                   "array '" + name + "' holds a number that is not finite"));
  }
}

} // namespace backup_arrays_test
