// SPDX-License-Identifier: Apache-2.0
// Goal: a process joins the others of its job, and leaves them. Method: servers of one process,
// each with a world of its own, over sockets of this machine.
#include "strategies/cluster/server.hpp"
#include "tests/actors/net/free_addresses.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/refusal.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace server_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::string free_address() {
  return free_addresses(1).front();
}

resolved_cluster cluster_of(std::vector<cluster_task> tasks, size_t own) {
  resolved_cluster cluster;
  cluster.tasks = std::move(tasks);
  cluster.own = own;
  cluster.source = "a test";
  return cluster;
}

std::vector<cluster_task> two_workers(const std::string& first, const std::string& second) {
  return {{"worker", 0, first}, {"worker", 1, second}};
}

/// A server with its world.
struct process {
  explicit process(const resolved_cluster& cluster, server_options options = {})
    : server{world, cluster, std::move(options)} {}

  troupe::world world = world::threads({.threads = 1});
  troupe::server server;
};

} // namespace

TEST_SUITE("strategies/cluster/server") {
  TEST_CASE("a process that is alone listens nowhere and needs no placement") {
    process alone{cluster_of({{"chief", 0, ""}}, 0), {.replicas = 3}};
    CHECK(alone.server.placement() == nullptr);
    CHECK(alone.server.replicas() == 3);
    CHECK(alone.server.is_chief());
    CHECK(alone.server.trainers() == std::vector<std::string>{"chief:0"});
    CHECK(alone.server.target().empty());
    CHECK(alone.server.join());
  }

  TEST_CASE("processes share replicas evenly, and worker 0 leads where nobody is called chief") {
    auto tasks = two_workers(free_address(), "");
    process first{cluster_of(tasks, 0), {.replicas = 6}};
    process second{cluster_of(tasks, 1), {.replicas = 6}};
    CHECK(first.server.is_chief());
    CHECK_FALSE(second.server.is_chief());
    CHECK(first.server.target() == tasks[0].address);
    CHECK(second.server.target().empty()); // no process dials it
    CHECK(first.server.replicas() == 6);
    REQUIRE(first.server.placement() != nullptr);
    CHECK(first.server.placement()->leads());
    CHECK(
      process{cluster_of({{"chief", 0, free_address()}, {"worker", 0, ""}}, 0)}.server.replicas()
      == 2); // one for each, and the chief trains, too
    CHECK(first.server.trainers() == std::vector<std::string>{"worker:0", "worker:1"});
  }

  TEST_CASE("join returns when the chief's process has left") {
    auto tasks = two_workers(free_address(), "");
    std::optional<process> first{std::in_place, cluster_of(tasks, 0)};
    process second{cluster_of(tasks, 1)};
    auto* placement = second.server.placement();
    static_cast<void>(first->server.placement()->enter("roll call"));
    static_cast<void>(placement->enter("roll call"));
    auto someone = first->world.system().spawn(
      [](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
    first->server.placement()->put("roll call", someone);
    REQUIRE(placement->see("worker 1", "roll call")); // the two have met
    caf::anon_send_exit(someone, caf::exit_reason::user_shutdown);
    first.reset();
    CHECK(second.server.join());
  }

  TEST_CASE("what cannot be a part of a job is refused, and named") {
    auto line_of = [](const resolved_cluster& cluster, server_options options) {
      return refusal_of([&] { process{cluster, std::move(options)}; });
    };
    auto tasks = two_workers("127.0.0.1:2222", "");
    CHECK(line_of(cluster_of(tasks, 0), {.replicas = 3}).message
          == "3 replicas cannot be shared evenly by 2 workers; give a multiple of 2");
    tasks.push_back({"evaluator", 0, ""});
    CHECK(line_of(cluster_of(tasks, 2), {}).code == errc::failed_precondition);
    auto public_tasks = two_workers("0.0.0.0:0", "");
    CHECK(line_of(cluster_of(public_tasks, 0), {}).code == errc::invalid_argument);
    CHECK(line_of(cluster_of(tasks, 0), {.interface = "=nowhere7"}).code == errc::not_found);
    auto foreign_tasks = two_workers("203.0.113.7:2222", "");
    CHECK(line_of(cluster_of(foreign_tasks, 0), {.insecure_network = true})
            .message.starts_with("worker 0 is at 203.0.113.7:2222, which is no address of this"));
  }

  TEST_CASE("a task that others dial has an address, or all are refused alike") {
    auto tasks = two_workers("127.0.0.1:2222", "");
    tasks.push_back({"worker", 2, ""});
    for (size_t own = 0; own < tasks.size(); ++own)
      CHECK(refusal_of([&] {
              process{cluster_of(tasks, own), {.workers_meet = true}};
            }).message
            == "worker:1 is to be dialed by worker:2, but nobody says where it is; list the "
               "addresses of all tasks with --cluster or --cluster-file");
  }

  TEST_CASE("a job has the name that its launcher gave it, else one of its addresses") {
    auto cluster = cluster_of(two_workers("a:1", "b:1"), 0);
    auto name = [&](std::map<std::string, std::string> variables) {
      return job_name(cluster, fixed_environment(std::move(variables)));
    };
    CHECK(name({{"TROUPE_JOB_ID", "mine"}, {"SLURM_JOB_ID", "7"}}) == "mine");
    CHECK(name({{"TORCHELASTIC_RUN_ID", "none"}, {"SLURM_JOB_ID", "7"}}) == "7");
    CHECK(name({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "2"}}) == "7.2");
    auto drawn = name({});
    CHECK(drawn.starts_with("cluster-"));
    cluster.tasks[1].address = "c:1";
    CHECK(name({}) != drawn);
  }
}

} // namespace server_test
