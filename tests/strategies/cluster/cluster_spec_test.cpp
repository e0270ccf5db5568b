// SPDX-License-Identifier: Apache-2.0
// Goal: clusters behave as `tf.train.ClusterSpec` does. Method: the cases of its documentation.
#include "strategies/cluster/cluster_spec.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace cluster_spec_test {

namespace {

using namespace troupe;
using test::refusal;
using list = std::vector<std::string>;

cluster_spec dense() {
  return {{"worker", list{"a:1", "b:1"}}, {"ps", list{"c:1"}}};
}

cluster_spec sparse() {
  return {{"worker", task_addresses{{3, "d:1"}, {1, "b:1"}}}};
}

} // namespace

TEST_SUITE("strategies/cluster/cluster_spec") {
  TEST_CASE("is false as long as it has no job") {
    CHECK_FALSE(cluster_spec{});
    CHECK(cluster_spec{}.jobs().empty());
    CHECK(cluster_spec{{"worker", list{}}});
  }

  TEST_CASE("keeps jobs in the order in which they came") {
    CHECK(dense().jobs() == list{"worker", "ps"});
    CHECK(dense().has_job("ps"));
    CHECK_FALSE(dense().has_job("chief"));
  }

  TEST_CASE("a list and the same tasks by index are equal, in whatever order jobs came") {
    cluster_spec by_index{{"ps", task_addresses{{0, "c:1"}}},
                          {"worker", task_addresses{{1, "b:1"}, {0, "a:1"}}}};
    CHECK(dense() == by_index);
    CHECK_FALSE(dense() == sparse());
    CHECK_FALSE(dense() == cluster_spec{{"worker", list{"a:1", "b:1"}}});
    CHECK_FALSE(cluster_spec{{"ps", list{"a:1"}}} == cluster_spec{{"ps", list{"a:2"}}});
  }

  TEST_CASE("counts tasks, not holes") {
    CHECK(dense().num_tasks("worker") == 2);
    CHECK(sparse().num_tasks("worker") == 2);
    CHECK(dense().task_count() == 3);
    CHECK(sparse().task_indices("worker") == std::vector<uint64_t>{1, 3});
    CHECK(dense().task_count("chief") == 0);
  }

  TEST_CASE("lists addresses up to the greatest index, with nothing for a hole") {
    CHECK(sparse().job_tasks("worker")
          == std::vector<std::optional<std::string>>{std::nullopt, "b:1", std::nullopt, "d:1"});
    CHECK(sparse().task_address("worker", 3) == "d:1");
  }

  TEST_CASE("gives a list where there are no holes, tasks by index where there are or none is") {
    CHECK(dense().addresses("ps") == job_addresses{list{"c:1"}});
    CHECK(sparse().addresses("worker") == job_addresses{task_addresses{{1, "b:1"}, {3, "d:1"}}});
    CHECK(cluster_spec{{"ps", list{}}}.addresses("ps") == job_addresses{task_addresses{}});
  }

  TEST_CASE("names jobs and tasks that are not there") {
    CHECK(refusal([] { return dense().num_tasks("chief"); })
          == "invalid_argument: the cluster has no job 'chief'; it has worker, ps");
    CHECK(refusal([] { return cluster_spec{}.job_tasks("ps"); })
          == "invalid_argument: the cluster has no job 'ps'; it has none");
    CHECK(refusal([] { return sparse().task_address("worker", 2); })
          == "invalid_argument: the cluster's job 'worker' has no task 2; it has 1, 3");
    CHECK(refusal([] { return sparse().task_indices("ps"); }).starts_with("invalid_argument: "));
  }

  TEST_CASE("refuses a task beyond the greatest index") {
    const auto line = "invalid_argument: the cluster's job 'worker' has a task "
                      "18446744073709551615; tasks are numbered from 0 to 1000000";
    const task_addresses beyond{{0, "a:1"}, {UINT64_MAX, "b:1"}};
    CHECK(refusal([&] { return cluster_spec{{"worker", beyond}}; }) == line);
    auto cluster = dense();
    CHECK(refusal([&] {
            cluster.set_job("worker", beyond);
            return 0;
          })
          == line);
    CHECK(cluster == dense());
    cluster.set_job("worker", task_addresses{{task_index_max, "a:1"}});
    CHECK(cluster.task_indices("worker") == std::vector<uint64_t>{task_index_max});
  }

  TEST_CASE("is written with jobs sorted by name") {
    CHECK(to_string(dense()) == "cluster_spec({'ps': ['c:1'], 'worker': ['a:1', 'b:1']})");
    CHECK(to_string(sparse()) == "cluster_spec({'worker': {1: 'b:1', 3: 'd:1'}})");
  }

  TEST_CASE("a job that is set again is replaced where it stands") {
    auto cluster = dense();
    cluster.set_job("worker", list{"z:1"});
    CHECK(cluster.jobs() == list{"worker", "ps"});
    CHECK(cluster.num_tasks("worker") == 1);
    cluster.remove_job("worker");
    CHECK(cluster.jobs() == list{"ps"});
  }
}

} // namespace cluster_spec_test
