// SPDX-License-Identifier: Apache-2.0
// Goal: a dial that fails says why. Method: real sockets of this machine.
#include "actors/net/sockets/tcp_dial.hpp"
#include "tests/doctest.hpp"

using namespace troupe;

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

const tcp::endpoint any_port{asio::ip::address_v4::loopback(), 0};

} // namespace

TEST_SUITE("actors/net/sockets/tcp_dial") {
  TEST_CASE("a dial reaches what listens, and nothing once that is closed") {
    asio::io_context io;
    tcp::acceptor acceptor{io, any_port};
    auto there = acceptor.local_endpoint();
    boost::system::error_code failed;
    auto first = open_to_dial(io, there);
    first->connect(there, failed);
    CHECK_FALSE(dial_failure(failed, *first));
    acceptor.close();
    auto second = open_to_dial(io, there);
    second->connect(there, failed);
    CHECK(dial_failure(failed, *second) == "Connection refused");
    CHECK(dial_failure(asio::error::operation_aborted, *second) == "it does not answer");
  }

  TEST_CASE("a dial that is given the port which it dials meets itself: nothing listens there") {
    asio::io_context io;
    auto socket = open_to_dial(io, any_port);
    socket->bind(any_port);
    boost::system::error_code failed;
    socket->connect(socket->local_endpoint(), failed);
    CHECK_FALSE(failed);
    CHECK(dial_failure(failed, *socket) == "nothing listens there");
  }
}
