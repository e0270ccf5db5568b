// SPDX-License-Identifier: Apache-2.0
// Goal: nodes of one machine and user meet past its network, others never. Method: stations as for
// sockets, and processes that have become another user.
#include "actors/net/host_port.hpp"
#include "actors/net/sockets/local_socket.hpp"
#include "actors/net/sockets/peer_admission.hpp"
#include "tests/actors/net/free_addresses.hpp"
#include "tests/actors/net/hostile_peer.hpp"
#include "tests/actors/net/station.hpp"

#include <fmt/format.h>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

namespace local_socket_test {

using namespace troupe;
using namespace troupe::test;

namespace asio = boost::asio;

namespace {

constexpr uid_t nobody = 65534;

asio::ip::tcp::endpoint endpoint_of(const std::string& address) {
  auto [host, port] = parse_host_port(address).value();
  return {asio::ip::make_address(host), port};
}

int local_socket() {
  return ::socket(AF_UNIX, SOCK_STREAM, 0);
}

bool can_become_another() {
  auto is_root = ::geteuid() == 0;
  if (!is_root) MESSAGE("only root can become another user: nothing is tested");
  return is_root;
}

/// A process of another user; ends with the test.
class stranger {
public:
  /// @param act Runs there, and says with one byte through the descriptor that it is told what it
  /// has found. Calls nothing but the system.
  explicit stranger(const std::function<void(int tell)>& act) {
    REQUIRE(::pipe(pipe_.data()) == 0);
    process_ = ::fork();
    if (process_ != 0) return;
    if (::setuid(nobody) == 0) act(pipe_[1]);
    ::_exit(0);
  }

  stranger(const stranger&) = delete;
  stranger& operator=(const stranger&) = delete;

  ~stranger() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  char word() {
    char said = 0;
    CHECK(::read(pipe_[0], &said, 1) == 1);
    return said;
  }

private:
  std::array<int, 2> pipe_{};
  pid_t process_ = 0;
};

// Where the other end of a worker's link is, as its chief sees it.
std::string way_between(socket_network_options first, socket_network_options second) {
  first.alive_for = 1h;
  station chief{std::move(first)};
  second.nodes.front().address = chief.network->listening_at();
  station worker{std::move(second)};
  REQUIRE(chief.network->arrival(1).get());
  hostile_peer twin{chief.network->listening_at()};
  twin.say_hello({"test", 2, 1, 1'000'000'000, 100ms, 1 << 20});
  auto words = twin.last_words();
  auto from = words.find("already, from ");
  REQUIRE(from != std::string::npos);
  return words.substr(from + 14);
}

socket_network_options by_tcp(socket_network_options options) {
  options.local_sockets = false;
  return options;
}

} // namespace

TEST_SUITE("actors/net/sockets/local_socket") {
  TEST_CASE("nodes of one machine and user speak past its network, and name each other's process") {
    CHECK(way_between(options_of(0), options_of(1))
            .starts_with(fmt::format("process {} of this machine;", ::getpid())));
  }

  TEST_CASE("if either node has been told not to, they speak by TCP") {
    CHECK(way_between(by_tcp(options_of(0)), options_of(1)).starts_with("127.0.0.1:"));
    CHECK(way_between(options_of(0), by_tcp(options_of(1))).starts_with("127.0.0.1:"));
  }

  TEST_CASE("nodes with TLS do not, since TLS proves who the peer is") {
    auto options = options_of(0);
    CHECK(goes_past_network(options));
    options.tls = tls_files{"ca.pem", "node.pem", "node.key"};
    CHECK_FALSE(goes_past_network(options));
  }

  TEST_CASE("without a listener there is no connection, and no wait") {
    asio::io_context io;
    CHECK_FALSE(connect_locally(io, {endpoint_of(free_addresses(1).front())}));
    CHECK_FALSE(connect_locally(io, {}));
  }

  TEST_CASE(
    "a port's name that another user has taken leads nowhere, and its node is reached by TCP") {
    if (!can_become_another()) return;
    auto address = free_addresses(1).front();
    auto name = local_endpoint(endpoint_of(address));
    auto door = local_socket();
    stranger squatter{[&](int tell) {
      auto taken = ::bind(door, name.data(), static_cast<socklen_t>(name.size())) == 0
                   && ::listen(door, 8) == 0;
      static_cast<void>(::write(tell, taken ? "y" : "n", 1));
      ::pause();
    }};
    ::close(door);
    REQUIRE(squatter.word() == 'y');
    asio::io_context io;
    CHECK_FALSE(connect_locally(io, {endpoint_of(address)}));
    CHECK(way_between(options_of(0, address), options_of(1)).starts_with("127.0.0.1:"));
  }

  TEST_CASE("a process of another user that comes past the network is turned away at once") {
    if (!can_become_another()) return;
    station chief{options_of(0)};
    auto name = local_endpoint(endpoint_of(chief.network->listening_at()));
    stranger visitor{[&](int tell) {
      auto door = local_socket();
      char byte = 0;
      auto is_connected = ::connect(door, name.data(), static_cast<socklen_t>(name.size())) == 0;
      auto is_refused = is_connected && ::read(door, &byte, 1) <= 0;
      static_cast<void>(::write(tell, is_refused ? "y" : "n", 1));
      ::pause();
    }};
    CHECK(visitor.word() == 'y');
    station worker{options_of(1, chief.network->listening_at())};
    CHECK(chief.network->arrival(1).get());
  }
}

} // namespace local_socket_test
