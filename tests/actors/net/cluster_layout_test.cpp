// SPDX-License-Identifier: Apache-2.0
// Goal: all processes of a cluster agree on what stands where. Method: tables of small clusters.
#include "actors/net/cluster_layout.hpp"
#include "tests/doctest.hpp"

#include <limits>
#include <string>
#include <vector>

namespace cluster_layout_test {

using namespace troupe;

namespace {

std::vector<std::string> names(const cluster_layout& layout) {
  std::vector<std::string> result;
  for (node_index node = 0; node < layout.node_count(); ++node)
    result.push_back(layout.name_of(node));
  return result;
}

} // namespace

TEST_SUITE("actors/net/cluster_layout") {
  TEST_CASE("nodes are the chief's, those of parameter servers, those of workers") {
    CHECK(names({.has_chief = true, .ps = 2, .workers = 2})
          == std::vector<std::string>{"chief:0", "ps:0", "ps:1", "worker:0", "worker:1"});
    CHECK(names({.ps = 1, .workers = 2})
          == std::vector<std::string>{"ps:0", "worker:0", "worker:1"});
    CHECK(names({}) == std::vector<std::string>{"worker:0"});
  }

  TEST_CASE("without a process of its own, the chief stands with worker 0") {
    CHECK(cluster_layout{.has_chief = true, .ps = 2, .workers = 2}.chief_node() == 0);
    CHECK(cluster_layout{.ps = 2, .workers = 2}.chief_node() == 2);
    CHECK(cluster_layout{.workers = 2}.chief_node() == 0);
  }

  TEST_CASE("a mirror stands at the parameter server after its owner's, which it talks to") {
    cluster_layout layout{.has_chief = true, .ps = 3, .workers = 2, .owners_meet = true};
    CHECK(layout.mirror_node(1) == 2);
    CHECK(layout.mirror_node(2) == 3);
    CHECK(layout.mirror_node(3) == 1);
    CHECK(layout.talk(1, 3));
    CHECK(layout.talk(1, 4));
    layout.owners_meet = false;
    CHECK_FALSE(layout.talk(1, 3));
  }

  TEST_CASE("workers hold contiguous slices of the replicas") {
    cluster_layout layout{.ps = 1, .workers = 2, .replicas_per_worker = 3};
    CHECK(layout.replica_count() == 6);
    CHECK(layout.replica_node(0).value() == 1);
    CHECK(layout.replica_node(2).value() == 1);
    CHECK(layout.replica_node(3).value() == 2);
    CHECK(layout.replica_node(5).value() == 2);
    auto none = layout.replica_node(6);
    REQUIRE_FALSE(none);
    CHECK(none.error().code == errc::invalid_argument);
    CHECK(none.error().message
          == "there is no place for replica 6: the cluster has 2 workers with 3 replicas each; ask "
             "for 6 replicas");
  }

  TEST_CASE("parameter servers have nothing to say to each other, nor workers") {
    cluster_layout layout{.has_chief = true, .ps = 2, .workers = 2};
    for (node_index node = 0; node < 5; ++node) {
      CHECK(layout.talk(0, node));
      CHECK(layout.talk(node, 0));
      CHECK(layout.talk(node, node));
    }
    CHECK_FALSE(layout.talk(1, 2));
    CHECK_FALSE(layout.talk(3, 4));
    CHECK(layout.talk(1, 3));
    CHECK(layout.talk(4, 2));
    CHECK(cluster_layout{.ps = 1, .workers = 3}.talk(1, 3)); // the chief is worker 0
    CHECK_FALSE(cluster_layout{.ps = 1, .workers = 3}.talk(2, 3));
  }

  TEST_CASE("communicators stand with workers, which talk to each other if they are to meet") {
    cluster_layout layout{.has_chief = true, .ps = 1, .workers = 2, .workers_meet = true};
    CHECK(layout.communicator_node(0).value() == 0);
    CHECK(layout.communicator_node(2).value() == 3);
    CHECK(layout.communicator_node(3).error().message
          == "there is no place for communicator 3: the cluster has 3 workers");
    CHECK(layout.talk(2, 3));
    CHECK(cluster_layout{.workers = 3, .workers_meet = true}.talk(1, 2));
    CHECK_FALSE(cluster_layout{.ps = 2, .workers = 2, .workers_meet = true}.talk(0, 1));
  }

  TEST_CASE("a cluster without replicas, or with too many, is refused") {
    CHECK(cluster_layout{}.validate());
    CHECK(cluster_layout{.workers = 0}.validate().error().code == errc::invalid_argument);
    CHECK_FALSE(cluster_layout{.replicas_per_worker = 0}.validate());
    auto most = std::numeric_limits<uint32_t>::max();
    CHECK_FALSE(cluster_layout{.workers = most, .replicas_per_worker = 2}.validate());
    CHECK_FALSE(cluster_layout{.has_chief = true, .ps = most, .workers = 1}.validate());
  }
}

} // namespace cluster_layout_test
