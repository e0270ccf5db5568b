// SPDX-License-Identifier: Apache-2.0
// Goal: clients get what they ask for, and none of them can stop the server. Method: a server on
// this machine, asked by our own client and by bare sockets that misbehave.
#include "actors/observing/http.hpp"
#include "actors/observing/http_client.hpp"
#include "tests/actors/net/free_addresses.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace http_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// A time that no working machine needs.
constexpr auto timeout = 60s;

std::unique_ptr<http_server> serve(http_server_options options = {}) {
  auto server = http_server::start(options, [](const std::string& path) {
    if (path != "/page") return http_answer{.status = 404, .body = "no " + path};
    return http_answer{.body = "hello\n"};
  });
  REQUIRE(server);
  return std::move(*server);
}

/// A text that changes, and a server that has news of it at /news.
struct news_room {
  explicit news_room(std::string first, http_server_options options = {})
    : text(std::make_shared<const std::string>(std::move(first))) {
    options.news_period = 1ms;
    auto started = http_server::start(
      std::move(options), [](const std::string& path) { return http_answer{.body = path}; },
      {.path = "/news", .text = [this] {
         std::lock_guard guard{mutex};
         return text;
       }});
    REQUIRE(started);
    server = std::move(*started);
  }

  void change(std::string other) {
    std::lock_guard guard{mutex};
    text = std::make_shared<const std::string>(std::move(other));
  }

  std::mutex mutex;
  std::shared_ptr<const std::string> text;
  std::unique_ptr<http_server> server; ///< Last: its thread reads the text.
};

host_port address_of(const http_server& server) {
  return parse_host_port(server.endpoint()).value();
}

expected<http_reply> ask_for(const std::string& path, const http_server& server) {
  return http_ask({.server = address_of(server), .path = path, .deadline = timeout});
}

/// A client that says what it likes.
class bare_client {
public:
  explicit bare_client(const http_server& server) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(address_of(server).port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0);
  }

  bare_client(const bare_client&) = delete;
  bare_client& operator=(const bare_client&) = delete;

  ~bare_client() { close(socket_); }

  void say(std::string_view request) const {
    send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
  }

  /// The server's words until it closes the connection, or up to `end`.
  [[nodiscard]] std::string hear(std::string_view end = {}) const {
    std::string answer;
    char block[1024];
    for (ssize_t count = 0; (count = recv(socket_, block, sizeof block, 0)) > 0;) {
      answer.append(block, static_cast<size_t>(count));
      if (!end.empty() && answer.ends_with(end)) break;
    }
    return answer;
  }

  /// The beginning of an answer: "HTTP/1.1 200".
  [[nodiscard]] std::string hear_status() const {
    std::string status(12, '\0');
    status.resize(static_cast<size_t>(
      std::max<ssize_t>(0, recv(socket_, status.data(), status.size(), MSG_WAITALL))));
    return status;
  }

  [[nodiscard]] std::string ask(std::string_view request) const {
    say(request);
    return hear();
  }

private:
  int socket_;
};

} // namespace

TEST_SUITE("actors/observing/http") {
  TEST_CASE("a page is served, with its length and type") {
    auto server = serve();
    auto page = ask_for("/page", *server);
    REQUIRE(page);
    CHECK(page->status == 200);
    CHECK(page->body == "hello\n");
    auto answer = bare_client{*server}.ask("GET /page?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.find("Content-Length: 6\r\n") != std::string::npos);
    CHECK(answer.ends_with("\r\n\r\nhello\n"));
  }

  TEST_CASE(
    "an unknown page is 404, another method 405, nonsense 400, a body 413, a long header 431") {
    auto server = serve();
    auto ask
      = [&](const std::string& request) { return bare_client{*server}.ask(request).substr(0, 12); };
    CHECK(ask("GET /other HTTP/1.1\r\n\r\n") == "HTTP/1.1 404");
    CHECK(ask("DELETE /page HTTP/1.1\r\n\r\n") == "HTTP/1.1 405");
    CHECK(ask("POST /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc") == "HTTP/1.1 405");
    CHECK(ask("GET /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc") == "HTTP/1.1 413");
    CHECK(ask("good morning\r\n\r\n") == "HTTP/1.1 400");
    CHECK(ask("GET /page HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n") == "HTTP/1.1 431");
    CHECK(ask_for("/page", *server)->status == 200);
    CHECK(ask_for("/other", *server)->body == "no /other");
  }

  TEST_CASE("a client that says nothing is cut") {
    auto server = serve({.deadline = 50ms});
    CHECK(bare_client{*server}.ask("GET /pa").empty());
  }

  TEST_CASE("while a client says nothing others are served") {
    auto server = serve({.deadline = 1h});
    bare_client silent{*server};
    CHECK(ask_for("/page", *server)->status == 200);
  }

  TEST_CASE("too many clients are sent away, and far too many cut") {
    auto server = serve({.clients_max = 2, .deadline = 60s});
    bare_client one{*server};
    bare_client two{*server};
    CHECK(ask_for("/page", *server)->status == 503);
    bare_client also_one{*server};
    bare_client also_two{*server};
    CHECK(bare_client{*server}.ask("").empty());
  }

  TEST_CASE("a port that is taken, and an address that is not ours, are refused by name") {
    auto server = serve();
    auto port = address_of(*server).port;
    auto second = http_server::start({.port = port}, {});
    REQUIRE(!second);
    CHECK(second.error().code == errc::resource);
    CHECK(second.error().message.find("127.0.0.1 port " + std::to_string(port))
          != std::string::npos);
    auto elsewhere = http_server::start({.address = "192.0.2.1"}, {});
    REQUIRE(!elsewhere);
    CHECK(elsewhere.error().code == errc::resource);
    CHECK(elsewhere.error().message.starts_with("cannot listen on 192.0.2.1 port 0: "));
  }

  TEST_CASE("a server listens at an IP address, and a name in its place is refused as such") {
    for (const std::string name : {"localhost", "nowhere", ""}) {
      auto server = http_server::start({.address = name}, {});
      REQUIRE(!server);
      CHECK(server.error().code == errc::invalid_argument);
      CHECK(server.error().message
            == "cannot listen on '" + name
                 + "': it is no IP address; give one of this machine, such as 127.0.0.1");
    }
  }

  TEST_CASE("without a listener there is no answer") {
    auto address = free_addresses(1).front();
    auto asked = http_ask(
      {.server = parse_host_port(address).value(), .path = "/page", .deadline = timeout});
    REQUIRE(!asked);
    CHECK(asked.error().code == errc::unavailable);
    CHECK(asked.error().message.find(address) != std::string::npos);
  }

  TEST_CASE("errors of a client put an IPv6 address into brackets") {
    auto port = parse_host_port(free_addresses(1).front()).value().port;
    auto asked = http_ask({.server = {"::1", port}, .path = "/page", .deadline = timeout});
    REQUIRE(!asked);
    CHECK(asked.error().message.starts_with(fmt::format("[::1]:{}: ", port)));
  }

  TEST_CASE("without the token every path is 401") {
    auto server = serve({.token = "a-secret-of-some-length"});
    auto ask = [&](const std::string& target, const std::string& headers = "") {
      return bare_client{*server}
        .ask("GET " + target + " HTTP/1.1\r\n" + headers + "\r\n")
        .substr(0, 12);
    };
    CHECK(ask("/page") == "HTTP/1.1 401");
    CHECK(ask("/other") == "HTTP/1.1 401");
    CHECK(ask("/page?token=a-secret-of-some-lengtX") == "HTTP/1.1 401");
    CHECK(ask("/page", "Authorization: Basic a-secret-of-some-length\r\n") == "HTTP/1.1 401");
    CHECK(ask("/page?token=a-secret-of-some-length") == "HTTP/1.1 200");
    CHECK(ask("/other?token=a-secret-of-some-length") == "HTTP/1.1 404");
    CHECK(ask("/page", "Authorization: Bearer a-secret-of-some-length\r\n") == "HTTP/1.1 200");
    CHECK(ask("/page", "Authorization: bearer a-secret-of-some-length\r\n") == "HTTP/1.1 200");
    CHECK(bare_client{*server}.ask("GET /page HTTP/1.1\r\n\r\n").find("?token=TOKEN")
          != std::string::npos);
  }

  TEST_CASE("a server at a loopback address refuses a Host that other machines may have") {
    auto ask = [](const http_server& server, const std::string& host) {
      return bare_client{server}.ask("GET /page HTTP/1.1\r\nHost:" + host + "\r\n\r\n");
    };
    auto server = serve();
    for (const auto* host : {" localhost", " LocalHost:9464", " 127.0.0.1:9464", " 127.1.2.3",
                             " [::1]:9464", " [::1]", ""})
      CHECK(ask(*server, host).starts_with("HTTP/1.1 200"));
    for (const auto* host : {" evil.test", " evil.test:9464", " localhost.evil.test",
                             " 127.0.0.1.evil.test", " 10.0.0.5:9464", " [fe80::7]:9464", " ["}) {
      auto answer = ask(*server, host);
      CHECK(answer.starts_with("HTTP/1.1 403"));
      CHECK(answer.ends_with("\r\n\r\nthis server is for this machine alone: ask for localhost or "
                             "127.0.0.1\n"));
    }
    CHECK(bare_client{*server}.ask("GET /page HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    auto open = serve({.address = "0.0.0.0"});
    CHECK(ask(*open, " evil.test").starts_with("HTTP/1.1 200"));
  }

  TEST_CASE("an address is loopback if no other machine reaches it") {
    for (const auto* address : {"127.0.0.1", "127.1.2.3", "::1"})
      CHECK(is_loopback_address(address));
    for (const auto* address : {"0.0.0.0", "::", "10.0.0.1", "nowhere", ""})
      CHECK_FALSE(is_loopback_address(address));
  }

  TEST_CASE("a text is told whenever it is another one, and the last as the server ends") {
    news_room room{"one"};
    bare_client client{*room.server};
    client.say("GET /news?x=1 HTTP/1.1\r\n\r\n");
    auto begin = client.hear("data: one\n\n");
    CHECK(begin.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
    CHECK(begin.find("Content-Length") == std::string::npos);
    room.change("two");
    CHECK(client.hear("data: two\n\n").ends_with("data: two\n\n"));
    bare_client later{*room.server};
    later.say("GET /news HTTP/1.1\r\n\r\n");
    CHECK(later.hear("data: two\n\n").ends_with("\r\n\r\ndata: two\n\n"));
    room.change("three");
    room.server.reset();
    CHECK(client.hear().ends_with("data: three\n\n"));
    CHECK(later.hear().ends_with("data: three\n\n"));
  }

  TEST_CASE("beyond so many clients none is told news, until one of them has gone") {
    news_room room{"one", {.news_clients_max = 1}};
    auto ask_for_news = [&] {
      bare_client other{*room.server};
      other.say("GET /news HTTP/1.1\r\n\r\n");
      return other.hear_status();
    };
    {
      bare_client first{*room.server};
      first.say("GET /news HTTP/1.1\r\n\r\n");
      CHECK(first.hear("data: one\n\n").starts_with("HTTP/1.1 200"));
      CHECK(ask_for_news() == "HTTP/1.1 503");
      CHECK(bare_client{*room.server}.ask("GET /page HTTP/1.1\r\n\r\n").ends_with("/page"));
    }
    while (ask_for_news() != "HTTP/1.1 200") {
    } // the server is told of the end by the kernel
  }

  TEST_CASE("a client that reads no news is cut, and others are told theirs") {
    news_room room{std::string(32 << 20, 'x'), {.deadline = 50ms, .news_clients_max = 2}};
    bare_client silent{*room.server};
    silent.say("GET /news HTTP/1.1\r\n\r\n");
    bare_client second{*room.server};
    second.say("GET /news HTTP/1.1\r\n\r\n");
    auto ask_for_news = [&] {
      bare_client other{*room.server};
      other.say("GET /news HTTP/1.1\r\n\r\n");
      return other.hear_status();
    };
    while (ask_for_news() != "HTTP/1.1 200") {
    }
  }

  TEST_CASE("a server ends though a client takes no news") {
    news_room room{std::string(32 << 20, 'x'), {.deadline = 1h}};
    bare_client silent{*room.server};
    silent.say("GET /news HTTP/1.1\r\n\r\n");
    CHECK(silent.hear_status() == "HTTP/1.1 200");
    room.server.reset();
  }

  TEST_CASE("a server that ends leaves clients behind without waiting for them") {
    auto server = serve({.deadline = 60s});
    bare_client silent{*server};
    server.reset();
    CHECK(silent.ask("GET /page HTTP/1.1\r\n\r\n").empty());
  }
}

} // namespace http_test
