// SPDX-License-Identifier: Apache-2.0
// Goal: a process joins the others of its job, and leaves them. Method: servers of one process,
// each with a world of its own, over sockets of this machine.
#include "actors/net/network_messages.hpp"
#include "messages/mapped.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/cluster/server_groups.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/actors/net/free_addresses.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/trial_messages.hpp"
#include "tests/strategies/refusal.hpp"
#include "tests/taken_output.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <cstdint>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
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

/// An actor that answers a count with one that is greater by 1.
using successor_actor
  = caf::typed_actor<caf::replies_to<msg<trial::Count>>::with<msg<trial::Count>>>;

successor_actor::behavior_type successor() {
  return {[](const msg<trial::Count>& count) { return make_count(count.reader().getValue() + 1); }};
}

/// Makes actors that add what they begin with.
auto adders_of(world& where) {
  return [&where](const msg<trial::Count>& start) -> successor_actor {
    return where.system().spawn(
      [by = start.reader().getValue()]() -> successor_actor::behavior_type {
        return {[by](const msg<trial::Count>& count) {
          return make_count(count.reader().getValue() + by);
        }};
      });
  };
}

network_messages counts() {
  network_messages known;
  known.add<trial::Count>("trial.Count");
  return known;
}

/// Whether all members end, which they were told.
bool lost_in_the_end(const group<successor_actor>& members) {
  auto end = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < end) {
    auto answers = members.ask<msg<trial::Count>>(make_count(7)).wait();
    if (answers.count(member_status::lost) == members.size()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
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

  TEST_CASE("processes share replicas evenly, and worker 0 leads where no task is called chief") {
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
    process with_a_gap{cluster_of({{"worker", 0, free_address()}, {"worker", 2, ""}}, 0)};
    CHECK(with_a_gap.server.trainers() == std::vector<std::string>{"worker:0", "worker:2"});
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

  TEST_CASE("join waits for a chief that does not come until the start deadline, and names it") {
    auto address = free_address();
    process second{cluster_of(two_workers(address, ""), 1), {.start_deadline = 100ms}};
    auto joined = second.server.join();
    REQUIRE_FALSE(joined);
    CHECK(joined.error().code == errc::deadline_exceeded);
    CHECK(joined.error().message.starts_with("waited 0.1 s for worker:0 (" + address + "): "));
  }

  TEST_CASE("join waits for longer than the start deadline once the chief's process has come") {
    auto tasks = two_workers(free_address(), "");
    std::optional<process> first{std::in_place, cluster_of(tasks, 0), server_options{}};
    process second{cluster_of(tasks, 1), {.start_deadline = 100ms}};
    auto other = first->world.system().spawn(successor);
    first->server.publish("successor", other);
    REQUIRE(second.server.find<successor_actor>("worker:0", "successor", 30s).wait());
    auto leaves = std::async([&] {
      std::this_thread::sleep_for(300ms);
      caf::anon_send_exit(other, caf::exit_reason::user_shutdown);
      first.reset();
    });
    CHECK(second.server.join());
    leaves.get();
    CHECK(second.server.join()); // it has left already
  }

  TEST_CASE("asked to stop, join returns, whether the chief's process has come or not") {
    auto tasks = two_workers(free_address(), "");
    auto stopped_join = [&] {
      std::stop_source stop;
      process second{cluster_of(tasks, 1), {.stop = stop.get_token()}};
      auto joining = std::async([&] { return second.server.join(); });
      stop.request_stop();
      return joining.get().error();
    };
    CHECK(stopped_join() == error{errc::cancelled, "asked to stop"});
    process first{cluster_of(tasks, 0)};
    CHECK(first.server.join()); // at once in the chief's process
    std::stop_source stop;
    process second{cluster_of(tasks, 1), {.stop = stop.get_token()}};
    auto other = first.world.system().spawn(successor);
    first.server.publish("successor", other);
    REQUIRE(second.server.find<successor_actor>("worker:0", "successor").wait());
    auto joining = std::async([&] { return second.server.join(); });
    stop.request_stop();
    CHECK(joining.get().error() == error{errc::cancelled, "asked to stop"});
    caf::anon_send_exit(other, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("an actor of one's own is found by its name, whichever process is there first") {
    auto tasks = two_workers(free_address(), "");
    process second{cluster_of(tasks, 1), {.messages = counts()}};
    auto finding = second.server.find<successor_actor>("worker:0", "successor");
    process first{cluster_of(tasks, 0), {.messages = counts()}};
    auto actor = first.world.system().spawn(successor);
    first.server.publish("successor", actor);
    auto found = finding.wait();
    REQUIRE(found);
    auto answer = ask<msg<trial::Count>>(second.world, *found, make_count(7));
    REQUIRE(answer);
    CHECK(answer->reader().getValue() == 8);
    CHECK(refusal_of([&] { second.server.publish("again", *found); })
          == error{errc::invalid_argument, "'again' cannot be published here: it is an actor of "
                                           "another process; publish it there"});
    CHECK(refusal_of([&] { second.server.publish("none", successor_actor{}); })
          == error{errc::invalid_argument, "'none' cannot be published: the handle is empty"});
    auto near = first.server.find<successor_actor>("worker:0", "successor").wait();
    REQUIRE(near);
    CHECK(*near == actor);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a step function finds an actor, too, and holds no thread") {
    auto tasks = two_workers(free_address(), "");
    process first{cluster_of(tasks, 0), {.messages = counts()}};
    process second{cluster_of(tasks, 1), {.messages = counts()}};
    auto actor = first.world.system().spawn(successor);
    first.server.publish("successor", actor);
    auto finding = second.server.find<successor_actor>("worker:0", "successor");
    mirrored_strategy strategy{second.world, {.devices = cpu_devices(1)}};
    auto counted = strategy.run([finding](replica_context& context) -> task<tensor> {
      auto searching = finding.by(context);
      auto found = value_or_throw(co_await searching);
      auto asking = context.request<msg<trial::Count>>(found, make_count(41));
      auto answer = value_or_throw(co_await asking);
      co_return filled(dtype::i64, {1}, static_cast<double>(answer.reader().getValue()));
    });
    CHECK(counted.primary().values<int64_t>()[0] == 42);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("an actor that is not found by the deadline is named, with what is missing") {
    auto address = free_address();
    auto tasks = two_workers(address, "");
    process second{cluster_of(tasks, 1)};
    auto wait = [&] {
      return second.server.find<successor_actor>("worker:0", "successor", 100ms).wait().error();
    };
    auto absent = wait();
    CHECK(absent.code == errc::deadline_exceeded);
    CHECK(absent.message.starts_with("waited 0.1 s for the actor 'successor' of worker:0 ("
                                     + address + "): "));
    process first{cluster_of(tasks, 0)};
    first.server.publish("another", first.world.system().spawn(successor));
    auto met = second.server.find<successor_actor>("worker:0", "another").wait();
    REQUIRE(met);
    CHECK(wait().message.ends_with("the process has published no actor of that name"));
    caf::anon_send_exit(*first.server.find<successor_actor>("worker:0", "another").wait(),
                        caf::exit_reason::user_shutdown);
  }

  TEST_CASE("actors are made where another process wants them, each with a start of its own") {
    auto tasks = two_workers(free_address(), "");
    process first{cluster_of(tasks, 0), {.messages = counts()}};
    process second{cluster_of(tasks, 1), {.messages = counts()}};
    auto at_first = first.server.offer<trial::Count>("adder", adders_of(first.world));
    std::optional at_second{second.server.offer<trial::Count>("adder", adders_of(second.world))};
    std::vector starts{make_count(10), make_count(20), make_count(30), make_count(40)};
    auto adders = spawn_group<successor_actor>(first.world, first.server, "adder",
                                               first.server.trainers(), starts);
    REQUIRE(adders);
    CHECK(adders->name_of(3) == "worker:1, place 1");
    auto asking = adders->ask<msg<trial::Count>>(make_count(7));
    auto sums
      = mapped(asking.wait().require(), [](const auto& sum) { return sum.reader().getValue(); });
    CHECK(sums == std::vector<uint64_t>{17, 27, 37, 47});
    caf::anon_send_exit((*adders)[2],
                        caf::exit_reason::kill); // the other one of that process stays
    CHECK(lost_in_the_end(adders->at("task", 1).at("place", 0)));
    CHECK(adders->at("task", 1)
            .at("place", 1)
            .ask<msg<trial::Count>>(make_count(7))
            .wait()
            .is_enough());
    at_second.reset();
    CHECK(lost_in_the_end(adders->at("task", 1)));
    CHECK(adders->at("task", 0).ask<msg<trial::Count>>(make_count(7)).wait().is_enough());
  }

  TEST_CASE(
    "actors that cannot be made are named with the reason, and none of the others is left") {
    auto tasks = two_workers(free_address(), "");
    process first{cluster_of(tasks, 0), {.messages = counts()}};
    process second{cluster_of(tasks, 1), {.messages = counts()}};
    std::vector<successor_actor> made;
    auto keep = [&, make = adders_of(first.world)](const msg<trial::Count>& start) {
      return made.emplace_back(make(start));
    };
    auto at_first = first.server.offer<trial::Count>("adder", keep);
    auto at_second = second.server.offer<trial::Count>("adder", [](const msg<trial::Count>& start) {
      if (start.reader().getValue() > 10) throw std::runtime_error{"no room"};
      return successor_actor{};
    });
    auto spawn = [&](uint64_t value, const char* kind, job_time deadline) {
      return spawn_group<successor_actor>(first.world, first.server, kind, first.server.trainers(),
                                          std::vector{make_count(1), make_count(value)}, deadline)
        .error();
    };
    auto full = spawn(20, "adder", 10s);
    CHECK(full.code == errc::user_code);
    CHECK(full.message.find("worker:1 (no room)") != std::string::npos);
    CHECK(spawn(2, "adder", 10s).message.find("worker:1 (no actor was made: the handle is empty)")
          != std::string::npos);
    CHECK(made.size() == 2);
    CHECK(lost_in_the_end(group{first.world, "rest", made}));
    CHECK(
      spawn(2, "subtractor", 120ms).message.find("waited 0.1 s for the actor 'maker of subtractor'")
      == 0);
    CHECK(refusal_of([&] {
            static_cast<void>(spawn_group<successor_actor>(first.world, first.server, "adder",
                                                           first.server.trainers(),
                                                           std::vector{make_count(1)}));
          })
          == error{errc::invalid_argument,
                   "spawn_group: 2 tasks cannot share 1 actors 'adder' evenly"});
  }

  TEST_CASE("a process that is alone finds its own actors") {
    process alone{cluster_of({{"worker", 0, ""}}, 0)};
    auto actor = alone.world.system().spawn(successor);
    alone.server.publish("successor", actor);
    CHECK(alone.server.find<successor_actor>("worker:0", "successor").wait() == actor);
    CHECK(alone.server.find<successor_actor>("worker:0", "successor", world::for_ever).wait()
          == actor);
    CHECK(alone.server.find<successor_actor>("worker:0", "nothing", 1ms).wait().error().code
          == errc::deadline_exceeded);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("asked to stop, a server waits for no actor any more") {
    std::stop_source stop;
    process second{cluster_of(two_workers(free_address(), ""), 1), {.stop = stop.get_token()}};
    auto finding = second.server.find<successor_actor>("worker:0", "successor");
    auto waiting = std::async([&] { return finding.wait().error(); });
    stop.request_stop();
    CHECK(waiting.get() == error{errc::cancelled, "asked to stop"});
    CHECK(finding.wait().error().code == errc::cancelled);
  }

  TEST_CASE("a search that can never succeed is refused at once") {
    auto tasks = two_workers(free_address(), "");
    tasks.push_back({"worker", 2, ""});
    process second{cluster_of(tasks, 1)};
    auto line_of = [&](const std::string& task, const std::string& name) {
      return refusal_of(
        [&] { static_cast<void>(second.server.find<successor_actor>(task, name)); });
    };
    CHECK(line_of("ps:0", "one")
          == error{errc::not_found, "no task of the job is called ps:0; there are worker:0, "
                                    "worker:1, worker:2"});
    CHECK(line_of("worker:2", "one")
          == error{errc::failed_precondition,
                   "worker:1 has no connection with worker:2; publish the actor at worker:0, which "
                   "all can reach, or let workers meet (server_options::workers_meet)"});
    CHECK(line_of("worker:0", "").code == errc::invalid_argument);
    CHECK(line_of("worker:0", std::string(257, 'x')).code == errc::invalid_argument);
  }

  TEST_CASE("processes that know other messages are refused when they meet") {
    auto tasks = two_workers(free_address(), "");
    process first{cluster_of(tasks, 0), {.messages = counts()}};
    process second{cluster_of(tasks, 1)};
    auto refused = second.server.find<successor_actor>("worker:0", "successor").wait();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::failed_precondition);
    auto line = "worker:1 does not know the message trial.Count, which worker:0 knows; add it to "
                "the network_messages of every process";
    CHECK(refused.error().message.ends_with(line));
    auto joined = second.server.join();
    REQUIRE_FALSE(joined);
    CHECK(joined.error() == refused.error());
    auto missed = first.server.find<successor_actor>("worker:1", "successor", 1ms).wait();
    REQUIRE_FALSE(missed);
    CHECK(missed.error().code == errc::deadline_exceeded);
    CHECK(missed.error().message.starts_with(
      "waited 0.0 s for the actor 'successor' of worker:1: process "));
    CHECK(missed.error().message.ends_with(line));
  }

  TEST_CASE("a process that is dialed waits on for one that it refuses, and says why in the end") {
    std::vector<cluster_task> tasks{{"ps", 0, free_address()}, {"worker", 0, ""}};
    process ps{cluster_of(tasks, 0), {.start_deadline = 100ms, .messages = counts()}};
    process chief{cluster_of(tasks, 1)};
    REQUIRE(chief.server.is_chief());
    auto refused = chief.server.find<successor_actor>("ps:0", "successor").wait();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::failed_precondition);
    auto joined = ps.server.join();
    REQUIRE_FALSE(joined);
    CHECK(joined.error().code == errc::deadline_exceeded);
    CHECK(joined.error().message.starts_with("waited 0.1 s for worker:0: process "));
    CHECK(joined.error().message.ends_with(
      " is refused: worker:0 does not know the message trial.Count, which ps:0 knows; add it to "
      "the network_messages of every process"));
  }

  TEST_CASE("warnings that no function takes, or that it throws at, go to standard error") {
    auto tasks = two_workers(free_address(), "");
    auto refuse_with = [&](server_options options) {
      taken_output output;
      options.messages = counts();
      {
        process first{cluster_of(tasks, 0), std::move(options)};
        process second{cluster_of(tasks, 1)};
        CHECK_FALSE(second.server.join());
      } // says what it has to say
      return output.said();
    };
    CHECK(refuse_with({}).find(" is refused: worker:1 does not know the message trial.Count")
          != std::string::npos);
    auto said
      = refuse_with({.on_warning = [](const std::string&) { throw std::runtime_error{"no log"}; }});
    CHECK(said == "on_warning of a server has thrown: no log\n");
  }

  TEST_CASE("a process with other settings is refused before it sees an actor of the chief's") {
    auto tasks = two_workers(free_address(), "");
    process first{cluster_of(tasks, 0)};
    first.server.compare_settings("hidden = [16]\n");
    auto* chief = first.server.placement();
    std::promise<error> refused;
    chief->on_refusal([&refused](const error& why) { refused.set_value(why); });
    static_cast<void>(chief->enter("strategy"));
    chief->put("strategy", first.world.system().spawn(successor));
    auto look_with = [&](const std::string& settings) {
      process second{cluster_of(tasks, 1)};
      second.server.compare_settings(settings);
      static_cast<void>(second.server.placement()->enter("strategy"));
      return second.server.placement()->see("strategy", "strategy");
    };
    CHECK(look_with("hidden = [16]\n"));
    auto seen = look_with("hidden = [16, 8]\n");
    REQUIRE_FALSE(seen);
    CHECK(seen.error()
          == error{errc::failed_precondition,
                   "worker:1 has hidden = [16, 8], the chief's process hidden = [16]; start all "
                   "processes of a job with the same options and variables"});
    CHECK(refused.get_future().get() == seen.error());
  }

  TEST_CASE("a process that cannot be a part of a job is refused, and the reason named") {
    auto line_of = [](const resolved_cluster& cluster, server_options options) {
      return refusal_of([&] { process{cluster, std::move(options)}; });
    };
    auto tasks = two_workers("127.0.0.1:2222", "");
    CHECK(
      line_of(cluster_of(tasks, 0), {.replicas = 3}).message
      == "3 replicas cannot be shared evenly by 2 workers (a chief is one); give a multiple of 2");
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
            == "worker:1 has no address, and worker:2 has to connect to it; list the "
               "addresses of all tasks with --cluster or --cluster-file");
  }

  TEST_CASE("a process looks again for its own host, which may get its name later") {
    std::vector<std::string> said;
    auto reason = refusal_of([&] {
      process{cluster_of(two_workers("no.such.host.invalid:1", "127.0.0.1:1"), 0),
              {.workers_meet = true,
               .start_deadline = 1500ms,
               .on_warning = [&](const std::string& line) { said.push_back(line); }}};
    });
    CHECK(reason.message.find("host 'no.such.host.invalid' is not known here") == 0);
    REQUIRE(said.size() == 1);
    CHECK(said[0] == reason.message + "; it is looked for again");
  }

  TEST_CASE("a job has the name that its launcher gave it, else one of its addresses") {
    auto cluster = cluster_of(two_workers("a:1", "b:1"), 0);
    auto name = [&](std::map<std::string, std::string> variables) {
      return job_name(cluster, fixed_environment(std::move(variables)));
    };
    CHECK(name({{"TROUPE_JOB_ID", "mine"}, {"SLURM_JOB_ID", "7"}}) == "mine");
    CHECK(name({{"TORCHELASTIC_RUN_ID", "none"}, {"SLURM_JOB_ID", "7"}}) == "7");
    std::map<std::string, std::string> step{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "2"}};
    CHECK(name(step) == "7"); // each task may be a step of its own
    cluster.source = "Slurm";
    CHECK(name(step) == "7.2");
    cluster.source = "Open MPI";
    CHECK(name({{"PMIX_NAMESPACE", "9"}}) == "9");
    cluster.source = "--cluster";
    CHECK(name({{"PMIX_NAMESPACE", "9"}}).starts_with("cluster-"));
    auto drawn = name({});
    CHECK(drawn.starts_with("cluster-"));
    cluster.tasks[1].address = "c:1";
    CHECK(name({}) != drawn);
  }

  TEST_CASE("how long a process looks for messages is what the environment says, if anything") {
    auto spin = [](std::map<std::string, std::string> variables) {
      return spin_of(fixed_environment(std::move(variables)));
    };
    CHECK(spin({}).value() == std::nullopt);
    CHECK(spin({{"TROUPE_SPIN_US", ""}}).value() == std::nullopt);
    CHECK(spin({{"TROUPE_SPIN_US", "0"}}).value() == 0us);
    CHECK(spin({{"TROUPE_SPIN_US", "200"}}).value() == 200us);
    for (const auto* text : {"-1", "1.5", "fast", "5us", " 5", "99999999999"}) {
      auto refused = spin({{"TROUPE_SPIN_US", text}});
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::invalid_argument);
      CHECK(refused.error().message.find("TROUPE_SPIN_US is '" + std::string{text} + "'") == 0);
    }
  }
}

} // namespace server_test
