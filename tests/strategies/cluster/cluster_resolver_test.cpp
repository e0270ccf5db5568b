// SPDX-License-Identifier: Apache-2.0
// Goal: what all resolvers share. Method: one that knows two tasks.
#include "strategies/cluster/cluster_resolver.hpp"
#include "tests/doctest.hpp"

#include <array>

namespace cluster_resolver_test {

namespace {

using namespace troupe;

class two_workers final : public cluster_resolver {
public:
  explicit two_workers(task_query own) : cluster_resolver(std::move(own)) {}

  using cluster_resolver::master;

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override {
    return {{"worker", std::vector<std::string>{"a:1", "b:1"}}};
  }

  [[nodiscard]] std::string master(const task_query& query) const override {
    return address_of(query);
  }
};

} // namespace

TEST_SUITE("strategies/cluster/cluster_resolver") {
  TEST_CASE("puts the rpc layer before an address, if there is one") {
    CHECK(format_master_url("a:1", "grpc") == "grpc://a:1");
    CHECK(format_master_url("a:1", std::nullopt) == "a:1");
    CHECK(format_master_url("a:1", "") == "a:1");
  }

  TEST_CASE("a query comes before the values that were set") {
    two_workers resolver{{"worker", 0, "grpc"}};
    CHECK(resolver.master() == "grpc://a:1");
    CHECK(resolver.master({.task_id = 1}) == "grpc://b:1");
    CHECK(resolver.master({.task_id = 1, .rpc_layer = "tcp"}) == "tcp://b:1");
    resolver.set_task_id(1);
    resolver.set_rpc_layer("");
    CHECK(resolver.master() == "b:1");
    CHECK(two_workers{{}}.master().empty());
  }

  TEST_CASE("counts accelerators of a task by kind") {
    const std::array<std::string, 6> devices{
      "/job:worker/replica:0/task:1/device:GPU:0",  "/job:worker/replica:0/task:1/device:GPU:1",
      "/job:worker/replica:0/task:10/device:GPU:0", "/job:worker/replica:0/task:1/device:CPU:0",
      "/job:worker/replica:0/task:1/device:TPU:0",  "/job:ps/replica:0/task:1/device:GPU:0"};
    using counts = std::map<std::string, uint64_t>;
    CHECK(count_accelerators(devices, {"worker", 1}) == counts{{"GPU", 2}, {"TPU", 1}});
    CHECK(count_accelerators(devices, {"worker", 7}).empty());
    CHECK(count_accelerators(devices, {}) == counts{{"GPU", 4}, {"TPU", 1}});
    CHECK(two_workers{{"worker", 0}}.num_accelerators().empty());
  }
}

} // namespace cluster_resolver_test
