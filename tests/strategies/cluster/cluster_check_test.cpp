// SPDX-License-Identifier: Apache-2.0
// Goal: everything that is wrong with a cluster is found at once, and mended. Method: one slip
// after the other in a cluster that is sound, then several.
#include "strategies/cluster/cluster_check.hpp"
#include "tests/doctest.hpp"

#include <fmt/format.h>

namespace cluster_check_test {

namespace {

using namespace troupe;
using list = std::vector<std::string>;

declared_cluster sound() {
  return {.source = "TF_CONFIG",
          .syntax = cluster_syntax::tf_config,
          .spec = {{"chief", list{"a:1"}}, {"ps", list{"b:1"}}, {"worker", list{"c:1", "d:1"}}},
          .task_type = "worker",
          .task_id = 1};
}

declared_cluster with(const cluster_spec& spec, const std::string& type = "worker",
                      int64_t id = 0) {
  auto cluster = sound();
  cluster.spec = spec;
  cluster.task_type = type;
  cluster.task_id = id;
  return cluster;
}

// Problems and notes as they would be printed.
list findings(const declared_cluster& cluster) {
  list lines;
  for (const auto& finding : check_cluster(cluster).findings)
    lines.push_back(
      fmt::format("{}{}", finding.is_problem() ? "" : "note: ", finding.reason.message));
  return lines;
}

std::string clearer(const declared_cluster& cluster) {
  auto checked = check_cluster(cluster);
  if (!checked.clearer) return {};
  CHECK(check_cluster(*checked.clearer).findings.empty());
  return example_text(*checked.clearer);
}

std::string mended(const declared_cluster& cluster) {
  auto checked = check_cluster(cluster);
  CHECK(check_cluster(checked.mended).has_problem() == false);
  return example_text(checked.mended);
}

} // namespace

TEST_SUITE("strategies/cluster/cluster_check") {
  TEST_CASE("finds nothing in a sound cluster, and leaves it as it is") {
    auto checked = check_cluster(sound());
    CHECK(checked.findings.empty());
    CHECK(checked.mended.spec == sound().spec);
    CHECK(check_cluster({}).findings.empty());
  }

  TEST_CASE("an evaluator need not be in the cluster") {
    CHECK(findings(with(sound().spec, "evaluator", 0)).empty());
  }

  TEST_CASE("the keys of old command lines are named, and what they are called now") {
    auto old = with({{"ps_hosts", list{"a:1"}}, {"worker_hosts", list{"b:1", "c:1"}}});
    CHECK(findings(old)
          == list{"'ps_hosts' is no task type; it is called 'ps'",
                  "'worker_hosts' is no task type; it is called 'worker'",
                  "note: no chief is listed, so worker 0 is the chief"});
    CHECK(mended(old)
          == R"(TF_CONFIG='{"cluster": {"ps": ["a:1"], "worker": ["b:1", "c:1"]}, )"
             R"("task": {"type": "worker", "index": 0}}')");
  }

  TEST_CASE("a master is a chief under its old name") {
    auto old = with({{"master", list{"a:1"}}, {"worker", list{"b:1"}}}, "master");
    CHECK(findings(old)
          == list{"note: 'master' is taken for 'chief', as old Estimators called it"});
    CHECK(clearer(old)
          == R"(TF_CONFIG='{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, )"
             R"("task": {"type": "chief", "index": 0}}')");
    auto checked = check_cluster(old);
    CHECK(checked.mended.spec == cluster_spec{{"chief", list{"a:1"}}, {"worker", list{"b:1"}}});
    CHECK(checked.mended.task_type == "chief");
    CHECK(findings(with({{"master", list{"a:1"}}, {"chief", list{"b:1"}}}, "chief"))
          == list{"'master' is no task type; it is called 'chief'",
                  "there must be at most one 'chief', not 2"});
  }

  TEST_CASE("an unknown job is left out") {
    auto cluster = with({{"worker", list{"a:1"}}, {"gpu", list{"b:1"}}});
    CHECK(findings(cluster)
          == list{"'gpu' is no task type: there are chief, ps, worker and evaluator"});
    CHECK(mended(cluster).find("gpu") == std::string::npos);
  }

  TEST_CASE("unknown jobs alone leave no cluster") {
    auto cluster = with({{"hosts", list{"a:1"}}, {"gpus", list{"b:1"}}});
    CHECK(findings(cluster)
          == list{"'hosts' is no task type: there are chief, ps, worker and evaluator",
                  "'gpus' is no task type: there are chief, ps, worker and evaluator"});
    CHECK(mended(cluster).find("host0:2222") != std::string::npos);
  }

  TEST_CASE("jobs may be empty, but not all of them") {
    CHECK(findings(with({{"worker", list{"a:1"}}, {"ps", list{}}})).empty());
    auto nobody = with({{"worker", list{}}, {"ps", list{}}});
    CHECK(findings(nobody) == list{"no job has a task"});
    CHECK(mended(nobody).find("host0:2222") != std::string::npos);
  }

  TEST_CASE("an empty job has no task") {
    auto cluster = with({{"chief", list{"a:1"}}, {"worker", list{}}});
    CHECK(findings(cluster)
          == list{"this process is said to be a 'worker', but the cluster has only chief"});
    CHECK(mended(cluster).find(R"("task": {"type": "chief", "index": 0})") != std::string::npos);
  }

  TEST_CASE("one task must be the chief") {
    CHECK(findings(with({{"worker", list{"a:1"}}})).empty());
    CHECK(findings(with({{"worker", list{"a:1", "b:1"}}}))
          == list{"note: no chief is listed, so worker 0 is the chief"});
    CHECK(clearer(with({{"worker", list{"a:1", "b:1"}}}))
          == R"(TF_CONFIG='{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, )"
             R"("task": {"type": "chief", "index": 0}}')");
    CHECK(
      clearer(with({{"ps", list{"p:1"}}, {"worker", list{"a:1", "b:1", "c:1"}}}, "worker", 2))
      == R"(TF_CONFIG='{"cluster": {"chief": ["a:1"], "ps": ["p:1"], "worker": ["b:1", "c:1"]}, )"
         R"("task": {"type": "worker", "index": 1}}')");
    CHECK(clearer(with({{"worker", list{"a", "b:1"}}})).empty()); // has a problem
    CHECK(clearer(sound()).empty());
    auto nobody = with({{"ps", list{"a:1"}}, {"worker", task_addresses{{1, "b:1"}}}}, "ps");
    CHECK(findings(nobody) == list{"there is neither a chief nor a worker 0 that could be it"});
    CHECK(mended(nobody).find(R"("chief": ["chief-host:2222"])") != std::string::npos);
  }

  TEST_CASE("there is at most one chief, and one evaluator") {
    auto chiefs = with({{"chief", list{"a:1", "b:1"}}, {"worker", list{"c:1"}}});
    CHECK(findings(chiefs) == list{"there must be at most one 'chief', not 2"});
    CHECK(mended(chiefs).find(R"({"chief": ["a:1"], "worker": ["c:1", "b:1"]})")
          != std::string::npos);
    CHECK(findings(with({{"chief", list{"c:1"}}, {"evaluator", list{"a:1", "b:1"}}}, "chief"))
          == list{"there must be at most one 'evaluator', not 2"});
  }

  TEST_CASE("a missing task is asked for") {
    auto cluster = sound();
    cluster.task_type.reset();
    cluster.task_id.reset();
    CHECK(findings(cluster) == list{"it does not say which of the tasks this process is"});
    CHECK(mended(cluster).find(R"("task": {"type": "worker", "index": 0})") != std::string::npos);
    cluster.task_type = "worker";
    CHECK(findings(cluster) == list{"it does not say which worker this process is"});
  }

  TEST_CASE("a task that is not in the cluster is named") {
    CHECK(findings(with(sound().spec, "worker", 2))
          == list{"The `task_id` 2 exceeds the maximum id of worker: it has 2, counted from "
                  "0"});
    CHECK(mended(with(sound().spec, "worker", 2)).find(R"("index": 1)") != std::string::npos);
    CHECK(findings(with(sound().spec, "worker", -1))
          == list{"worker -1 cannot be: tasks are counted from 0"});
    CHECK(findings(with({{"worker", task_addresses{{0, "a:1"}, {2, "b:1"}}}}, "worker", 1)).front()
          == "worker 1 is not in the cluster, only 0, 2");
    CHECK(findings(with({{"worker", list{"a:1"}}}, "ps", 0))
          == list{"this process is said to be a 'ps', but the cluster has only worker"});
    CHECK(findings(with(sound().spec, "master", 0))
          == list{"this process cannot be a 'master': there are chief, ps, worker"});
  }

  TEST_CASE("an address must be one that others can dial") {
    auto cluster
      = with({{"chief", list{"a"}}, {"worker", list{"grpc://b:1", "0.0.0.0:1", "", "c:70000"}}});
    CHECK(findings(cluster)
          == list{"chief 0: 'a' has no port",
                  "worker 0: 'grpc://b:1' begins with 'grpc://', but an address is only host:port",
                  "worker 1: no task can connect to '0.0.0.0:1'; it must be an address that the "
                  "others reach",
                  "worker 2: '' has no port", "worker 3: 'c:70000' has no port from 1 to 65535"});
    CHECK(mended(cluster).find(R"({"chief": ["a:2222"], "worker": ["b:1", "this-host:1", )"
                               R"("host:2222", "c:2222"]})")
          != std::string::npos);
  }

  TEST_CASE("a host that only stands in for a wrong one is no machine of which a note tells") {
    for (const auto* wrong : {"a b:1", "", "0.0.0.0:1"}) {
      auto lines = findings(with({{"chief", list{"127.0.0.1:1"}}, {"worker", list{wrong}}}));
      REQUIRE(lines.size() == 1);
      CHECK(lines[0].starts_with("worker 0: "));
    }
    auto cluster = with({{"chief", list{"127.0.0.1:1"}}, {"worker", list{"grpc://b:1"}}});
    CHECK(findings(cluster).back().ends_with("but worker 0 is at b"));
  }

  TEST_CASE("an address that lacks a port is still none that others can dial") {
    auto cluster = with({{"worker", list{"0.0.0.0", "::"}}});
    CHECK(mended(cluster).find(R"(["this-host:2222", "this-host:2223"])") != std::string::npos);
  }

  TEST_CASE("an address of IPv6 that lacks its brackets keeps its port") {
    auto cluster = with({{"chief", list{"::1:23001"}}, {"worker", list{"::1"}}});
    CHECK(mended(cluster).find(R"({"chief": ["[::1]:23001"], "worker": ["[::1]:2222"]})")
          != std::string::npos);
  }

  TEST_CASE("no two tasks are at the same address") {
    auto cluster = with({{"chief", list{"a:1"}}, {"worker", list{"a:1", "a:2", "b:1"}}});
    CHECK(findings(cluster)
          == list{"chief 0 and worker 0 are both at a:1; each task needs an address of its own",
                  "worker 0 and worker 1 are both at a:2; each task needs an address of its own"});
    auto here = with({{"chief", list{"localhost:1"}}, {"worker", list{"127.0.0.1:1"}}});
    CHECK(findings(here)
          == list{"chief 0 and worker 0 are both at 127.0.0.1:1; each task needs an address of its "
                  "own"});
    for (const auto& [one, other] : {std::pair{"127.0.0.1:1", "127.0.0.1:01"},
                                     {"127.0.0.1:1", "127.1:1"},
                                     {"[::1]:1", "[0:0:0:0:0:0:0:1]:1"},
                                     {"host.org:1", "HOST.org.:1"}}) {
      CAPTURE(other);
      CHECK(findings(with({{"chief", list{one}}, {"worker", list{other}}})).size() == 1);
    }
    auto last_port = with({{"chief", list{"a:65535"}}, {"worker", list{"a:65535"}}});
    CHECK(mended(last_port).find(R"("worker": ["a:2222"])") != std::string::npos);
  }

  TEST_CASE("tasks without an address are sound where launchers do not know them") {
    auto cluster = with({{"chief", list{"a:1"}}, {"worker", list{"", ""}}});
    CHECK(findings(cluster).size() == 2);
    cluster.addresses_may_be_empty = true;
    CHECK(findings(cluster).empty());
  }

  TEST_CASE("an address of the own machine is worth a note where others are elsewhere") {
    CHECK(
      findings(with({{"chief", list{"localhost:1"}}, {"worker", list{"127.0.0.1:2"}}})).empty());
    CHECK(findings(with({{"chief", list{"localhost:1"}}, {"worker", list{"b:2"}}}))
          == list{"note: chief 0 is at localhost, which every machine takes for itself, but worker "
                  "0 is at b"});
  }

  TEST_CASE("everything is found at once, and stands in one line") {
    auto cluster = with({{"chief", list{"a:1"}}, {"workers", list{"b"}}}, "worker", 1);
    auto checked = check_cluster(cluster);
    CHECK(problem_line("TF_CONFIG", checked.findings, example_text(checked.mended))
          == "TF_CONFIG: 'workers' is no task type; it is called 'worker'; The `task_id` 1 exceeds "
             "the maximum id of worker: it has 1, counted from 0; worker 0: 'b' has no port; "
             R"(mended: TF_CONFIG='{"cluster": {"chief": ["a:1"], "worker": ["b:2222"]}, )"
             R"("task": {"type": "worker", "index": 0}}')");
    CHECK(problem_line("TF_CONFIG", {}, "x").empty());
  }

  TEST_CASE("an example of a large cluster shows the first tasks of each job") {
    list many;
    for (int i = 0; i < 100; ++i)
      many.push_back(fmt::format("w{}:1", i));
    auto text = example_text(with({{"chief", list{"a:1"}}, {"worker", many}}, "worker", 70));
    CHECK(text
          == R"(TF_CONFIG='{"cluster": {"chief": ["a:1"], "worker": ["w0:1", "w1:1", "w2:1"]}, )"
             R"("task": {"type": "worker", "index": 2}}')");
  }
}

} // namespace cluster_check_test
