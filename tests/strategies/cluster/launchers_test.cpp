// SPDX-License-Identifier: Apache-2.0
// Goal: processes that mpirun or torchrun started find each other. Method: environments as those
// make them.
#include "messages/mapped.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/resolvers/open_mpi_resolver.hpp"
#include "strategies/cluster/resolvers/torchrun_resolver.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/cluster/variables.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace launchers_test {

namespace {

using namespace troupe;
using test::refusal;
using test::set;
using test::variables;
using list = std::vector<std::string>;

variables mpirun(const std::string& rank, const std::string& size, const std::string& local_size,
                 const std::string& hosts = "") {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", size},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size},
          {"TROUPE_HOSTS", hosts}};
}

variables torchrun(const std::string& rank, const std::string& local_size = "4") {
  return {{"RANK", rank},          {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", local_size},
          {"LOCAL_RANK", "1"},     {"GROUP_RANK", "0"}, {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"}};
}

resolved_cluster resolved(const variables& environment) {
  return resolve({}, fixed_environment(environment));
}

list addresses(const resolved_cluster& cluster) {
  return mapped(cluster.tasks, &cluster_task::address);
}

std::string refused(const open_mpi_options& options, const variables& environment) {
  return refusal([&] {
    return open_mpi_resolver{options, fixed_environment(environment)}.cluster_spec();
  });
}

std::string torchrun_refused(variables environment, const std::string& name,
                             const std::string& value) {
  environment[name] = value;
  return refusal([&] { return torchrun_resolver{fixed_environment(environment)}.cluster_spec(); });
}

} // namespace

TEST_SUITE("strategies/cluster/open_mpi_resolver") {
  TEST_CASE("processes of one machine are on 127.0.0.1") {
    auto cluster = resolved(mpirun("1", "3", "3"));
    CHECK(cluster.source == "Open MPI");
    CHECK(addresses(cluster) == list{"127.0.0.1:8888", "127.0.0.1:8889", "127.0.0.1:8890"});
    CHECK(to_string(cluster.self()) == "worker 1");
    CHECK(cluster.chief() == 0);
    CHECK(cluster.findings.empty());
  }

  TEST_CASE("hosts have processes one after the other, as many on each") {
    CHECK(addresses(resolved(mpirun("0", "4", "2", "n[1-2]")))
          == list{"n1:8888", "n1:8889", "n2:8888", "n2:8889"});
    CHECK(addresses(resolved(mpirun("0", "4", "2", "a:5,b,a:5,c:7")))
          == list{"a:5", "b:8888", "a:6", "c:7"});
  }

  TEST_CASE("hosts and jobs may be given when the resolver is made") {
    open_mpi_resolver resolver{
      {.jobs = job_counts{{"ps", 1}, {"worker", 1}}, .hosts = {"a", "b"}, .rpc_layer = "tcp"},
      fixed_environment(mpirun("1", "2", "1"))};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"ps", list{"a:8888"}}, {"worker", list{"b:8888"}}});
    CHECK(resolver.task_type() == "worker");
    CHECK(resolver.task_id() == 0);
    CHECK(resolver.master() == "tcp://b:8888");
    CHECK(resolver.master({.task_type = "ps", .task_id = 0}) == "tcp://a:8888");
    open_mpi_resolver version_6{{.hosts = {"[fd00::1]:7"}},
                                fixed_environment(mpirun("1", "2", "1"))};
    CHECK(version_6.master() == "[fd00::1]:8");
  }

  TEST_CASE("says that mpirun does not tell the hosts") {
    CHECK(refused({}, mpirun("0", "4", "2"))
          == "failed_precondition: mpirun tells no process on which hosts the other 3 are: list "
             "them in the order of ranks, as in mpirun -x TROUPE_HOSTS=node1,node2");
    CHECK(resolved(mpirun("0", "4", "2"))
            .problem_line()
            .starts_with("Open MPI: mpirun tells no process"));
  }

  TEST_CASE("refuses hosts that do not fit, and variables that are no numbers") {
    CHECK(refused({}, mpirun("0", "3", "2", "a,b"))
          == "failed_precondition: 3 processes cannot be on 2 hosts, as many on each: list a host "
             "for each process");
    CHECK(refused({}, mpirun("0", "3", "2", "n[1-"))
            .starts_with("failed_precondition: TROUPE_HOSTS: malformed host list"));
    CHECK(refused({}, mpirun("0", "many", "2"))
          == "failed_precondition: Open MPI: OMPI_COMM_WORLD_SIZE must be a whole number up to "
             "100000, not 'many'");
    CHECK(resolved(mpirun("0", "many", "2"))
            .problem_line()
            .starts_with("Open MPI: OMPI_COMM_WORLD_SIZE must be a whole number up to 100000, not "
                         "'many'"));
    CHECK(resolved(mpirun("0", "2", "2", "a:65535"))
            .problem_line()
            .starts_with("Open MPI: worker 1: 'a:65536' has no port from 1 to 65535"));
  }

  TEST_CASE("a process that is not where the list of hosts has it is found") {
    auto placed = [](const std::string& rank, const std::string& local, const std::string& hosts) {
      auto environment = mpirun(rank, "4", "2", hosts);
      set(environment, "OMPI_COMM_WORLD_LOCAL_RANK", local);
      return resolved(environment).problem_line();
    };
    CHECK(placed("1", "1", "a,b").empty());
    CHECK(placed("1", "0", "a,b") // --map-by node
          == "Open MPI: process 1 is number 0 on its machine, but number 1 by the list of hosts: "
             "list a host for each process in the order of ranks, or start them with mpirun "
             "--map-by slot");
    CHECK(placed("1", "0", "a,b,a,b").empty());
    CHECK(placed("1", "1", "a:5,a:9,b:5,b:9").empty()); // two ports of one machine
    CHECK(placed("1", "1", "a,a-ib,b,b-ib").empty());   // two names of one machine
  }

  TEST_CASE("Open MPI inside a Slurm job is believed, Slurm has started its daemons only") {
    auto environment = mpirun("1", "2", "2");
    set(environment, "SLURM_PROCID", "0");
    set(environment, "SLURM_NTASKS", "2");
    CHECK(resolved(environment).source == "Open MPI");
  }
}

TEST_SUITE("strategies/cluster/torchrun_resolver") {
  TEST_CASE("on one machine each process has a port behind that of torchrun's store") {
    auto cluster = resolved(torchrun("2"));
    CHECK(cluster.source == "torchrun");
    CHECK(addresses(cluster) == list{"node0:29501", "node0:29502", "node0:29503", "node0:29504"});
    CHECK(cluster.tasks.front().type == "chief");
    CHECK(to_string(cluster.self()) == "worker 1");
    CHECK(cluster.findings.empty());
    CHECK(resolved(torchrun("0")).is_chief());
  }

  TEST_CASE("on several machines only addresses of the first are known, and that is no mistake") {
    auto cluster = resolved(torchrun("2", "2"));
    CHECK(addresses(cluster) == list{"node0:29501", "node0:29502", "", ""});
    CHECK(cluster.findings.empty());
    auto unknown = torchrun("2");
    unknown.erase("LOCAL_WORLD_SIZE");
    CHECK(addresses(resolved(unknown)) == list{"node0:29501", "", "", ""});
  }

  TEST_CASE("where machines run unequal numbers of processes, only the chief's address is known") {
    CHECK(addresses(resolved(torchrun("2", "3"))) == list{"node0:29501", "", "", ""});
    auto three_machines = torchrun("1", "2"); // of 1, 2 and 1 processes
    set(three_machines, "GROUP_WORLD_SIZE", "3");
    CHECK(addresses(resolved(three_machines)) == list{"node0:29501", "", "", ""});
  }

  TEST_CASE("parameter servers of the first machine are dialed there, by workers of all") {
    auto cluster = resolve({.cluster = "chief=1;ps=1;worker=2"}, //
                           fixed_environment(torchrun("2", "2")));
    CHECK(cluster.findings.empty());
    CHECK(cluster.tasks[1] == cluster_task{"ps", 0, "node0:29502"});
    CHECK(to_string(cluster.self()) == "worker 0");
  }

  TEST_CASE("a parameter server without a known address is a problem, with what to do") {
    auto cluster
      = resolve({.cluster = "chief=1;ps=2;worker=1"}, fixed_environment(torchrun("3", "2")));
    CHECK(
      cluster.problem_line()
      == "torchrun: ps 1 is to be dialed by workers, but torchrun says only where the processes "
         "of the first machine are: start at least 3 there, or list all addresses with "
         "--cluster or --cluster-file");
    CHECK(resolve({.cluster = "chief=1;ps=3"}, fixed_environment(torchrun("3", "2")))
            .findings.empty()); // they dial the chief, and no task dials them
  }

  TEST_CASE("one process is a chief alone") {
    auto environment = torchrun("0", "1");
    set(environment, "WORLD_SIZE", "1");
    auto cluster = resolved(environment);
    CHECK(cluster.is_alone());
    CHECK(cluster.is_chief());
  }

  TEST_CASE("tells on which machine it is, and as which of its processes") {
    torchrun_resolver resolver{fixed_environment(torchrun("1"))};
    CHECK(resolver.machine() == 0);
    CHECK(resolver.local_rank() == 1);
    CHECK(resolver.master() == "node0:29502");
    CHECK(resolver.master({.task_type = "chief", .task_id = 0, .rpc_layer = "tcp"})
          == "tcp://node0:29501");
    CHECK_FALSE(torchrun_resolver{fixed_environment({})}.machine());
  }

  TEST_CASE("names a variable that is missing or malformed") {
    CHECK(torchrun_refused(torchrun("0"), "MASTER_ADDR", "")
          == "failed_precondition: torchrun has not set MASTER_ADDR: start the process by it, or "
             "give --cluster");
    CHECK(
      torchrun_refused(torchrun("0"), "MASTER_PORT", "x")
      == "failed_precondition: torchrun: MASTER_PORT must be a whole number up to 100000, not 'x'");
    CHECK(torchrun_refused(torchrun("0"), "MASTER_PORT", "65532")
          == "failed_precondition: torchrun: MASTER_PORT is 65532, so 4 ports behind it would be "
             "above 65535: give another --master-port");
    CHECK(torchrun_refused(torchrun("0"), "WORLD_SIZE", "4000000000")
          == "failed_precondition: torchrun: WORLD_SIZE must be a whole number up to 100000, not "
             "'4000000000'");
    CHECK(torchrun_refused(torchrun("0"), "WORLD_SIZE", "0")
          == "failed_precondition: torchrun: WORLD_SIZE is 0, but there is this process");
    CHECK(resolved(torchrun("4")).problem_line()
          == "torchrun: process 4 is said to be one of 4, counted from 0");
  }

  TEST_CASE("torchrun is believed before Slurm and Open MPI, and after TF_CONFIG") {
    auto environment = torchrun("0");
    environment.merge(mpirun("0", "2", "2"));
    set(environment, "SLURM_PROCID", "0");
    CHECK(resolved(environment).source == "torchrun");
    CHECK(resolved(environment).ignored == list{"Open MPI"});
    set(environment, "TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:1"]},
                                   "task": {"type": "worker", "index": 0}})");
    CHECK(resolved(environment).source == "TF_CONFIG");
    CHECK(resolved(environment).ignored == list{"torchrun", "Open MPI"});
  }

  TEST_CASE("a task on the command line is no news to a launcher") {
    auto cluster = resolve({.task = "worker:0"}, fixed_environment(torchrun("0")));
    CHECK(cluster.is_chief());
    REQUIRE(cluster.findings.size() == 1);
    CHECK(cluster.findings[0].reason.message
          == "--task worker:0 is ignored: torchrun says itself which task this is");
  }

  TEST_CASE("jobs that are counted on the command line take processes by their names") {
    auto of = [](const std::string& jobs, const variables& environment) {
      return resolve({.cluster = jobs}, fixed_environment(environment));
    };
    auto cluster = of("worker=2;ps=1; chief=1", torchrun("1"));
    CHECK(cluster.source == "torchrun");
    CHECK(cluster.findings.empty());
    CHECK(to_string(cluster.self()) == "ps 0");
    CHECK(addresses(cluster).front() == "node0:29501");
    CHECK(to_string(of("ps=1;worker=2", mpirun("2", "3", "3")).self()) == "worker 1");
    CHECK(of("ps=1;worker=3", mpirun("2", "3", "3")).problem_line()
          == "Open MPI: jobs ask for 4 tasks, but 3 were started");
    CHECK(of("ps=1;worker=3", torchrun("1", "1")).problem_line()
          == "torchrun: worker 0 is the chief, but its address is not known: make process 0 the "
             "chief");
    auto listed = of("ps=1;worker=3", {{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]},
      "task": {"type": "worker", "index": 0}})"}});
    REQUIRE(listed.findings.size() == 1);
    CHECK(listed.findings[0].reason.message
          == "--cluster ps=1;worker=3 is ignored: TF_CONFIG lists the tasks");
    CHECK(of("ps=1;worker=3", {}).problem_line()
          == "--cluster: 'ps=1;worker=3' counts tasks, but no launcher has started any: start this "
             "by torchrun, srun or mpirun, or list addresses, as in worker=a:1,b:1");
  }
}

} // namespace launchers_test
