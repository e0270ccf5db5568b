// SPDX-License-Identifier: Apache-2.0
// Goal: Slurm's variables become tasks with addresses and GPUs, and what is missing is named.
// Method: environments as srun makes them.
#include "messages/mapped.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/resolvers/slurm_resolver.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/cluster/variables.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace slurm_resolver_test {

namespace {

using namespace troupe;
using test::refusal;
using test::set;
using test::variables;
using list = std::vector<std::string>;

// Three nodes with 3, 2 and 2 tasks; two GPUs on each are visible.
variables seven_tasks(const std::string& process = "0") {
  return {{"SLURM_PROCID", process},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_STEP_NODELIST", "n[1-3]"},
          {"SLURM_STEP_TASKS_PER_NODE", "3,2(x2)"},
          {"CUDA_VISIBLE_DEVICES", ""}};
}

variables without(variables all, const std::string& name) {
  all.erase(name);
  return all;
}

slurm_resolver of(const slurm_options& options, const variables& environment) {
  return slurm_resolver{options, fixed_environment(environment)};
}

std::string refused(const slurm_options& options, const variables& environment) {
  return refusal([&] { return of(options, environment).cluster_spec(); });
}

list problems(const variables& environment) {
  return mapped(resolve({}, fixed_environment(environment)).findings,
                [](const auto& finding) { return finding.reason.message; });
}

} // namespace

TEST_SUITE("strategies/cluster/resolvers/slurm_resolver") {
  TEST_CASE("all tasks are workers, on ports that count from 8888 on each host") {
    auto resolver = of({}, seven_tasks("4"));
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"worker", list{"n1:8888", "n1:8889", "n1:8890", "n2:8888", "n2:8889",
                                          "n3:8888", "n3:8889"}}});
    CHECK(resolver.task_type() == "worker");
    CHECK(resolver.task_id() == 4);
    CHECK(resolver.place() == process_place{1, 1});
  }

  TEST_CASE("jobs take tasks in the order of their names") {
    slurm_options options{.jobs = job_counts{{"worker", 5}, {"ps", 1}, {"chief", 1}},
                          .port_base = 1337};
    auto resolver = of(options, seven_tasks("2"));
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"chief", list{"n1:1337"}},
                          {"ps", list{"n1:1338"}},
                          {"worker", list{"n1:1339", "n2:1337", "n2:1338", "n3:1337", "n3:1338"}}});
    CHECK(resolver.task_type() == "worker");
    CHECK(resolver.task_id() == 0);
    CHECK(of(options, seven_tasks("0")).task_type() == "chief");
    CHECK(of(options, seven_tasks("1")).task_type() == "ps");
  }

  TEST_CASE("a master is the own task's address, or that of the one asked for") {
    auto resolver = of({}, seven_tasks("3"));
    CHECK(resolver.master() == "grpc://n2:8888");
    CHECK(resolver.master({.task_type = "worker", .task_id = 1, .rpc_layer = "tcp"})
          == "tcp://n1:8889");
  }

  TEST_CASE("hosts are sorted by letters as in the original, or kept as Slurm lists them") {
    auto environment = seven_tasks();
    set(environment, "SLURM_STEP_NODELIST", "n[9-10]");
    set(environment, "SLURM_STEP_TASKS_PER_NODE", "1(x2)");
    set(environment, "SLURM_STEP_NUM_TASKS", "2");
    CHECK(of({}, environment).cluster_spec().task_address("worker", 0) == "n10:8888");
    CHECK(of({.hosts_as_listed = true}, environment).cluster_spec().task_address("worker", 0)
          == "n9:8888");
  }

  TEST_CASE("the number of tasks on each host may be given") {
    CHECK(of({.tasks_per_node = 2},
             [] {
               auto six = seven_tasks();
               set(six, "SLURM_STEP_NUM_TASKS", "6");
               return six;
             }())
            .cluster_spec()
            .num_tasks("worker")
          == 6);
    CHECK(of({.tasks_of_host = std::map<std::string, uint64_t>{{"b", 3}, {"a", 4}}}, seven_tasks())
            .cluster_spec()
            .task_address("worker", 4)
          == "b:8888");
  }

  TEST_CASE("a task has its share of the node's GPUs") {
    auto environment = seven_tasks("4");
    set(environment, "CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6");
    using counts = std::map<std::string, uint64_t>;
    CHECK(of({}, environment).num_accelerators() == counts{{"GPU", 2}}); // 7 by 3 tasks
    CHECK(of({}, environment).visible_devices() == "2,3");
    CHECK(of({.gpus_per_node = 3}, environment).num_accelerators() == counts{{"GPU", 1}});
    CHECK(of({.gpus_per_node = 3}, environment).visible_devices() == "1");
    CHECK(of({.gpus_per_node = 9, .gpus_per_task = 2}, environment).visible_devices() == "2,3");
    CHECK(of({}, seven_tasks()).num_accelerators().empty());
    CHECK(of({}, seven_tasks()).visible_devices().empty());
  }

  TEST_CASE("refuses more GPUs than a node has") {
    CHECK(
      refused({.gpus_per_node = 2, .gpus_per_task = 1}, seven_tasks())
      == "failed_precondition: Requested more GPUs per node than available: 3 tasks with 1 each "
         "on a node with 2");
  }

  TEST_CASE("refuses jobs that are not as many tasks as Slurm has started") {
    CHECK(refused({.jobs = job_counts{{"worker", 5}}}, seven_tasks())
          == "failed_precondition: jobs ask for 5 tasks, but 7 were started");
  }

  TEST_CASE("names the variables that count different numbers of tasks where no jobs are given") {
    auto environment = seven_tasks();
    set(environment, "SLURM_STEP_NUM_TASKS", "5");
    CHECK(refused({}, environment)
          == "failed_precondition: SLURM_STEP_NUM_TASKS is 5, but there are 7 tasks by "
             "SLURM_STEP_TASKS_PER_NODE=3,2(x2): start them with srun, or give --cluster");
    CHECK(refused({.tasks_per_node = 2}, environment).find("there are 6 tasks by tasks_per_node:")
          != std::string::npos);
    environment.erase("SLURM_STEP_NUM_TASKS");
    environment.erase("SLURM_STEP_TASKS_PER_NODE");
    set(environment, "SLURM_NTASKS", "8");
    set(environment, "SLURM_TASKS_PER_NODE", "3(x3)");
    CHECK(refused({}, environment)
            .starts_with("failed_precondition: SLURM_NTASKS is 8, but there are 9 tasks by "
                         "SLURM_TASKS_PER_NODE=3(x3)"));
    set(environment, "SLURM_NTASKS", "x");
    CHECK(refused({}, environment)
          == "failed_precondition: Slurm: SLURM_NTASKS must be a whole number up to 100000, not "
             "'x'");
  }

  TEST_CASE("names a variable that is missing or malformed") {
    for (const auto* name :
         {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"})
      CHECK(refused({}, without(seven_tasks(), name)).find(name) != std::string::npos);
    CHECK(
      refusal([] { return of({}, without(seven_tasks(), "SLURM_PROCID")).task_id(); })
      == "failed_precondition: Slurm has not set SLURM_PROCID: start the process by it, or give "
         "--cluster");
    auto environment = seven_tasks();
    set(environment, "SLURM_STEP_NODELIST", "n[1-");
    CHECK(refused({}, environment)
          == "failed_precondition: SLURM_STEP_NODELIST: malformed host list 'n[1-': a bracket is "
             "missing");
    set(environment, "SLURM_STEP_NODELIST", "n[1-2]");
    CHECK(refused({}, environment)
          == "failed_precondition: SLURM_STEP_TASKS_PER_NODE tells of 3 hosts, but "
             "SLURM_STEP_NODELIST of 2");
    CHECK(
      refusal([] { return of({}, seven_tasks("x")).task_id(); })
      == "failed_precondition: Slurm: SLURM_PROCID must be a whole number up to 100000, not 'x'");
    CHECK(refusal([] { return of({}, seven_tasks("7")).task_id(); })
          == "failed_precondition: process 7 is said to be one of 7, counted from 0");
  }

  TEST_CASE("the step's variables are read before the job's") {
    auto environment = seven_tasks();
    set(environment, "SLURM_NTASKS", "100");
    set(environment, "SLURM_JOB_NODELIST", "m[1-50]");
    set(environment, "SLURM_TASKS_PER_NODE", "2(x50)");
    CHECK(of({}, environment).cluster_spec().num_tasks("worker") == 7);
    for (const auto* name :
         {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"})
      environment.erase(name);
    CHECK(of({}, environment).cluster_spec().num_tasks("worker") == 100);
    CHECK(problems(environment)
          == list{"SLURM_STEP_NUM_TASKS is not set, so the job's 100 tasks were not started: start "
                  "them with srun, or this one alone with env -u SLURM_PROCID"});
  }

  TEST_CASE("a job under Slurm is resolved with hosts as listed") {
    auto environment = seven_tasks("3");
    set(environment, "SLURM_NODEID", "1");
    set(environment, "SLURM_LOCALID", "0");
    auto cluster = resolve({.port_base = 9000}, fixed_environment(environment));
    CHECK(cluster.source == "Slurm");
    CHECK(cluster.findings.empty());
    CHECK(cluster.self() == cluster_task{"worker", 3, "n2:9000"});
    auto counted = resolve({.cluster = "ps=4;worker=3"}, fixed_environment(environment));
    CHECK(counted.self() == cluster_task{"ps", 3, "n2:8888"});
  }

  TEST_CASE("a process that is not where its number says is found") {
    auto environment = seven_tasks("1");
    set(environment, "SLURM_NODEID", "1");
    set(environment, "SLURM_LOCALID", "0");
    CHECK(problems(environment)
          == list{"process 1 runs as task 0 of node 1, but would as task 1 of node 0 if one node "
                  "after the other were filled: start it with srun --distribution=block"});
    set(environment, "SLURM_HET_SIZE", "2");
    CHECK(problems(environment)
          == list{"process 1 runs as task 0 of node 1, but would as task 1 of node 0 if one node "
                  "after the other were filled: name the nodes of the components in sorted order, "
                  "as in srun -w n1 ... : -w n2 ..., or list all addresses with --cluster or "
                  "--cluster-file"});
  }

  TEST_CASE("a component on a node that is sorted behind the next one's is found") {
    // As srun -w n2 -n2 A : -w n1 -n2 B has it.
    variables environment{{"SLURM_PROCID", "0"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_NODELIST", "n[1-2]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                          {"SLURM_HET_SIZE", "2"},
                          {"SLURM_NODEID", "0"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURMD_NODENAME", "n2"}};
    CHECK(problems(environment)
          == list{"process 0 runs on node n2, but by SLURM_STEP_NODELIST on n1: name the nodes of "
                  "the components in sorted order, as in srun -w n1 ... : -w n2 ..., or list all "
                  "addresses with --cluster or --cluster-file"});
    set(environment, "SLURMD_NODENAME", "n1");
    CHECK(problems(environment).empty());
  }
}

} // namespace slurm_resolver_test
