// SPDX-License-Identifier: Apache-2.0
// Goal: actors on nodes that are joined by sockets talk as those of one node do, and strangers do
// no harm. Method: threads worlds in one process, each with a node of its own, and raw sockets.
#include "actors/net/sockets/socket_network.hpp"
#include "actors/observing/observed.hpp"
#include "tests/actors/net/free_addresses.hpp"
#include "tests/actors/net/hostile_peer.hpp"
#include "tests/actors/net/known_trials.hpp"
#include "tests/actors/net/station.hpp"
#include "tests/taken_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <stdexcept>
#include <sys/stat.h>

namespace socket_network_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// An actor that never answers.
caf::behavior silence(caf::event_based_actor* self) {
  return {[self](const msg<wire::Token>&) { return self->make_response_promise(); }};
}

greeting worker_hello(uint32_t incarnation = 1'000'000'000) {
  return {"test", 2, 1, incarnation, 100ms, 1 << 20};
}

// The error that a request ends with when no answer comes in time.
error failed_request(station& from, const caf::actor& to) {
  auto answer = ask<msg<wire::Token>>(from.world, to, make_token(7));
  return answer ? error{} : answer.error();
}

/// An actor that answers an opinion with the number of elements of its array.
caf::behavior juror() {
  return {[](const msg<trial::Opinion>& said) {
    return make_count(read_tensor(said.reader().getGradient(), said.owner()).element_count());
  }};
}

socket_network_options with_messages(socket_network_options options,
                                     std::shared_ptr<const network_messages> known
                                     = trial_messages()) {
  options.messages = std::move(known);
  return options;
}

using reader_actor = caf::typed_actor<caf::reacts_to<msg<wire::Token>>>;

struct reader_state {
  static inline const char* name = "reader";
};

reader_actor::behavior_type failing_reader(observed_pointer<reader_actor, reader_state> /*self*/) {
  return {[](const msg<wire::Token>& token) {
    throw std::runtime_error{fmt::format("record {} is broken", token.reader().getStep())};
  }};
}

/// An actor that monitors another one. CAF ends it if it is not held.
struct watcher {
  caf::actor actor;
  std::shared_ptr<news<error>> heard = std::make_shared<news<error>>();

  // Why the watched actor ends.
  [[nodiscard]] error wait() const { return heard->wait(); }
};

// A watcher at a station, which then says something to the watched actor.
watcher watch(station& at, const caf::actor& watched, const caf::message& said = {}) {
  watcher made;
  made.actor
    = at.world.system().spawn([watched, said, heard = made.heard](caf::event_based_actor* self) {
        self->monitor(watched);
        if (!said.empty()) self->send(watched, said);
        self->set_down_handler([self, heard](const caf::down_msg& down) {
          heard->tell(from_caf(down.reason));
          self->quit();
        });
        return caf::behavior{[](int) {}};
      });
  return made;
}

// How many sockets of this process a program would inherit.
size_t sockets_for_programs() {
  size_t count = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    struct stat found {};

    auto is_socket = ::fstat(descriptor, &found) == 0 && S_ISSOCK(found.st_mode);
    if (is_socket && (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) ++count;
  }
  return count;
}

void end(const caf::actor& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

} // namespace

TEST_SUITE("actors/net/sockets/socket_network") {
  TEST_CASE("a request is answered by an actor of another node, small or large") {
    station chief{options_of(0)};
    station worker{options_of(1, chief.network->listening_at())};
    auto near = chief.publish("successor", successor);
    auto far = worker.find(0, "successor");
    auto answer = ask<msg<wire::Token>>(worker.world, far, make_token(7));
    REQUIRE(answer);
    CHECK(answer->reader().getStep() == 8);
    for (int64_t elements : {1, 1000, 5'000'000}) {
      auto push = make_push_gradient({.replica = 3}, zeros({elements}));
      auto reply = ask<msg<wire::PushReply>>(worker.world, far, push);
      REQUIRE(reply);
      CHECK(reply->reader().getAccumulatorStep() == 3);
    }
    end(near);
  }

  TEST_CASE("a program that a process starts has none of its sockets, however they were made") {
    for (bool past_network : {true, false}) {
      auto before = sockets_for_programs();
      auto first = options_of(0);
      first.local_sockets = past_network;
      station chief{first};
      station worker{options_of(1, chief.network->listening_at())};
      auto near = chief.publish("successor", successor);
      CHECK(ask<msg<wire::Token>>(worker.world, worker.find(0, "successor"), make_token(7)));
      CHECK(sockets_for_programs() == before);
      end(near);
    }
  }

  TEST_CASE("the news of an actor's end comes behind its last answer, however long that is") {
    station chief{options_of(0)};
    station worker{options_of(1, chief.network->listening_at())};
    chief.publish("giver", [](caf::event_based_actor* self) -> caf::behavior {
      return {[self](const msg<wire::Token>&) {
        self->quit();
        return make_push_gradient({}, zeros({5'000'000}));
      }};
    });
    auto giver = worker.find(0, "giver");
    auto heard = std::make_shared<news<std::string>>();
    auto asker = worker.world.system().spawn([=](caf::event_based_actor* self) {
      auto tell_once = [=](const char* what) {
        heard->tell(what);
        self->quit();
      };
      self->monitor(giver);
      self->set_down_handler([=](const caf::down_msg&) { tell_once("its end"); });
      self
        ->request(giver, caf::infinite, make_token(1)) // the test has a deadline
        .then([=](const msg<wire::PushGradient>&) { tell_once("its answer"); });
      return caf::behavior{[](int) {}};
    });
    CHECK(heard->wait() == "its answer");
  }

  TEST_CASE("nodes may be started in any order") {
    auto address = free_addresses(1).front();
    station worker{options_of(1, address)};
    station chief{options_of(0, address)};
    CHECK(worker.network->arrival(0).get());
    CHECK(chief.network->arrival(1).get());
  }

  TEST_CASE("a peer that is gone is named, and requests to it fail") {
    station chief{options_of(0)};
    auto worker = std::make_unique<station>(options_of(1, chief.network->listening_at()));
    worker->publish("silence", silence);
    auto far = chief.find(1, "silence");
    auto failed = std::async([&] { return failed_request(chief, far); });
    worker->network.reset();
    CHECK(chief.loss.wait().message == "worker:0 is gone: it has left");
    auto reason = failed.get();
    CHECK(reason.code == errc::unavailable);
    CHECK(reason.message == "worker:0 is gone: it has left");
    CHECK(failed_request(chief, far).code == errc::unavailable); // at once
  }

  TEST_CASE("a peer whose process ended is gone at once, with the step it was last heard of") {
    station chief{options_of(0)};
    auto near = chief.publish("successor", successor);
    {
      hostile_peer dies{chief.network->listening_at()};
      REQUIRE(dies.greet(worker_hello()));
      REQUIRE(dies.read()->kind == frame_kind::hello);
      frame_header header{.kind = frame_kind::parcel,
                          .content = content_code::message,
                          .from = {{1, 1'000'000'000}, 5},
                          .to = near.id()};
      auto token = flatten(*frame(make_token(98)));
      REQUIRE(dies.write(header, token));
    }
    CHECK(chief.loss.wait().message
          == "worker:0 is gone: it closed the connection; last heard of at step 98");
    end(near);
  }

  TEST_CASE("a peer that says nothing any more is gone after the timeout") {
    auto options = options_of(0);
    options.silence_timeout = 200ms;
    station chief{options};
    hostile_peer freezes{chief.network->listening_at()};
    REQUIRE(freezes.greet(worker_hello()));
    CHECK(chief.loss.wait().message == "worker:0 is gone: nothing was heard of it for 0.3 s");
    CHECK(freezes.last_words() == "nothing was heard of it for 0.3 s");
  }

  TEST_CASE("a node that a peer gives up learns that it is meant, in the peer's words") {
    station chief{options_of(0)};
    hostile_peer worker{chief.network->listening_at()};
    REQUIRE(worker.greet(worker_hello()));
    REQUIRE(worker.read()->kind == frame_kind::hello);
    error why{errc::unavailable, "nothing was heard of it for 2.5 s"};
    REQUIRE(worker.write({.kind = frame_kind::abort}, flatten(*frame(make_abort(why)))));
    CHECK(chief.loss.wait().message
          == "worker:0 is gone: it has given this process up: 'nothing was heard of it for 2.5 s'");
  }

  TEST_CASE("a peer whose long message comes slowly is not silent") {
    auto options = options_of(0);
    options.silence_timeout = 1s;
    station chief{options};
    {
      hostile_peer slow{chief.network->listening_at()};
      REQUIRE(slow.greet(worker_hello()));
      auto header = write_frame_header(
        {.kind = frame_kind::parcel, .lane = lane::bulk, .body_bytes = 300'000});
      REQUIRE(slow.write(header));
      std::vector<std::byte> little(1000);
      for (int i = 0; i < 50; ++i) {
        std::this_thread::sleep_for(50ms);
        REQUIRE(slow.write(little));
      }
    }
    CHECK(chief.loss.wait().message.find("nothing was heard of it") == std::string::npos);
  }

  TEST_CASE("a peer of another job, of another cluster or with our own index is refused") {
    station chief{options_of(0)};
    auto words = [&](greeting who) {
      hostile_peer comes{chief.network->listening_at()};
      comes.say_hello(who);
      return comes.last_words();
    };
    auto who = worker_hello();
    who.job = "other";
    CHECK(words(who)
          == "chief is of the job 'test', not of 'other'; give all tasks of a job the same "
             "--job-id, and each job ports of its own");
    who = worker_hello();
    who.nodes = 3;
    CHECK(words(who) == "chief knows of 2 tasks, not of 3; give all tasks the same cluster");
    who = worker_hello();
    who.node = 0;
    CHECK(words(who) == "chief is at this address, and has the same task index");
    who.node = 9;
    CHECK(words(who) == "chief is at this address, and has the same task index");
  }

  TEST_CASE("a wrong job ends the wait for a peer, and both sides are told") {
    station chief{options_of(0)};
    auto other = options_of(1, chief.network->listening_at());
    other.job = "other";
    station worker{other};
    auto refused = worker.network->arrival(0).get();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::failed_precondition);
    CHECK(refused.error().message.find("it says: chief is of the job 'test', not of 'other'")
          != std::string::npos);
    CHECK(chief.warning.wait().find("is refused: chief is of the job") != std::string::npos);
  }

  TEST_CASE("two processes with one task index: the second is refused, the first goes on") {
    auto options = options_of(0);
    options.alive_for = 1h;
    station chief{options};
    station worker{options_of(1, chief.network->listening_at())};
    REQUIRE(chief.network->arrival(1).get());
    hostile_peer second{chief.network->listening_at()};
    second.say_hello(worker_hello());
    CHECK(second.last_words().find("worker:0 is there already, from process ")
          != std::string::npos);
    CHECK(chief.warning.wait().ends_with("; all others are there, too"));
    auto near = chief.publish("successor", successor);
    CHECK(ask<msg<wire::Token>>(worker.world, worker.find(0, "successor"), make_token(7)));
    end(near);
  }

  TEST_CASE(
    "a process with the index of another is told which task is missing, and how to say it") {
    auto options = options_of(0, "127.0.0.1:0", 3);
    options.alive_for = 1h;
    station chief{options};
    station worker{options_of(1, chief.network->listening_at(), 3)};
    REQUIRE(chief.network->arrival(1).get());
    hostile_peer second{chief.network->listening_at()};
    auto hello = worker_hello();
    hello.nodes = 3;
    second.say_hello(hello);
    CHECK(second.last_words().find("; worker:1 is not there, which would be --task worker:1 or in "
                                   "its TF_CONFIG \"task\": {\"type\": \"worker\", \"index\": 1}")
          != std::string::npos);
  }

  TEST_CASE("a node that was started again is let in with its new life") {
    auto options = options_of(0);
    options.alive_for = 1h;
    station chief{options};
    {
      hostile_peer first{chief.network->listening_at()};
      REQUIRE(first.greet(worker_hello(5)));
      REQUIRE(first.read());
      CHECK(chief.network->arrival(1).get()->incarnation == 5);
    }
    static_cast<void>(chief.loss.wait());
    hostile_peer same{chief.network->listening_at()};
    same.say_hello(worker_hello(5));
    CHECK(same.last_words().find("was given up, and no process is taken in twice")
          != std::string::npos);
    hostile_peer again{chief.network->listening_at()};
    REQUIRE(again.greet(worker_hello(6)));
    REQUIRE(again.read()->kind == frame_kind::hello);
    CHECK(chief.network->arrival(1).get()->incarnation == 6);
    hostile_peer ghost{chief.network->listening_at()};
    ghost.say_hello(worker_hello(6));
    CHECK(ghost.last_words().find("already") != std::string::npos);
  }

  TEST_CASE("a peer that never had the answer to its hello may come again") {
    station chief{options_of(0)};
    for (int i = 0; i < 2; ++i) {
      hostile_peer hasty{chief.network->listening_at()};
      REQUIRE(hasty.say_hello(worker_hello(5)));
      REQUIRE(hasty.read()->kind == frame_kind::hello);
    }
    hostile_peer patient{chief.network->listening_at()};
    REQUIRE(patient.greet(worker_hello(5)));
    REQUIRE(patient.read()->kind == frame_kind::hello);
    CHECK(chief.network->arrival(1).get()->incarnation == 5);
  }

  TEST_CASE("a new life that is gone is not named with a step of the former one") {
    station chief{options_of(0)};
    auto near = chief.publish("successor", successor);
    {
      hostile_peer first{chief.network->listening_at()};
      REQUIRE(first.greet(worker_hello(5)));
      REQUIRE(first.read()->kind == frame_kind::hello);
      frame_header header{.kind = frame_kind::parcel,
                          .content = content_code::message,
                          .from = {{1, 5}, 5},
                          .to = near.id()};
      auto token = flatten(*frame(make_token(98)));
      REQUIRE(first.write(header, token));
    }
    CHECK(chief.loss.wait().message.ends_with("last heard of at step 98"));
    news<error> second_loss;
    chief.network->on_loss([&](node_index, const error& why) { second_loss.tell(why); });
    {
      hostile_peer second{chief.network->listening_at()};
      REQUIRE(second.greet(worker_hello(6)));
      REQUIRE(second.read()->kind == frame_kind::hello);
    }
    CHECK(second_loss.wait().message == "worker:0 is gone: it closed the connection");
    end(near);
  }

  TEST_CASE("an earlier life that comes late costs the one that is there nothing") {
    auto options = options_of(0);
    options.alive_for = 0ms; // however short its silence was
    station chief{options};
    station worker{options_of(1, chief.network->listening_at())};
    REQUIRE(chief.network->arrival(1).get());
    hostile_peer earlier{chief.network->listening_at()};
    earlier.say_hello(worker_hello(5));
    CHECK(earlier.last_words().find("worker:0 began no later than the one before it")
          != std::string::npos);
    auto near = chief.publish("successor", successor);
    CHECK(ask<msg<wire::Token>>(worker.world, worker.find(0, "successor"), make_token(7)));
    end(near);
  }

  TEST_CASE("lives that follow each other at once have numbers that grow") {
    uint32_t last = 0;
    for (int life = 0; life < 3; ++life) {
      station chief{options_of(0)};
      auto number = chief.network->here()->address().incarnation;
      CHECK(number > last);
      last = number;
    }
  }

  TEST_CASE("a node answers as before amid 10 MB of nonsense and a thousand silent connections") {
    station chief{options_of(0)};
    auto near = chief.publish("successor", successor);
    std::vector<std::unique_ptr<hostile_peer>> idle;
    for (int i = 0; i < 1000; ++i)
      idle.push_back(std::make_unique<hostile_peer>(chief.network->listening_at()));
    std::mt19937_64 random{7};
    std::vector<uint64_t> nonsense(10'000'000 / sizeof(uint64_t));
    std::ranges::generate(nonsense, random);
    hostile_peer stranger{chief.network->listening_at()};
    CHECK_FALSE(stranger.write(std::as_bytes(std::span(nonsense))));
    station worker{options_of(1, chief.network->listening_at())};
    CHECK(ask<msg<wire::Token>>(worker.world, worker.find(0, "successor"), make_token(7)));
    end(near);
  }

  TEST_CASE("a connection beyond the limit is closed at once, without a message") {
    station chief{options_of(0)};
    auto come = [&] { return std::make_unique<hostile_peer>(chief.network->listening_at()); };
    std::vector<std::unique_ptr<hostile_peer>> idle;
    for (int i = 0; i < 65; ++i)
      idle.push_back(come());
    CHECK_FALSE(idle.front()->read()); // comes to an end, though the peer does not hang up
    CHECK(idle.front()->last_words().empty());
    // The words to refused peers are on their way for a while, and the peers count as long.
    auto who = worker_hello();
    who.job = "other";
    std::vector<std::unique_ptr<hostile_peer>> refused;
    for (int i = 0; i < 64; ++i) {
      refused.push_back(come());
      REQUIRE(refused.back()->say_hello(who));
    }
    CHECK_FALSE(idle.back()->read());
    for (const auto& one : refused)
      CHECK(one->last_words().starts_with("chief is of the job 'test', not of 'other'"));
  }

  TEST_CASE("all nodes of a large cluster may be at the door at once, and are let in") {
    constexpr node_index count = 100;
    station chief{options_of(0, "127.0.0.1:0", count)};
    std::vector<std::unique_ptr<hostile_peer>> workers;
    for (node_index i = 1; i < count; ++i)
      workers.push_back(std::make_unique<hostile_peer>(chief.network->listening_at()));
    auto is_let_in = [&](node_index node) {
      auto who = worker_hello();
      who.nodes = count;
      who.node = node;
      auto& one = *workers.at(node - 1);
      if (!one.greet(who)) return false;
      auto answer = one.read();
      return answer && answer->kind == frame_kind::hello;
    };
    CHECK(is_let_in(count - 1)); // all others have come before it, and wait
    CHECK(is_let_in(1));
  }

  TEST_CASE("a message without a body costs credit as long as it is in a mailbox") {
    auto options = options_of(0);
    options.window_bytes = 4 * message_overhead_bytes;
    station chief{options};
    hostile_peer greedy{chief.network->listening_at()};
    REQUIRE(greedy.greet(worker_hello()));
    std::promise<void> goes_on;
    auto slow = chief.publish("slow", [waits = goes_on.get_future().share()]() -> caf::behavior {
      return {[waits] { waits.wait(); }};
    });
    auto find = flatten(*frame(make_find_actor("slow")));
    REQUIRE(
      greedy.write({.kind = frame_kind::parcel, .content = content_code::find, .id = 1}, find));
    for (int i = 0; i < 10; ++i)
      greedy.write({.kind = frame_kind::parcel, .content = content_code::none, .to = slow.id()});
    CHECK(greedy.last_words().find("more than the 2048 that it was granted") != std::string::npos);
    goes_on.set_value();
    end(slow);
  }

  TEST_CASE("warnings that are not read hold up no message") {
    auto options = options_of(0);
    auto world = world::threads({.threads = 1});
    std::promise<void> listens;
    news<bool> is_warned;
    options.on_warning = [&, waits = listens.get_future().share()](const std::string&) {
      is_warned.tell(true);
      waits.wait();
    };
    auto network = socket_network::open(world.system(), options).value();
    auto near = world.system().spawn(successor);
    network->here()->publish("successor", caf::actor_cast<caf::strong_actor_ptr>(near));
    auto other = worker_hello();
    other.job = "other";
    hostile_peer refused{network->listening_at()};
    REQUIRE(refused.say_hello(other));
    CHECK(is_warned.wait());
    station worker{options_of(1, network->listening_at())};
    CHECK(ask<msg<wire::Token>>(worker.world, worker.find(0, "successor"), make_token(7)));
    listens.set_value();
    end(near);
  }

  TEST_CASE("a function for warnings that throws ends nothing") {
    taken_output output;
    {
      auto options = options_of(0);
      auto world = world::threads({.threads = 1});
      options.on_warning = [](const std::string&) { throw std::runtime_error{"no log"}; };
      auto network = socket_network::open(world.system(), options).value();
      auto other = worker_hello();
      other.job = "other";
      hostile_peer refused{network->listening_at()};
      refused.say_hello(other);
      CHECK(refused.last_words().starts_with("chief is of the job 'test'"));
    } // says what it has to say
    CHECK(output.said() == "on_warning of a network has thrown: no log\n");
  }

  TEST_CASE("actors that do not return hold up no message") {
    station chief{options_of(0), 2};
    station worker{options_of(1, chief.network->listening_at())};
    std::promise<void> goes_on;
    news<bool> is_stuck[2];
    auto waits = goes_on.get_future().share();
    std::vector<caf::actor> stuck;
    std::vector<std::future<expected<msg<wire::Token>>>> answers;
    for (auto& each : is_stuck) { // the second is asked when the first does not return
      auto name = fmt::format("stuck {}", stuck.size());
      stuck.push_back(chief.publish(name, [waits, &each]() -> caf::behavior {
        return {[waits, &each](const msg<wire::Token>& token) {
          each.tell(true);
          waits.wait();
          return token;
        }};
      }));
      answers.push_back(std::async([&worker, far = worker.find(0, name)] {
        return ask<msg<wire::Token>>(worker.world, far, make_token(1));
      }));
      CHECK(each.wait());
    }
    // Each holds a thread that reads, or one of the scheduler's two: others are found.
    std::vector<std::unique_ptr<news<expected<caf::strong_actor_ptr>>>> found;
    auto here = worker.network->arrival(0).get().value();
    for (int i = 0; i < 10; ++i) {
      found.push_back(std::make_unique<news<expected<caf::strong_actor_ptr>>>());
      worker.network->here()->find(here, "stuck 0",
                                   [one = found.back().get()](auto who) { one->tell(who); });
      CHECK(found.back()->wait());
    }
    goes_on.set_value();
    for (auto& answer : answers)
      CHECK(answer.get());
    for (const auto& each : stuck)
      end(each);
  }

  TEST_CASE("an actor that another one wakes does not wait for it to return") {
    station chief{options_of(0), 2}; // the reading thread may have left the first to the scheduler
    station worker{options_of(1, chief.network->listening_at())};
    std::promise<void> woken;
    auto sleeper = chief.world.system().spawn([&woken](caf::event_based_actor*) -> caf::behavior {
      return {[&woken](const msg<wire::Token>&) { woken.set_value(); }};
    });
    auto waits = woken.get_future().share();
    auto rouser
      = chief.publish("rouser", [waits, sleeper](caf::event_based_actor* self) -> caf::behavior {
          return {[self, waits, sleeper](const msg<wire::Token>& token) {
            self->send(sleeper, token);
            waits.wait();
            return token;
          }};
        });
    CHECK(ask<msg<wire::Token>>(worker.world, worker.find(0, "rouser"), make_token(1)));
    caf::anon_send_exit(sleeper, caf::exit_reason::user_shutdown);
    end(rouser);
  }

  TEST_CASE("nonsense after a good hello ends the link with a reason, and nothing else") {
    station chief{options_of(0)};
    hostile_peer peer{chief.network->listening_at()};
    REQUIRE(peer.greet(worker_hello()));
    std::vector<std::byte> nonsense(56, std::byte{0xa5});
    REQUIRE(peer.write(nonsense));
    CHECK(peer.last_words() == "frame header: the peer is no node of Troupe");
    CHECK(chief.loss.wait().message.find("no node of Troupe") != std::string::npos);
  }

  TEST_CASE("a peer cannot speak of actors that are not its own") {
    station chief{options_of(0, "127.0.0.1:0", 3)};
    hostile_peer peer{chief.network->listening_at()};
    auto who = worker_hello();
    who.nodes = 3;
    REQUIRE(peer.greet(who));
    REQUIRE(peer.write(
      {.kind = frame_kind::parcel, .content = content_code::found, .from = {{2, 1}, 7}, .id = 1}));
    CHECK(peer.last_words() == "frame header: it speaks of an actor that is not its own");
  }

  TEST_CASE("what waits for a peer that reads nothing is bounded") {
    auto options = options_of(0);
    options.window_bytes = 4 << 20;
    options.message_bytes_max = 4 << 20;
    station chief{options};
    hostile_peer deaf{chief.network->listening_at()};
    auto who = worker_hello();
    who.window = uint64_t{1} << 40;
    REQUIRE(deaf.greet(who));
    REQUIRE(chief.network->arrival(1).get());
    actor_address nobody{*chief.network->arrival(1).get(), 77};
    auto far = caf::actor_cast<caf::actor>(chief.network->here()->handle_of(nobody));
    auto gradient = make_push_gradient({}, zeros({500'000}));
    std::atomic<bool> is_lost = false;
    chief.network->on_loss([&](node_index, const error& why) {
      is_lost = true;
      chief.loss.tell(why);
    });
    for (int i = 0; i < 10'000 && !is_lost; ++i)
      caf::anon_send(far, gradient);
    CHECK(chief.loss.wait().message.find("it reads too slowly") != std::string::npos);
  }

  TEST_CASE("a request whose message is recalled before it is sent is answered here") {
    station chief{options_of(0)};
    hostile_peer deaf{chief.network->listening_at()};
    auto who = worker_hello();
    who.window = 1 << 10; // the first gradient is more than that, so the second waits
    REQUIRE(deaf.greet(who));
    actor_address nobody{*chief.network->arrival(1).get(), 77};
    auto far = caf::actor_cast<caf::actor>(chief.network->here()->handle_of(nobody));
    caf::anon_send(far, make_push_gradient({}, zeros({1000})));
    auto waits = make_push_gradient({}, zeros({1000}));
    waits.recall();
    auto reply = ask<msg<wire::PushReply>>(chief.world, far, waits);
    REQUIRE_FALSE(reply);
    CHECK(reply.error() == error{errc::cancelled, "the message was recalled"});
  }

  TEST_CASE("a node takes no more from a peer than it has granted") {
    auto options = options_of(0);
    options.window_bytes = 1 << 20;
    station chief{options};
    hostile_peer greedy{chief.network->listening_at()};
    REQUIRE(greedy.greet(worker_hello()));
    auto keeper = chief.world.system().spawn([]() -> caf::behavior { // keeps what it is told
      auto kept = std::make_shared<std::vector<msg<wire::PushGradient>>>();
      return {[kept](const msg<wire::PushGradient>& push) { kept->push_back(push); }};
    });
    chief.network->here()->publish("keeper", caf::actor_cast<caf::strong_actor_ptr>(keeper));
    // Only a node that was shown an actor may speak to it.
    auto find = flatten(*frame(make_find_actor("keeper")));
    REQUIRE(
      greedy.write({.kind = frame_kind::parcel, .content = content_code::find, .id = 1}, find));
    frame_header header{.kind = frame_kind::parcel,
                        .content = content_code::message,
                        .lane = lane::bulk,
                        .to = keeper.id()};
    auto gradient = flatten(*frame(make_push_gradient({}, zeros({250'000}))));
    for (int i = 0; i < 3; ++i)
      greedy.write(header, gradient);
    CHECK(greedy.last_words().find("more than the 1048576 that it was granted")
          != std::string::npos);
    end(keeper);
  }

  TEST_CASE("a port that is taken is named, and so is an address that is not ours") {
    station chief{options_of(0)};
    auto world = world::threads({.threads = 1});
    auto taken = socket_network::open(world.system(), options_of(0, chief.network->listening_at()));
    REQUIRE_FALSE(taken);
    CHECK(taken.error().code == errc::unavailable);
    CHECK(taken.error().message.find("another process does") != std::string::npos);
    CHECK(taken.error().message.find("under Slurm and mpirun with --port-base")
          != std::string::npos);
    auto foreign = options_of(0, "203.0.113.7:2222");
    foreign.insecure_network = true;
    auto refused = socket_network::open(world.system(), foreign);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("give it an address of this machine") != std::string::npos);
  }

  TEST_CASE("beyond this machine a node listens only with TLS or with leave") {
    auto world = world::threads({.threads = 1});
    auto refused = socket_network::open(world.system(), options_of(0, "0.0.0.0:0"));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().message.find("--insecure-network") != std::string::npos);
    auto allowed = options_of(0, "0.0.0.0:0");
    allowed.insecure_network = true;
    CHECK(socket_network::open(world.system(), allowed));
  }

  TEST_CASE("an address that is none is refused, and named with its task") {
    auto world = world::threads({.threads = 1});
    auto refused = socket_network::open(world.system(), options_of(1, "nowhere"));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "chief: 'nowhere' has no port");
  }

  TEST_CASE("messages of another schema are asked and answered with, small or large") {
    station chief{with_messages(options_of(0))};
    station worker{with_messages(options_of(1, chief.network->listening_at()))};
    auto near = chief.publish("juror", juror);
    auto far = worker.find(0, "juror");
    for (int64_t elements : {1, 1000, 5'000'000}) {
      auto counted = ask<msg<trial::Count>>(worker.world, far, make_opinion(0, zeros({elements})));
      REQUIRE(counted);
      CHECK(counted->reader().getValue() == static_cast<uint64_t>(elements));
    }
    end(near);
  }

  TEST_CASE(
    "a request of another schema fails by name when its node is gone, and a monitor hears") {
    station chief{with_messages(options_of(0))};
    auto worker
      = std::make_unique<station>(with_messages(options_of(1, chief.network->listening_at())));
    worker->publish("silence", [](caf::event_based_actor* self) -> caf::behavior {
      return {[self](const msg<trial::Opinion>&) { return self->make_response_promise(); }};
    });
    auto far = chief.find(1, "silence");
    auto watching = watch(chief, far);
    auto failed = std::async([&] {
      return ask<msg<trial::Count>>(chief.world, far, make_opinion(0, zeros({9}))).error();
    });
    worker->network.reset();
    CHECK(failed.get() == error{errc::unavailable, "worker:0 is gone: it has left"});
    CHECK(watching.wait().code == errc::unavailable);
  }

  TEST_CASE("a monitor of an actor of another node is told where it threw") {
    station chief{options_of(0)};
    station worker{options_of(1, chief.network->listening_at())};
    auto reader = chief.world.system().spawn(failing_reader);
    chief.network->here()->publish("reader", caf::actor_cast<caf::strong_actor_ptr>(reader));
    auto far = worker.find(0, "reader");
    auto watching = watch(worker, far, caf::make_message(make_token(7)));
    auto why = watching.wait();
    CHECK(why == error{errc::user_code, "record 7 is broken, while it handled Token of step 7"});
    CHECK(why.throw_site.starts_with("chief, actor 'reader'"));
  }

  TEST_CASE("what does not travel fails at home, and the connection stays") {
    network_messages few;
    few.add<trial::Count>("trial.Count");
    station chief{with_messages(options_of(0), few)};
    station worker{with_messages(options_of(1, chief.network->listening_at()), few)};
    auto near = chief.publish("successor", successor);
    auto far = worker.find(0, "successor");
    auto refused = ask<msg<trial::Count>>(worker.world, far, make_opinion(0, zeros({9})));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::unimplemented);
    CHECK(refused.error().message.starts_with("trial::Opinion does not travel between nodes"));
    CHECK(ask<msg<wire::Token>>(worker.world, far, make_token(7)));
    auto teller = chief.publish("teller", [] {
      return caf::behavior{[](const msg<wire::Token>&) { return make_opinion(0, zeros({9})); }};
    });
    auto unsaid = ask<msg<trial::Opinion>>(worker.world, worker.find(0, "teller"), make_token(7));
    REQUIRE_FALSE(unsaid);
    CHECK(unsaid.error() == refused.error());
    end(teller);
    end(near);
  }

  TEST_CASE("a node that lacks a message is refused at the greeting, and both are told") {
    station chief{with_messages(options_of(0))};
    network_messages few;
    few.add<trial::Count>("trial.Count");
    station worker{with_messages(options_of(1, chief.network->listening_at()), few)};
    auto line = "worker:0 does not know the message trial.Opinion, which chief knows; add it to "
                "the network_messages of every process";
    auto refused = worker.network->arrival(0).get();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::failed_precondition);
    CHECK(refused.error().message.ends_with(line));
    CHECK(chief.warning.wait().ends_with(line));
    CHECK(chief.network->trouble_with(1).ends_with(line)); // to callers that wait for it
    few.add<trial::Opinion>("trial.Opinion");
    station mended{with_messages(options_of(1, chief.network->listening_at()), few)};
    CHECK(chief.network->arrival(1).get());
    CHECK(chief.network->trouble_with(1).empty());
  }

  TEST_CASE("a peer says once which messages it knows, and before its hello") {
    station chief{with_messages(options_of(0))};
    auto known = flatten(make_known_messages(trial_messages().list()));
    auto words_for = [&](auto speak) {
      hostile_peer peer{chief.network->listening_at()};
      speak(peer);
      return peer.last_words();
    };
    CHECK(words_for([&](hostile_peer& peer) {
            peer.write({.kind = frame_kind::known}, known);
            peer.say_hello(worker_hello());
            peer.write({.kind = frame_kind::known}, known);
          })
          == "it says twice, or late, which messages it knows");
    auto cut = std::span(known).first(known.size() - sizeof(uint64_t));
    CHECK(words_for([&](hostile_peer& peer) {
            peer.write({.kind = frame_kind::known}, cut);
          }).empty()); // a stranger is not told why
    CHECK(words_for([&](hostile_peer& peer) {
            peer.say_hello(worker_hello(1'000'000'001));
          }).find("does not know the message")
          != std::string::npos);
  }
}

} // namespace socket_network_test
