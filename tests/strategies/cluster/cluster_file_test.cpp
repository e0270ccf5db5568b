// SPDX-License-Identifier: Apache-2.0
// Goal: a cluster's file is read, and every slip in it has its line. Method: texts, and files.
#include "messages/mapped.hpp"
#include "strategies/cluster/cluster_file.hpp"
#include "strategies/cluster/resolve.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <fstream>

namespace cluster_file_test {

namespace {

using namespace troupe;
using test::refusal;
using list = std::vector<std::string>;

constexpr auto plain = R"([cluster]
chief = ["a:1"]
worker = ["b:1", "c:1"]
[task]
type = "worker"
index = 1
)";

list findings(std::string_view toml) {
  std::vector<cluster_finding> found;
  static_cast<void>(declared_by_toml(toml, "c.toml", found));
  return mapped(found, [](const auto& finding) { return finding.reason.message; });
}

} // namespace

TEST_SUITE("strategies/cluster/cluster_file") {
  TEST_CASE("reads jobs and the own task") {
    std::vector<cluster_finding> found;
    auto declared = declared_by_toml(plain, "c.toml", found);
    CHECK(found.empty());
    CHECK(declared.spec == cluster_spec{{"chief", list{"a:1"}}, {"worker", list{"b:1", "c:1"}}});
    CHECK(declared.task_type == "worker");
    CHECK(declared.task_id == 1);
    auto by_index = declared_by_toml("[cluster.worker]\n3 = \"b:1\"", "c.toml", found);
    CHECK(found.empty());
    CHECK(by_index.spec == cluster_spec{{"worker", task_addresses{{3, "b:1"}}}});
  }

  TEST_CASE("names line and reason of every slip") {
    CHECK(findings("[cluster]\nchief = [\"a:1\"\n").size() == 1);
    CHECK(findings("[cluster]\nchief = [\"a:1\"\n")[0].starts_with("line "));
    CHECK(
      findings("[cluster]\nworker = \"a:1\"\nps = [7]\n[job]\n[task]\nindex = \"1\"\nid = 1")
      == list{"line 3: an address of ps must be a text such as \"node1:2222\"",
              "line 2: worker must be a list, as in worker = [\"node1:2222\"]",
              "line 4: 'job' is unknown: there are the tables [cluster] and [task]",
              "line 7: 'id' is unknown: [task] has type and index",
              "line 6: [task] needs type = \"worker\" and index = 1, a text and a whole number"});
    CHECK(findings("[cluster.worker]\nx = \"b:1\"")
          == list{"line 2: worker has a task 'x', but tasks are whole numbers from 0 on"});
    CHECK(findings("[cluster.worker]\n1 = \"b:1\"\n01 = \"c:1\"")
          == list{"line 2: worker has task 1 twice"});
    CHECK(findings("task = 3")
          == list{"line 1: [task] must be a table", "line 1: there is no table [cluster]"});
  }

  TEST_CASE("a file is believed after --cluster and before TF_CONFIG") {
    test::scratch_folder folder;
    auto path = (folder / "c.toml").string();
    std::ofstream{path} << plain;
    auto environment = fixed_environment({{"TF_CONFIG", "{}"}});
    auto cluster = resolve({.file = path}, environment);
    CHECK(cluster.source == path);
    CHECK(cluster.own == 2);
    CHECK(cluster.ignored == list{"TF_CONFIG"});
    CHECK(to_string(resolve({.task = "chief", .file = path}, environment).self()) == "chief 0");
    auto by_flags = resolve({.cluster = "chief=z:1", .task = "chief", .file = path}, environment);
    CHECK(by_flags.source == "--cluster");
    CHECK(by_flags.ignored == list{"--cluster-file", "TF_CONFIG"});
  }

  TEST_CASE("a file that is not there is a problem, and a right one is shown") {
    auto line = resolve({.file = "none.toml"}, fixed_environment({})).problem_line();
    CHECK(line.starts_with("none.toml: "));
    CHECK(line.find("; mended: cluster = {chief = [\"host0:2222\"]") != std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
  }

  TEST_CASE("is a resolver, too, that reads anew on every call") {
    test::scratch_folder folder;
    auto path = (folder / "c.toml").string();
    std::ofstream{path} << plain;
    toml_resolver resolver{path};
    CHECK(resolver.cluster_spec().num_tasks("worker") == 2);
    CHECK(resolver.master() == "c:1");
    CHECK(resolver.master({.task_id = 0}) == "b:1");
    resolver.set_task_type("chief");
    resolver.set_task_id(0);
    CHECK(resolver.master() == "a:1");
    std::ofstream{path} << "[cluster]\nworker = 7\n";
    CHECK(refusal([&] { return resolver.cluster_spec(); }).find("line 2: worker must be a list")
          != std::string::npos);
  }
}

} // namespace cluster_file_test
