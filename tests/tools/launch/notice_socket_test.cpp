// SPDX-License-Identifier: Apache-2.0
// Goal: what a job says of itself reaches the launcher. Method: the socket, and an environment that
// names it.
#include "strategies/cluster/launcher_notice.hpp"
#include "tests/doctest.hpp"
#include "tools/launch/notice_socket.hpp"

namespace notice_socket_test {

using namespace troupe;

TEST_SUITE("tools/launch/notice_socket") {
  TEST_CASE("takes together all that was said since the last look") {
    auto socket = notice_socket::open();
    REQUIRE(socket);
    auto environment = fixed_environment({{"TROUPE_LAUNCHER", socket->name()}});
    CHECK_FALSE(socket->take());
    CHECK(tell_launcher({.workers = true}, environment));
    CHECK(tell_launcher({.parameter_servers = true}, environment));
    CHECK(socket->take() == spared_tasks{.workers = true, .parameter_servers = true});
    CHECK_FALSE(socket->take());
    CHECK(tell_launcher({}, environment));
    CHECK(socket->take() == spared_tasks{});
  }

  TEST_CASE("two sockets have names of their own") {
    auto one = notice_socket::open();
    auto other = notice_socket::open();
    REQUIRE(one);
    REQUIRE(other);
    CHECK(one->name() != other->name());
  }
}

} // namespace notice_socket_test
