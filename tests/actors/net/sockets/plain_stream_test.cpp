// SPDX-License-Identifier: Apache-2.0
// Goal: a thread that looks reads short messages from the socket itself, and is told by the system
// of all others. Method: one end is a stream, the other a socket; this thread looks and sleeps.
#include "actors/net/sockets/plain_stream.hpp"
#include "tests/actors/net/sockets/stream_outcome.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <unistd.h>

namespace plain_stream_test {

using namespace troupe;

namespace asio = boost::asio;

namespace {

/// A stream that a read was begun from, and the socket at its other end.
struct begun_read {
  begun_read(asio::io_context& io, read_watch& reads, size_t most = 10)
    : begun_read(io, reads, most, socket_pair()) {}

  begun_read(const begun_read&) = delete;
  begun_read& operator=(const begun_read&) = delete;

  ~begun_read() {
    ::close(peer);
    stream.close();
    io.restart();
    io.poll(); // the read is given up
  }

  void send(const std::string& text) const {
    REQUIRE(::send(peer, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }

  asio::io_context& io;
  int peer;
  plain_stream stream;
  std::string into;
  stream_outcome result;

private:
  begun_read(asio::io_context& of, read_watch& reads, size_t most, std::array<int, 2> sockets)
    : io(of), peer(sockets[0]),
      stream(stream_socket{of, {AF_UNIX, 0}, sockets[1]}, "peer", 1 << 20, reads), into(most, 0) {
    stream.read_some(asio::buffer(into), result.handler());
  }
};

/// A thread that reads.
struct reader {
  read_watch reads;
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
};

} // namespace

TEST_SUITE("actors/net/sockets/plain_stream") {
  TEST_CASE("a thread that looks at sockets reads what has come itself") {
    reader thread;
    begun_read read{thread.io, thread.reads};
    CHECK_FALSE(thread.reads.complete_socket());
    read.send("abc");
    CHECK_FALSE(thread.reads.complete_one()); // which looks at memory only
    CHECK(thread.reads.complete_socket());
    CHECK(read.result.bytes == 3);
    CHECK_FALSE(read.result.failed);
    CHECK(read.into.starts_with("abc"));
    CHECK_FALSE(thread.reads.complete_socket());
  }

  TEST_CASE("a thread that sleeps is told by the system, also of what had come before") {
    for (auto is_there_before : {false, true}) {
      reader thread;
      begun_read read{thread.io, thread.reads};
      if (is_there_before) read.send("abc");
      CHECK(thread.reads.may_sleep());
      if (!is_there_before) read.send("abc");
      CHECK_FALSE(thread.reads.complete_socket());
      CHECK(thread.io.poll() == 1);
      CHECK(read.result.bytes == 3);
    }
  }

  TEST_CASE("what came while it looked and was not read is there when it sleeps") {
    reader thread;
    stream_outcome next;
    begun_read read{thread.io, thread.reads};
    read.send("abc");
    CHECK(thread.reads.complete_socket());
    read.send("de");
    read.stream.read_some(asio::buffer(read.into), next.handler());
    thread.io.poll(); // the system's news, of which nothing is made
    CHECK_FALSE(next.is_over);
    CHECK(thread.reads.may_sleep());
    CHECK(thread.io.poll() == 1);
    CHECK(next.bytes == 2);
  }

  TEST_CASE("the io_context has work as long as a read waits") {
    read_watch reads;
    asio::io_context io;
    begun_read read{io, reads};
    io.poll();
    CHECK_FALSE(io.stopped());
  }

  TEST_CASE("a looked-for read ends with the connection") {
    reader thread;
    begun_read read{thread.io, thread.reads};
    ::shutdown(read.peer, SHUT_WR);
    CHECK(thread.reads.complete_socket());
    CHECK(read.result.failed == asio::error::eof);
  }

  TEST_CASE("a stream that is closed gives its read up") {
    reader thread;
    begun_read read{thread.io, thread.reads};
    read.stream.close();
    CHECK_FALSE(read.result.is_over); // a handler is never called inside a member
    CHECK_FALSE(thread.reads.complete_socket());
    thread.io.poll();
    CHECK(read.result.failed == asio::error::operation_aborted);
  }

  TEST_CASE("a thread looks at four sockets, and is told of the others") {
    reader thread;
    std::vector<std::unique_ptr<begun_read>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(std::make_unique<begun_read>(thread.io, thread.reads));
    all[4]->send("abc");
    CHECK_FALSE(thread.reads.complete_socket());
    CHECK(thread.io.poll() == 1);
    CHECK(all[4]->result.bytes == 3);
    all[3]->send("ab");
    CHECK(thread.reads.complete_socket());
    CHECK(all[3]->result.bytes == 2);
  }

  TEST_CASE("of a long read the system tells") {
    reader thread;
    begun_read read{thread.io, thread.reads, 1 << 20};
    read.send("abc");
    CHECK_FALSE(thread.reads.complete_socket());
  }
}

} // namespace plain_stream_test
