// SPDX-License-Identifier: Apache-2.0
// Goal: every task knows its part, as in `multi_worker_util`. Method: its cases.
#include "strategies/cluster/multi_worker.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace multi_worker_test {

namespace {

using namespace troupe;
using test::refusal;
using list = std::vector<std::string>;

const cluster_spec with_chief{
  {"chief", list{"a:1"}}, {"worker", list{"b:1", "c:1"}}, {"ps", list{"d:1", "e:1"}}};
const cluster_spec workers{{"worker", list{"b:1", "c:1"}}, {"ps", list{"d:1"}}};
const cluster_spec with_evaluator{{"worker", list{"b:1"}}, {"evaluator", list{"f:1"}}};

std::string validated(const cluster_spec& cluster, const std::string& type, uint64_t id) {
  return refusal([&] {
    validate_cluster_spec(cluster, type, id);
    return 0;
  });
}

} // namespace

TEST_SUITE("strategies/cluster/multi_worker") {
  TEST_CASE("a table of jobs becomes a cluster") {
    CHECK(normalize_cluster_spec({{"worker", {"b:1", "c:1"}}, {"ps", {"d:1"}}}) == workers);
    CHECK(normalize_cluster_spec(workers) == workers);
  }

  TEST_CASE("the chief is the chief, or worker 0 where there is none") {
    CHECK(is_chief(with_chief, "chief", 0));
    CHECK_FALSE(is_chief(with_chief, "worker", 0));
    CHECK_FALSE(is_chief(with_chief, "ps", 0));
    CHECK(is_chief(workers, "worker", 0));
    CHECK_FALSE(is_chief(workers, "worker", 1));
    CHECK(is_chief(workers, "evaluator", 0));
    CHECK(is_chief({}, "worker", 3));
    CHECK(refusal([] { return is_chief(workers, "chief", 0); })
          == "invalid_argument: the cluster: this process is said to be a 'chief', but the cluster "
             "has only worker, ps");
  }

  TEST_CASE("counts chief and workers together, and evaluators apart") {
    CHECK(worker_count(with_chief, "chief") == 3);
    CHECK(worker_count(with_chief, "worker") == 3);
    CHECK(worker_count(with_evaluator, "worker") == 1);
    CHECK(worker_count(with_evaluator, "evaluator") == 1);
    CHECK(worker_count(workers, "evaluator") == 0);
    CHECK(worker_count({{"worker", task_addresses{{2, "b:1"}}}}, "worker") == 1);
    CHECK(refusal([] { return worker_count(workers, "ps"); })
          == "invalid_argument: worker_count: a 'ps' is no worker");
  }

  TEST_CASE("numbers the chief first, then workers") {
    CHECK(id_in_cluster(with_chief, "chief", 0) == 0);
    CHECK(id_in_cluster(with_chief, "worker", 1) == 2);
    CHECK(id_in_cluster(workers, "worker", 1) == 1);
    CHECK(id_in_cluster(with_evaluator, "evaluator", 0) == 0);
    CHECK(refusal([] { return id_in_cluster(workers, "ps", 0); })
          == "invalid_argument: id_in_cluster: a 'ps' has no number among the workers");
    CHECK(refusal([] { return id_in_cluster({}, "worker", 0); })
          == "invalid_argument: there is no cluster that a worker could be in");
  }

  TEST_CASE("the chief leads collectives, or worker 0; an evaluator has no leader") {
    CHECK(collective_leader(with_chief, "worker", 1) == "/job:chief/replica:0/task:0");
    CHECK(collective_leader(workers, "worker", 1) == "/job:worker/replica:0/task:0");
    CHECK(collective_leader(with_evaluator, "evaluator", 0).empty());
    CHECK(collective_leader({}, "worker", 0).empty());
  }

  TEST_CASE("the chief saves, all processes load") {
    CHECK(should_save_checkpoint(with_chief, "chief", 0));
    CHECK_FALSE(should_save_checkpoint(with_chief, "worker", 0));
    CHECK(should_load_checkpoint(with_chief, "worker", 0));
    CHECK(should_load_checkpoint({}, "worker", 0));
    CHECK(should_save_summary(workers, "worker", 0));
    CHECK_FALSE(should_save_summary(workers, "worker", 1));
    CHECK(should_save_summary(with_evaluator, "evaluator", 0));
  }

  TEST_CASE("names what cannot be") {
    CHECK(validated(with_chief, "worker", 1) == "accepted");
    CHECK(validated(with_chief, "evaluator", 5) == "accepted");
    CHECK(validated(with_chief, "worker", 2)
          == "invalid_argument: the cluster: The `task_id` 2 exceeds the maximum id of worker: it "
             "has 2, counted from 0");
    CHECK(validated({{"chief", list{"a:1", "b:1"}}}, "chief", 0)
          == "invalid_argument: the cluster: there must be at most one 'chief', not 2");
    CHECK(validated({{"worker", list{"a:1"}}, {"evaluator", list{"b:1", "c:1"}}}, "worker", 0)
          == "invalid_argument: the cluster: there must be at most one 'evaluator', not 2");
    CHECK(validated({{"worker", list{"a:1"}}, {"ps_hosts", list{"b:1"}}}, "worker", 0)
          == "invalid_argument: the cluster: 'ps_hosts' is no task type; it is called 'ps'");
    CHECK(validated({{"master", list{"a:1"}}}, "master", 0)
          == "invalid_argument: the cluster: 'master' is no task type; it is called 'chief'");
    CHECK(validated(workers, "gpu", 0)
          == "invalid_argument: the cluster: this process cannot be a 'gpu': there are worker, ps");
  }
}

} // namespace multi_worker_test
