// SPDX-License-Identifier: Apache-2.0
// Goal: no caller waits for a server of names longer than it has time. Method: a `getaddrinfo` of
// the test's own, which says nothing about "stuck.test" until it is told to.
#include "actors/net/host_port.hpp"
#include "actors/net/sockets/name_lookup.hpp"
#include "actors/observing/http_client.hpp"
#include "tests/actors/net/station.hpp"

#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <netdb.h>
#include <string_view>
#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

/// The server that is asked for "stuck.test".
class name_server {
public:
  // Returns when it answers.
  void ask() {
    std::unique_lock lock{mutex_};
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return answers_; });
    --waiting_;
    changed_.notify_all();
  }

  void wait_until_asked() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

  [[nodiscard]] int waiting() {
    std::lock_guard guard{mutex_};
    return waiting_;
  }

  // Answers all callers that wait.
  void answer() {
    std::unique_lock lock{mutex_};
    answers_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return waiting_ == 0; });
    answers_ = false;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool answers_ = false;
};

name_server server_of_names;

/// Has the server answer at the end of a test.
struct late_answer {
  ~late_answer() { server_of_names.answer(); }
};

} // namespace

/// "own.test" is this machine's name, as Debian has it in /etc/hosts.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static auto* system = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  std::string_view name = host == nullptr ? "" : host;
  if (name == "stuck.test") {
    server_of_names.ask();
    return EAI_AGAIN;
  }
  return system(name == "own.test" ? "127.0.1.1" : host, port, hints, found);
}

TEST_SUITE("actors/net/sockets/name_lookup") {
  TEST_CASE("a name is given up at the deadline, and named, while the system still looks for it") {
    late_answer until_the_end;
    auto found = look_up("stuck.test", "80", 20ms);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == errc::deadline_exceeded);
    CHECK(
      found.error().message
      == "the name of host 'stuck.test' was not resolved for 0.02 s; does the name server answer?");
    server_of_names.wait_until_asked();
    CHECK(server_of_names.waiting() == 1);
  }

  TEST_CASE("a name is given up when its asker is to stop") {
    late_answer until_the_end;
    std::stop_source stop;
    std::jthread interrupt{[&] {
      server_of_names.wait_until_asked();
      stop.request_stop();
    }};
    auto found = look_up("stuck.test", "80", 24h, stop.get_token());
    REQUIRE_FALSE(found);
    CHECK(found.error().code == errc::cancelled);
  }

  TEST_CASE("names are found, numbers are taken as they are, and nonsense is refused by name") {
    auto all = [](const std::string& host) { return look_up(host, "80", 30s); };
    CHECK(to_string(host_port{all("own.test").value().front().address().to_string(), 1})
          == "127.0.1.1:1");
    CHECK(all("::1").value().front().address().to_string() == "::1");
    CHECK(all("10.0.0.7").value().front().port() == 80);
    auto unknown = all("no host at all");
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().code == errc::unavailable);
    CHECK(unknown.error().message.starts_with("host 'no host at all' is not known here: "));
  }

  TEST_CASE("a question over HTTP ends at its deadline, even before its server is found") {
    late_answer until_the_end;
    auto reply = http_ask({.server = {"stuck.test", 80}, .path = "/", .deadline = 20ms});
    REQUIRE_FALSE(reply);
    CHECK(reply.error().code == errc::deadline_exceeded);
    CHECK(reply.error().message == "stuck.test:80 could not be looked up within 0.02 s");
    server_of_names.wait_until_asked();
  }

  TEST_CASE("a node leaves while its peer's name is looked up, and names that peer") {
    late_answer until_the_end;
    {
      station worker{options_of(1, "stuck.test:2222")};
      server_of_names.wait_until_asked();
      CHECK(worker.network->trouble_with(0) == "the name of host 'stuck.test' is not resolved yet");
    }
    CHECK(server_of_names.waiting() == 1);
  }

  TEST_CASE("a machine's own name that leads to loopback is dialed on all of its cards") {
    station chief{options_of(0)}; // at 127.0.0.1, not at 127.0.1.1
    auto port = parse_host_port(chief.network->listening_at())->port;
    auto options = options_of(1, to_string(host_port{"own.test", port}));
    options.own_addresses = {"127.0.0.1"};
    station worker{options};
    CHECK(worker.network->arrival(0).get());
  }
}
