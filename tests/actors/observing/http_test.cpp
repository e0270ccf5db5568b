// SPDX-License-Identifier: Apache-2.0
// Goal: clients get what they ask for, and none of them can stop the server. Method: a server on
// this machine, asked by our own client and by bare sockets that misbehave.
#include "actors/observing/http.hpp"
#include "actors/observing/http_client.hpp"
#include "tests/actors/net/free_addresses.hpp"
#include "tests/doctest.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace http_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// A time that no working machine needs.
constexpr auto patience = 60s;

std::unique_ptr<http_server> serve(http_server_options options = {}) {
  auto server = http_server::start(options, [](const std::string& path) {
    if (path != "/page") return http_answer{.status = 404, .body = "no " + path};
    return http_answer{.body = "hello\n"};
  });
  REQUIRE(server);
  return std::move(*server);
}

std::string port_of(const http_server& server) {
  auto endpoint = server.endpoint();
  return endpoint.substr(endpoint.rfind(':') + 1);
}

/// A client that says what it likes.
class bare_client {
public:
  explicit bare_client(const http_server& server) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<uint16_t>(std::stoi(port_of(server))));
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0);
  }

  bare_client(const bare_client&) = delete;
  bare_client& operator=(const bare_client&) = delete;

  ~bare_client() { close(socket_); }

  /// What the server answers until it closes the connection.
  [[nodiscard]] std::string ask(std::string_view request) const {
    send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char block[1024];
    for (ssize_t count = 0; (count = recv(socket_, block, sizeof block, 0)) > 0;)
      answer.append(block, static_cast<size_t>(count));
    return answer;
  }

private:
  int socket_;
};

} // namespace

TEST_SUITE("actors/observing/http") {
  TEST_CASE("a page is served, with its length and type") {
    auto server = serve();
    auto page = http_get("127.0.0.1", port_of(*server), "/page", patience);
    REQUIRE(page);
    CHECK(*page == "hello\n");
    auto answer = bare_client{*server}.ask("GET /page?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.find("Content-Length: 6\r\n") != std::string::npos);
    CHECK(answer.ends_with("\r\n\r\nhello\n"));
  }

  TEST_CASE("an unknown page is 404, another method 405, nonsense 400, too much 431") {
    auto server = serve();
    auto ask
      = [&](const std::string& request) { return bare_client{*server}.ask(request).substr(0, 12); };
    CHECK(ask("GET /other HTTP/1.1\r\n\r\n") == "HTTP/1.1 404");
    CHECK(ask("DELETE /page HTTP/1.1\r\n\r\n") == "HTTP/1.1 405");
    CHECK(ask("POST /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc") == "HTTP/1.1 405");
    CHECK(ask("good morning\r\n\r\n") == "HTTP/1.1 400");
    CHECK(ask("GET /page HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n") == "HTTP/1.1 431");
    CHECK(http_get("127.0.0.1", port_of(*server), "/page", patience));
    auto missing = http_get("127.0.0.1", port_of(*server), "/other", patience);
    REQUIRE(!missing);
    CHECK(missing.error().code == errc::not_found);
  }

  TEST_CASE("a client that says nothing is cut") {
    auto server = serve({.deadline = 50ms});
    CHECK(bare_client{*server}.ask("GET /pa").empty());
  }

  TEST_CASE("while a client says nothing others are served") {
    auto server = serve({.deadline = 1h});
    bare_client silent{*server};
    CHECK(http_get("127.0.0.1", port_of(*server), "/page", patience));
  }

  TEST_CASE("too many clients are sent away") {
    auto server = serve({.clients_max = 2, .deadline = 60s});
    bare_client one{*server};
    bare_client two{*server};
    CHECK(bare_client{*server}.ask("").empty());
  }

  TEST_CASE("a port that is taken, and an address that is not ours, are refused by name") {
    auto server = serve();
    auto port = static_cast<uint16_t>(std::stoi(port_of(*server)));
    auto second = http_server::start({.port = port}, {});
    REQUIRE(!second);
    CHECK(second.error().code == errc::resource);
    CHECK(second.error().message.find("127.0.0.1 port " + std::to_string(port))
          != std::string::npos);
    for (const auto* address : {"192.0.2.1", "nowhere", ""})
      CHECK(!http_server::start({.address = address}, {}));
  }

  TEST_CASE("where nobody listens, nobody answers") {
    auto address = free_addresses(1).front();
    auto port = address.substr(address.rfind(':') + 1);
    auto asked = http_get("127.0.0.1", port, "/page", patience);
    REQUIRE(!asked);
    CHECK(asked.error().code == errc::unavailable);
    CHECK(asked.error().message.find(address) != std::string::npos);
  }

  TEST_CASE("a server that ends leaves clients behind without waiting for them") {
    auto server = serve({.deadline = 60s});
    bare_client silent{*server};
    server.reset();
    CHECK(silent.ask("GET /page HTTP/1.1\r\n\r\n").empty());
  }
}

} // namespace http_test
