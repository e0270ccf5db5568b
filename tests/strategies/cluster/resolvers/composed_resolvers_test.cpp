// SPDX-License-Identifier: Apache-2.0
// Goal: clusters that a program knows, and several as one, behave as in the original. Method: the
// cases of TensorFlow's tests for both.
#include "strategies/cluster/resolvers/simple_resolver.hpp"
#include "strategies/cluster/resolvers/union_resolver.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace composed_resolvers_test {

namespace {

using namespace troupe;
using test::refusal;
using list = std::vector<std::string>;
using counts = std::map<std::string, uint64_t>;

std::shared_ptr<simple_resolver> simple(const cluster_spec& cluster,
                                        const simple_resolver_options& options = {}) {
  return std::make_shared<simple_resolver>(cluster, options);
}

const cluster_spec base{{"ps", list{"ps0:1", "ps1:1"}}, {"worker", list{"w0:1", "w1:1"}}};

} // namespace

TEST_SUITE("strategies/cluster/simple_resolver") {
  TEST_CASE("says what it was told") {
    simple_resolver resolver{base,
                             {.master = "m:1",
                              .own = {"ps", 1, "grpc"},
                              .environment = "cloud",
                              .num_accelerators = {{"GPU", 2}}}};
    CHECK(resolver.cluster_spec() == base);
    CHECK(resolver.task_type() == "ps");
    CHECK(resolver.task_id() == 1);
    CHECK(resolver.rpc_layer() == "grpc");
    CHECK(resolver.environment() == "cloud");
    CHECK(resolver.num_accelerators() == counts{{"GPU", 2}});
    CHECK(resolver.num_accelerators({"worker", 0}) == counts{{"GPU", 2}});
    CHECK(simple_resolver{base}.num_accelerators().empty());
  }

  TEST_CASE("gives a task's address only if type and id are given") {
    simple_resolver resolver{base, {.master = "m:1", .own = {"ps", 1, "grpc"}}};
    CHECK(resolver.master() == "grpc://m:1");
    CHECK(resolver.master({.task_type = "worker"}) == "grpc://m:1");
    CHECK(resolver.master({.task_id = 0}) == "grpc://m:1");
    CHECK(resolver.master({"worker", 1}) == "grpc://w1:1");
    CHECK(resolver.master({"worker", 1, "tcp"}) == "tcp://w1:1");
    CHECK(resolver.master({.rpc_layer = "tcp"}) == "tcp://m:1");
    CHECK(simple_resolver{base}.master().empty());
    CHECK(simple_resolver{base, {.master = "m:1"}}.master() == "m:1");
  }
}

TEST_SUITE("strategies/cluster/union_resolver") {
  TEST_CASE("says what the first one says") {
    union_resolver resolver{{simple(base, {.master = "m:1",
                                           .own = {"ps", 1, "grpc"},
                                           .environment = "cloud",
                                           .num_accelerators = {{"GPU", 2}}}),
                             simple({}, {.master = "other:1", .own = {"worker", 7, "tcp"}})}};
    CHECK(resolver.master() == "grpc://m:1");
    CHECK(resolver.task_type() == "ps");
    CHECK(resolver.task_id() == 1);
    CHECK(resolver.rpc_layer() == "grpc");
    CHECK(resolver.environment() == "cloud");
    CHECK(resolver.num_accelerators() == counts{{"GPU", 2}});
  }

  TEST_CASE("values that were given beat those of the first resolver, but for a task of 0") {
    auto first = simple(base, {.own = {"ps", 1, "grpc"}});
    union_resolver resolver{{first}, {"worker", 3, "tcp"}};
    CHECK(resolver.task_type() == "worker");
    CHECK(resolver.task_id() == 3);
    CHECK(resolver.rpc_layer() == "tcp");
    CHECK(union_resolver{{first}, {"worker", 0, ""}}.task_id() == 1);
    CHECK(union_resolver{{first}, {"worker", 0, ""}}.rpc_layer() == "grpc");
  }

  TEST_CASE("lists of a job follow one another") {
    union_resolver resolver{
      {simple(base), simple({{"worker", list{"w2:1"}}, {"chief", list{"c:1"}}})}};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"ps", list{"ps0:1", "ps1:1"}},
                          {"worker", list{"w0:1", "w1:1", "w2:1"}},
                          {"chief", list{"c:1"}}});
    CHECK(resolver.master({"worker", 2, "tcp"}) == "tcp://w2:1");
  }

  TEST_CASE("a job that one of them has by index is joined by index") {
    union_resolver resolver{
      {simple(base), simple({{"worker", task_addresses{{3, "w3:1"}, {2, "w2:1"}}}})}};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"ps", list{"ps0:1", "ps1:1"}},
                          {"worker", list{"w0:1", "w1:1", "w2:1", "w3:1"}}});
  }

  TEST_CASE("refuses two tasks of the same index") {
    union_resolver resolver{{simple(base), simple({{"worker", task_addresses{{1, "x:1"}}}})}};
    CHECK(refusal([&] { return resolver.cluster_spec(); })
          == "invalid_argument: union_resolver: two clusters have a worker 1: w1:1 and x:1");
  }

  TEST_CASE("refuses to join nothing") {
    CHECK(refusal([] { return union_resolver{{}}.cluster_spec(); })
          == "invalid_argument: union_resolver: give at least one resolver");
    CHECK(refusal([] { return union_resolver{{nullptr}}.cluster_spec(); })
          == "invalid_argument: union_resolver: one of the resolvers is null");
  }
}

} // namespace composed_resolvers_test
