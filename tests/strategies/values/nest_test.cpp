// SPDX-License-Identifier: Apache-2.0
// Goal: the nests of all replicas become one nest of distributed values, and back again. Method:
// every kind of nest, every rule of regrouping.
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/values/nest.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

namespace nest_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct outputs {
  double loss = 0;
  tensor logits;
};

template <class T>
std::vector<T> both(T first, T second) {
  std::vector<T> result;
  result.push_back(std::move(first));
  result.push_back(std::move(second));
  return result;
}

template <class T>
error refusal_to_regroup(T first, T second) {
  return refusal_of([&] { static_cast<void>(regroup(both(first, second))); });
}

} // namespace

TEST_SUITE("strategies/values/nest") {
  TEST_CASE("leaves of replicas become a value for each replica") {
    auto values = regroup(both(1.5, 2.5));
    CHECK(!values.is_mirrored());
    CHECK(values.local_results() == std::vector{1.5, 2.5});
    CHECK(select_replica(values, 1) == 2.5);
  }

  TEST_CASE("equal numbers are a value for each replica nevertheless") {
    auto values = regroup(both(2, 2));
    CHECK(!values.is_mirrored());
    CHECK(values.local_results() == std::vector{2, 2});
  }

  TEST_CASE("one and the same array from all replicas is mirrored, an equal one is not") {
    auto shared = array({2}, {1, 2});
    auto same = regroup(both(shared, shared));
    CHECK(same.is_mirrored());
    CHECK(same.size() == 2);
    CHECK(same[1].data() == shared.data());
    CHECK(!regroup(both(shared, shared.clone())).is_mirrored());
    CHECK(!regroup(both(shared, shared.reshape({2, 1}))).is_mirrored());
    CHECK(!regroup(both(array({0}, {}), array({0}, {}))).is_mirrored());
  }

  TEST_CASE("one and the same shared object from all replicas is mirrored") {
    auto shared = std::make_shared<int>(1);
    CHECK(regroup(both(shared, shared)).is_mirrored());
    CHECK(!regroup(both(shared, std::make_shared<int>(1))).is_mirrored());
  }

  TEST_CASE("the value of a single replica is mirrored") {
    auto alone = regroup(std::vector{3.0});
    CHECK(alone.is_mirrored());
    CHECK(alone.size() == 1);
    CHECK(alone.primary() == 3);
  }

  TEST_CASE("a variable from all replicas is that variable; different ones are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world};
    auto a = strategy.make_variable("a", scalar(1));
    auto b = strategy.make_variable("b", scalar(1));
    CHECK(regroup(both(a, a)) == a);
    CHECK(select_replica(a, 1) == a);
    CHECK(refusal_to_regroup(a, b)
          == error{errc::invalid_argument,
                   "replica 1 brings variable 'b', replica 0 'a'; all have to bring the same one"});
  }

  TEST_CASE("tuples and pairs are regrouped part by part") {
    using nest_type = std::tuple<int, std::pair<std::string, double>, std::tuple<>>;
    auto values = regroup(both(nest_type{1, {"a", 2}, {}}, nest_type{3, {"b", 4}, {}}));
    CHECK(std::get<0>(values).local_results() == std::vector{1, 3});
    CHECK(std::get<1>(values).first[1] == "b");
    CHECK(select_replica(values, 1) == nest_type{3, {"b", 4}, {}});
  }

  TEST_CASE("vectors, arrays and maps are regrouped part by part") {
    using nest_type = std::map<std::string, std::vector<std::array<int, 2>>>;
    nest_type first{{"a", {{1, 2}, {3, 4}}}, {"b", {}}};
    nest_type second{{"a", {{5, 6}, {7, 8}}}, {"b", {}}};
    auto values = regroup(both(first, second));
    CHECK(values.at("a")[1][0].local_results() == std::vector{3, 7});
    CHECK(values.at("b").empty());
    CHECK(select_replica(values, 0) == first);
    CHECK(select_replica(values, 1) == second);
  }

  TEST_CASE("nothing from all replicas is nothing") {
    using nest_type = std::optional<double>;
    CHECK(!regroup(both(nest_type{}, nest_type{})).has_value());
    auto values = regroup(both(nest_type{1}, nest_type{2}));
    REQUIRE(values.has_value());
    CHECK(select_replica(values, 1) == nest_type{2});
    CHECK(regroup(std::vector(2, std::monostate{})) == std::monostate{});
  }

  TEST_CASE("a struct is a leaf") {
    auto values = regroup(both(outputs{1, scalar(2)}, outputs{3, scalar(4)}));
    CHECK(values[1].loss == 3);
    CHECK(numbers_of(select_replica(values, 1).logits) == numbers{4});
  }

  TEST_CASE("nests of different lengths are refused, and the replica is named") {
    using list = std::vector<int>;
    CHECK(refusal_to_regroup(list{1, 2}, list{1})
          == error{errc::invalid_argument,
                   "replica 1 has a vector of 1, replica 0 has a vector of 2; the values of all "
                   "replicas must have one structure"});
    CHECK(refusal_to_regroup(list{}, list{1}).code == errc::invalid_argument);
    using lists = std::vector<list>;
    CHECK(refusal_to_regroup(lists{{1}, {2, 3}}, lists{{1}, {2}})
          == error{errc::invalid_argument,
                   "replica 1 has a vector of 2, a vector of 1, a vector of 1, replica 0 has a "
                   "vector of 2, a vector of 1, a vector of 2; the values of all replicas must "
                   "have one structure"});
  }

  TEST_CASE("maps with different keys are refused") {
    using named = std::map<std::string, int>;
    CHECK(refusal_to_regroup(named{{"a", 1}}, named{{"b", 1}})
          == error{errc::invalid_argument,
                   "replica 1 has a map of 'b', replica 0 has a map of 'a'; the values of all "
                   "replicas must have one structure"});
    using counted = std::map<int, int>;
    CHECK(refusal_to_regroup(counted{{1, 1}}, counted{{1, 1}, {2, 1}})
          == error{errc::invalid_argument,
                   "replica 1 has a map of 1 2, replica 0 has a map of 1; the values of all "
                   "replicas must have one structure"});
  }

  TEST_CASE("nothing from some replicas only is refused") {
    using maybe = std::optional<double>;
    CHECK(refusal_to_regroup(maybe{1}, maybe{})
          == error{errc::invalid_argument,
                   "replica 1 has nothing, replica 0 has something; the values of all replicas "
                   "must have one structure"});
  }

  TEST_CASE("structures of several parts are told apart") {
    CHECK(structure_of(std::tuple{std::vector{1, 2}, 3, std::vector{4}})
          == "a vector of 2, a vector of 1");
    CHECK(structure_of(std::pair{1, std::optional<int>{}}) == "nothing");
    CHECK(structure_of(std::array<std::vector<int>, 2>{}) == "a vector of 0, a vector of 0");
  }

  TEST_CASE("a value that is not distributed is the same for all replicas") {
    CHECK(select_replica(5, 3) == 5);
    CHECK(select_replica(std::vector{1, 2}, 3) == std::vector{1, 2});
    auto mixed = std::pair{7, distributed_value<int>::per_replica({1, 2})};
    CHECK(select_replica(mixed, 1) == std::pair{7, 2});
  }

  TEST_CASE("a value for each replica has none for others; a mirrored one is for all") {
    auto two = distributed_value<int>::per_replica({1, 2});
    CHECK(refusal_of([&] { static_cast<void>(select_replica(two, 2)); })
          == error{errc::invalid_argument,
                   "replica 2 has no part of a value of 2 replicas; a value goes only to the "
                   "strategy that it was made for"});
    CHECK(refusal_of([&] { static_cast<void>(two[2]); }).code == errc::invalid_argument);
    auto mirrored = distributed_value<int>::mirrored(1, 2);
    CHECK(select_replica(mirrored, 5) == 1);
    CHECK(refusal_of([&] { static_cast<void>(mirrored[5]); }).message
          == "replica 5 has no part of a value of 2 replicas; a value goes only to the strategy "
             "that it was made for");
    distributed_value<int> none;
    CHECK(refusal_of([&] { static_cast<void>(select_replica(none, 0)); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { static_cast<void>(distributed_value<int>::per_replica({})); })
          == error{errc::invalid_argument,
                   "a distributed value of no replicas; give one value for each replica"});
  }
}

} // namespace nest_test
