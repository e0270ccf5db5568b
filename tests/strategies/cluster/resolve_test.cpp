// SPDX-License-Identifier: Apache-2.0
// Goal: a process finds its cluster, believes the right one of several descriptions, and says what
// it did not believe. Method: options and environments of the test's own.
#include "messages/mapped.hpp"
#include "strategies/cluster/resolve.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace resolve_test {

namespace {

using namespace troupe;
using test::refusal;
using list = std::vector<std::string>;
using variables = std::map<std::string, std::string>;

constexpr auto tf_config
  = R"({"cluster": {"worker": ["c:1", "d:1"], "ps": ["b:1"], "chief": ["a:1"]},
        "task": {"type": "worker", "index": 1}})";

resolved_cluster resolved(const cluster_options& options, const variables& environment = {}) {
  return resolve(options, fixed_environment(environment));
}

resolved_cluster of_tf_config(const std::string& text) {
  return resolved({}, {{"TF_CONFIG", text}});
}

list notes(const resolved_cluster& cluster) {
  return mapped(cluster.findings, [](const auto& finding) { return finding.reason.message; });
}

} // namespace

TEST_SUITE("strategies/cluster/resolve") {
  TEST_CASE("a process that was told nothing is alone, and its own chief") {
    auto cluster = resolved({});
    CHECK(cluster.tasks == std::vector<cluster_task>{{"chief", 0, ""}});
    CHECK(cluster.is_alone());
    CHECK(cluster.is_chief());
    CHECK(cluster.source.empty());
    CHECK(cluster.findings.empty());
  }

  TEST_CASE("all processes get the same list: chief, ps, workers, evaluator") {
    auto cluster = of_tf_config(tf_config);
    CHECK(cluster.tasks
          == std::vector<cluster_task>{
            {"chief", 0, "a:1"}, {"ps", 0, "b:1"}, {"worker", 0, "c:1"}, {"worker", 1, "d:1"}});
    CHECK(cluster.own == 3);
    CHECK(to_string(cluster.self()) == "worker 1");
    CHECK(cluster.chief() == 0);
    CHECK_FALSE(cluster.is_chief());
    CHECK(cluster.source == "TF_CONFIG");
    CHECK_FALSE(cluster.has_problem());
    cluster.require_sound();
  }

  TEST_CASE("worker 0 is the chief where there is none") {
    auto cluster = resolved({.cluster = "ps=a:1;worker=b:1,c:1", .task = "worker:0"});
    CHECK(cluster.chief() == 1);
    CHECK(cluster.is_chief());
  }

  TEST_CASE("a master is listed as the chief") {
    auto cluster = of_tf_config(R"({"cluster": {"master": ["a:1"], "worker": ["b:1"]},
                                    "task": {"type": "master", "index": 0}})");
    CHECK_FALSE(cluster.has_problem());
    CHECK(cluster.tasks.front() == cluster_task{"chief", 0, "a:1"});
    CHECK(cluster.own == 0);
  }

  TEST_CASE("an evaluator that is not listed is added to its own list") {
    auto cluster = resolved({.cluster = "chief=a:1;worker=b:1", .task = "evaluator"});
    CHECK_FALSE(cluster.has_problem());
    CHECK(cluster.self() == cluster_task{"evaluator", 0, ""});
    CHECK(cluster.own == 2);
    CHECK(cluster.is_evaluator());
    CHECK(cluster.training_task_count() == 2);
  }

  TEST_CASE("a process that trains alone is alone even beside an evaluator, which is not") {
    constexpr auto both = "worker=a:1;evaluator=b:1";
    auto worker = resolved({.cluster = both, .task = "worker:0"});
    CHECK(worker.is_alone());
    CHECK(worker.has_evaluator());
    auto evaluator = resolved({.cluster = both, .task = "evaluator:0"});
    CHECK_FALSE(evaluator.is_alone());
    CHECK_FALSE(resolved({.cluster = "worker=a:1,b:1", .task = "worker:0"}).has_evaluator());
  }

  TEST_CASE("reads flags") {
    auto cluster
      = resolved({.cluster = "chief=a:1; ps=b:1,b:2 ;worker=[fe80::1]:1,", .task = "ps:1"});
    CHECK(cluster.source == "--cluster");
    CHECK(cluster.own == 2);
    CHECK(cluster.tasks.back().address == "[fe80::1]:1");
    CHECK(cluster.findings.empty());
    CHECK(resolved({.cluster = "chief=a:1;worker=b:1", .task = "chief"}).own == 0);
  }

  TEST_CASE("refuses flags with all that is wrong, and shows right ones") {
    CHECK(refusal([] {
            resolved({.cluster = "worker=a,b:1;chief", .task = "worker:7"}).require_sound();
            return 0;
          })
          == "invalid_argument: --cluster: 'chief' is not JOB=HOST:PORT,HOST:PORT; The `task_id` 7 "
             "exceeds the maximum id of worker: it has 2, counted from 0; worker 0: 'a' has "
             "no port; mended: --cluster \"worker=a:2222,b:1\" --task worker:1");
    auto line = [](const std::string& cluster, const std::string& task) {
      return resolved({.cluster = cluster, .task = task}).problem_line();
    };
    CHECK(line(";", "chief").starts_with("--cluster: it names no job; mended: --cluster \"chief="));
    CHECK(line("worker=", "worker:0").starts_with("--cluster: 'worker' has no task"));
    CHECK(line("worker=a:1;worker=b:1", "worker:0")
          == "--cluster: 'worker' stands twice; its addresses go behind one another, with commas "
             "between; mended: --cluster \"worker=a:1,b:1\" --task worker:0");
    CHECK(line("worker=a:1,b:1", "worker")
            .starts_with("--cluster: --task worker does not say which worker: write worker:0 or "
                         "another index"));
    CHECK(line("worker=a:1,b:1", "worker:x")
            .starts_with("--cluster: --task worker:x is not TYPE:INDEX, as in worker:1"));
    CHECK(line("worker=a:1,b:1", "")
            .starts_with("--cluster: it does not say which of the tasks this process is"));
  }

  TEST_CASE("options are believed before TF_CONFIG, which is listed as ignored") {
    auto cluster = resolved({.cluster = "chief=x:1;worker=y:1", .task = "worker:0"},
                            {{"TF_CONFIG", tf_config}});
    CHECK(cluster.source == "--cluster");
    CHECK(cluster.ignored == list{"TF_CONFIG"});
    CHECK(cluster.tasks.size() == 2);
  }

  TEST_CASE("a task on the command line is another one of TF_CONFIG's cluster") {
    auto cluster = resolved({.task = "ps:0"}, {{"TF_CONFIG", tf_config}});
    CHECK(cluster.source == "TF_CONFIG");
    CHECK(to_string(cluster.self()) == "ps 0");
    CHECK(resolved({.task = "ps:0"}).problem_line()
          == "--task: 'ps:0' needs a cluster to be in: give --cluster, --cluster-file or "
             "TF_CONFIG");
  }

  TEST_CASE("a TF_CONFIG without a cluster decides nothing") {
    auto cluster = of_tf_config(R"({"cluster": {}, "task": {"type": "worker", "index": 0}})");
    CHECK(cluster.is_alone());
    CHECK(cluster.ignored == list{"TF_CONFIG (it names no cluster)"});
    CHECK(of_tf_config("  ").ignored.empty());
  }

  // The traps that users of TensorFlow fell into, each answered by one line that shows the way out.
  TEST_CASE("each trap of TF_CONFIG is one line that names the culprit and shows a right one") {
    auto line = [](const std::string& text) { return of_tf_config(text).problem_line(); };
    const std::string mended = R"(; mended: TF_CONFIG='{"cluster": )";
    const std::string worker_0 = R"(, "task": {"type": "worker", "index": 0}}')";
    CHECK(line(R"({"cluster": {"worker": {"0": "a:1", "0": "b:1"}},
                   "task": {"type": "worker", "index": 0}})")
          == "TF_CONFIG: the key '0' stands twice in the same place" + mended
               + R"({"worker": ["b:1"]})" + worker_0);
    CHECK(line(R"({"cluster": {"worker": ["a:1", "a:1"]},
                   "task": {"type": "worker", "index": 0}})")
          == "TF_CONFIG: worker 0 and worker 1 are both at a:1; each task needs an address of its "
             "own"
               + mended + R"({"worker": ["a:1", "a:2"]})" + worker_0);
    CHECK(line(R"({"cluster": {"ps_hosts": ["a:1"], "worker": ["b:1"]},
                   "task": {"type": "worker", "index": 0}})")
          == "TF_CONFIG: 'ps_hosts' is no task type; it is called 'ps'" + mended
               + R"({"ps": ["a:1"], "worker": ["b:1"]})" + worker_0);
    CHECK(line(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}})")
          == "TF_CONFIG: there is neither a chief nor a worker 0 that could be it" + mended
               + R"({"chief": ["chief-host:2222"], "ps": ["a:1"]}, )"
               + R"("task": {"type": "ps", "index": 0}}')");
    CHECK(line("{'cluster': {'worker': ['a:1']}, 'task': {'type': 'worker', 'index': 0}}")
          == "TF_CONFIG: it is not JSON: texts stand in double quotes, not in single ones" + mended
               + R"({"worker": ["a:1"]})" + worker_0);
    CHECK(line("nonsense").starts_with("TF_CONFIG: it is not JSON from letter 2 on"));
    CHECK(line(R"({"cluster": {"worker": ["a:1"]}})")
          == "TF_CONFIG: it does not say which of the tasks this process is" + mended
               + R"({"worker": ["a:1"]})" + worker_0);
    CHECK(line(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})")
          == "TF_CONFIG: The `task_id` 1 exceeds the maximum id of worker: it has 1, counted "
             "from 0"
               + mended + R"({"worker": ["a:1"]})" + worker_0);
    CHECK(line(R"({"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}})")
          == "TF_CONFIG: worker 0: 'a' has no port" + mended + R"({"worker": ["a:2222"]})"
               + worker_0);
  }

  TEST_CASE("a trap that does no harm is a note, with how to say it more clearly") {
    auto master = of_tf_config(R"({"cluster": {"master": ["a:1"], "worker": ["b:1"]},
                                   "task": {"type": "worker", "index": 0}})");
    CHECK_FALSE(master.has_problem());
    CHECK(master.mended
          == R"(TF_CONFIG='{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, )"
             R"("task": {"type": "worker", "index": 0}}')");
    auto no_chief = resolved({.cluster = "worker=a:1,b:1", .task = "worker:1"});
    CHECK(no_chief.mended == R"(--cluster "chief=a:1;worker=b:1" --task worker:0)");
    CHECK(to_string(no_chief.self()) == "worker 1");
  }

  TEST_CASE("a wrong cluster is listed as it was declared, not as it was mended") {
    auto cluster = of_tf_config(
      R"({"cluster": {"ps_hosts": ["a:1"], "worker": ["b"]}, "task": {"type": "ps_hosts", "index": 0}})");
    CHECK(cluster.has_problem());
    CHECK(cluster.tasks == std::vector<cluster_task>{{"worker", 0, "b"}, {"ps_hosts", 0, "a:1"}});
    CHECK(cluster.own == 1);
    CHECK(notes(cluster).size() == 3);
  }

  TEST_CASE("tells programs everything") {
    CHECK(to_json(resolved({.cluster = "worker=a:1,b", .task = "worker:1"})) == R"({
  "source": "--cluster",
  "tasks": [
    {
      "type": "worker",
      "index": 0,
      "address": "a:1"
    },
    {
      "type": "worker",
      "index": 1,
      "address": "b"
    }
  ],
  "own": 1,
  "ignored": [],
  "problems": [
    "worker 1: 'b' has no port"
  ],
  "notes": [
    "no chief is listed, so worker 0 is the chief"
  ],
  "mended": "--cluster \"worker=a:1,b:2222\" --task worker:1"
})");
  }
}

} // namespace resolve_test
