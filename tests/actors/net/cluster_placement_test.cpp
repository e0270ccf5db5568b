// SPDX-License-Identifier: Apache-2.0
// Goal: each process knows what is here, and finds the rest, or says what it waited for. Method:
// three placements at nodes of one world, joined without sockets.
#include "actors/net/cluster_placement.hpp"
#include "messages/mapped.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/actors/net/direct_network.hpp"

#include <cmath>
#include <thread>
#include <utility>

namespace cluster_placement_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr cluster_layout one_ps_two_workers{.ps = 1, .workers = 2, .replicas_per_worker = 2};

struct three_processes : deterministic_world {
  three_processes() {
    for (node_index node = 0; node < 3; ++node) {
      members.push_back(std::make_unique<direct_membership>(network, world.system(), node));
      processes.push_back(
        std::make_unique<cluster_placement>(one_ps_two_workers, *members.back(), 50ms));
    }
  }

  // Says in all processes that an actor enters. @returns In which it is to be spawned.
  std::vector<bool> enter(const std::string& name) {
    return mapped(processes, [&](auto& process) { return process->enter(name).value(); });
  }

  caf::strong_actor_ptr place(node_index node, const std::string& name) {
    puppets.push_back(std::make_unique<puppet>(world));
    auto actor = puppets.back()->as<caf::strong_actor_ptr>();
    processes[node]->place(name, actor);
    return actor;
  }

  direct_network network{{"ps:0", "worker:0", "worker:1"}};
  std::vector<std::unique_ptr<direct_membership>> members;
  std::vector<std::unique_ptr<cluster_placement>> processes;
  std::vector<std::unique_ptr<puppet>> puppets;
};

using where = std::vector<bool>;
using nodes = std::vector<node_index>;

// Where variables of these names and loads stand that are made one after the other.
nodes nodes_of(cluster_placement& process,
               const std::vector<std::pair<std::string, double>>& variables) {
  nodes found;
  for (const auto& [name, load] : variables) {
    REQUIRE(process.enter("owner " + name, load));
    found.push_back(process.where("owner " + name));
  }
  return found;
}

} // namespace

TEST_SUITE("actors/net/cluster_placement") {
  TEST_CASE_FIXTURE(three_processes, "every actor is to be spawned in one process") {
    CHECK(enter("owner w") == where{true, false, false});
    CHECK(enter("accumulator w") == where{true, false, false});
    CHECK(enter("token queue") == where{false, true, false});
    CHECK(enter("chief") == where{false, true, false});
    CHECK(enter("replica 1") == where{false, true, false});
    CHECK(enter("replica 2") == where{false, false, true});
    CHECK(processes[0]->where("replica 2") == 2);
    CHECK(processes[0]->enter("replica 4").error().code == errc::invalid_argument);
  }

  TEST_CASE_FIXTURE(three_processes,
                    "parameter servers take turns where variables weigh the same") {
    cluster_placement process{{.ps = 2, .workers = 1}, *members[0], 50ms};
    CHECK(nodes_of(process, {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}) == nodes{0, 1, 0, 1});
  }

  TEST_CASE_FIXTURE(three_processes, "a variable that enters beside another one takes no turn") {
    cluster_placement process{{.ps = 2, .workers = 1}, *members[0], 50ms};
    CHECK(nodes_of(process, {{"a", 1}, {"b", 1}}) == nodes{0, 1});
    for (const auto* name : {"owner c", "owner d"}) {
      REQUIRE(process.enter_beside(name, "owner b").has_value());
      CHECK(process.where(name) == 1);
    }
    REQUIRE(process.enter("accumulator c"));
    CHECK(process.where("accumulator c") == 1);
    CHECK(nodes_of(process, {{"e", 1}, {"f", 1}}) == nodes{0, 1});
    CHECK(process.enter_beside("owner g", "owner nothing").error().code == errc::not_found);
  }

  TEST_CASE_FIXTURE(three_processes,
                    "each variable goes to the parameter server that holds least") {
    cluster_placement process{{.ps = 2, .workers = 1}, *members[0], 50ms};
    CHECK(nodes_of(process, {{"table", 100}, {"a", 30}, {"b", 30}, {"c", 30}, {"d", 30}, {"e", 1}})
          == nodes{0, 1, 1, 1, 1, 0});
    CHECK(process.enter("accumulator table"));
    CHECK(process.where("accumulator table") == 0);
  }

  TEST_CASE_FIXTURE(three_processes, "without parameter servers, variables stand with the chief") {
    cluster_placement process{{.workers = 3}, *members[2], 50ms};
    CHECK(nodes_of(process, {{"a", 1}, {"b", 1}}) == nodes{0, 0});
  }

  TEST_CASE_FIXTURE(three_processes, "a load that cannot be added up is refused") {
    for (auto load : {-1.0, std::nan(""), HUGE_VAL})
      CHECK(processes[0]->enter("owner w", load).error().code == errc::invalid_argument);
    CHECK(processes[0]->enter("owner w", -1).error().message
          == "'owner w' weighs -1: a load must be finite, and not negative");
  }

  TEST_CASE_FIXTURE(three_processes, "one process leads, and knows the others by name") {
    CHECK_FALSE(processes[0]->leads());
    CHECK(processes[1]->leads());
    CHECK_FALSE(processes[2]->leads());
    CHECK(processes[1]->others() == std::map<uint32_t, std::string>{{0, "ps:0"}, {2, "worker:1"}});
  }

  TEST_CASE_FIXTURE(three_processes,
                    "an actor is seen as itself where it stands, else as a proxy") {
    enter("owner w");
    auto owner = place(0, "owner w");
    CHECK(processes[0]->see("", "owner w").value() == owner);
    auto seen = processes[2]->see("replica 2", "owner w").value();
    REQUIRE(seen);
    CHECK(seen != owner);
    CHECK(processes[2]->see("replica 3", "owner w").value() == seen);
  }

  TEST_CASE_FIXTURE(three_processes, "the second of a name is not taken for the first") {
    enter("chief");
    place(1, "chief");
    auto first = processes[2]->see("", "chief").value();
    enter("chief");
    CHECK(processes[2]->see("", "chief").error().code == errc::deadline_exceeded);
    place(1, "chief");
    auto second = processes[2]->see("", "chief").value();
    CHECK(second);
    CHECK(second != first);
  }

  TEST_CASE_FIXTURE(three_processes, "a wait in vain says for which actor, and where") {
    enter("token queue");
    auto seen = processes[2]->see("replica 2", "token queue");
    REQUIRE_FALSE(seen);
    CHECK(seen.error().code == errc::deadline_exceeded);
    CHECK(seen.error().message
          == "waited 0.1 s for 'token queue' at worker:0: it has not come so far, or was started "
             "with other options");
    network.lose(1);
    seen = processes[2]->see("replica 2", "token queue");
    CHECK(seen.error().code == errc::unavailable);
    CHECK(seen.error().message == "node 'worker:0' is gone");
  }

  TEST_CASE_FIXTURE(three_processes, "a search for an actor finds it when it is there") {
    CHECK(processes[2]->search("", "owner w").error().code == errc::not_found);
    enter("owner w");
    caf::strong_actor_ptr told;
    auto tell = [&told](const caf::strong_actor_ptr& actor) { told = actor; };
    auto search = processes[2]->search("", "owner w").value();
    CHECK(search(tell));
    CHECK_FALSE(told);
    auto owner = place(0, "owner w");
    CHECK(told == processes[2]->see("", "owner w").value());
    CHECK(processes[0]->search("", "owner w").value()(tell));
    CHECK(told == owner);
  }

  TEST_CASE_FIXTURE(three_processes,
                    "a search in a process that has not come is to be made again") {
    direct_network sparse{{"ps:0", "worker:0"}};
    direct_membership worker{sparse, world.system(), 1};
    cluster_placement process{{.ps = 1, .workers = 1}, worker, 50ms};
    static_cast<void>(process.enter("owner w"));
    auto search = process.search("", "owner w").value();
    std::vector<caf::strong_actor_ptr> told;
    auto tell = [&told](const caf::strong_actor_ptr& actor) { told.push_back(actor); };
    CHECK_FALSE(search(tell));
    CHECK(told.empty());
    {
      direct_membership ps{sparse, world.system(), 0};
      CHECK(search(tell));
    }
    REQUIRE(told.size() == 1); // its process has ended before
    CHECK(told[0] == nullptr);
  }

  TEST_CASE_FIXTURE(three_processes,
                    "the chief's process is awaited until the deadline, or another event") {
    direct_network sparse{{"ps:0", "worker:0"}};
    direct_membership ps{sparse, world.system(), 0};
    cluster_placement process{{.ps = 1, .workers = 1}, ps, 50ms};
    std::promise<void> end;
    auto over = end.get_future();
    CHECK(process.await_chief(over).error()
          == error{errc::deadline_exceeded, "waited 0.1 s for worker:0"});
    {
      direct_membership chief{sparse, world.system(), 1};
      CHECK(process.await_chief(over));
    }
    end.set_value();
    CHECK(process.await_chief(over));
  }

  TEST_CASE_FIXTURE(three_processes, "a wait ends when it is told to give up") {
    enter("token queue");
    cluster_placement patient{one_ps_two_workers, *members[2], 60s};
    static_cast<void>(patient.enter("token queue"));
    std::thread other{[&] { patient.give_up(error{errc::cancelled, "the job is over"}); }};
    CHECK(patient.see("", "token queue").error().message == "the job is over");
    other.join();
    patient.give_up({});
    place(1, "token queue");
    CHECK(patient.see("", "token queue"));
  }

  TEST_CASE_FIXTURE(three_processes,
                    "a refusal ends the waits of a job that has not begun, and is told once") {
    const error why{errc::failed_precondition, "worker:1 has seed = 7"};
    cluster_placement chief{one_ps_two_workers, *members[1], 60s};
    static_cast<void>(chief.enter("owner w"));
    std::thread other{[&] { chief.refuse(why); }};
    CHECK(chief.see("chief", "owner w").error() == why);
    other.join();
    chief.refuse({errc::failed_precondition, "worker:1 has seed = 8"});
    std::vector<error> told;
    chief.on_refusal([&told](const error& reason) { told.push_back(reason); });
    network.lose(0); // a process that is refused leaves
    CHECK(chief.see("chief", "owner w").error() == why);
    CHECK(told == std::vector<error>{why});
  }

  TEST_CASE_FIXTURE(three_processes, "a refusal is nothing to a job that has begun") {
    auto& chief = *processes[1];
    enter("owner w");
    std::vector<error> told;
    chief.on_refusal([&told](const error& reason) { told.push_back(reason); });
    chief.refuse({errc::failed_precondition, "worker:1 has seed = 7"}); // at the last moment
    chief.begin();
    chief.refuse({errc::failed_precondition, "worker:1 has seed = 8"});
    CHECK(told.size() == 1);
    CHECK(chief.see("chief", "owner w").error().code == errc::deadline_exceeded);
    place(0, "owner w");
    CHECK(chief.see("chief", "owner w"));
  }

  TEST_CASE_FIXTURE(three_processes,
                    "a process meets the chief's once, before it sees an actor there") {
    enter("owner w");
    enter("chief");
    place(0, "owner w");
    place(1, "chief");
    auto& worker = *processes[2];
    const error why{errc::failed_precondition, "worker:1 has seed = 7"};
    int met = 0;
    worker.on_meeting([&]() -> expected<void> {
      ++met;
      return tl::unexpected<error>(why);
    });
    CHECK(worker.see("member", "owner w"));
    CHECK(met == 0);
    CHECK(worker.see("member", "chief").error() == why);
    CHECK(worker.see("member", "chief"));
    CHECK(met == 1);
  }

  TEST_CASE_FIXTURE(three_processes,
                    "an actor that has not entered, or is never spoken to, is not seen") {
    CHECK(processes[2]->see("", "token queue").error().code == errc::not_found);
    for (auto& process : processes)
      static_cast<void>(process->enter("replica 0"));
    enter("replica 2");
    CHECK(processes[0]->see("", "chief").error().code == errc::not_found);
    cluster_layout two_ps{.ps = 2, .workers = 1};
    cluster_placement first{two_ps, *members[0], 50ms};
    static_cast<void>(first.enter("owner a"));
    static_cast<void>(first.enter("owner b"));
    CHECK(first.see("", "owner b").value() == nullptr);
  }
}

} // namespace cluster_placement_test
