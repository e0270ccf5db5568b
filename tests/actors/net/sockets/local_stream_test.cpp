// SPDX-License-Identifier: Apache-2.0
// Goal: two processes of one machine get each other's bytes through memory, or through their socket
// where they share none, and learn of the end after the last byte. Method: two streams of one
// thread, which turns until neither has anything to do, and a peer that speaks by hand.
#include "actors/net/sockets/local_stream.hpp"
#include "tests/actors/net/sockets/stream_outcome.hpp"

#include <boost/asio/io_context.hpp>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>

namespace local_stream_test {

using namespace troupe;

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// One end of a connection, and its side of the thread that reads.
struct stream_end {
  stream_end(asio::io_context& io, int socket)
    : stream(
      std::make_unique<local_stream>(stream_socket{io, {AF_UNIX, 0}, socket}, "peer", reads)) {}

  read_watch reads;
  std::unique_ptr<local_stream> stream;
};

/// Two processes, as it were.
struct connection {
  explicit connection(std::array<int, 2> sockets = socket_pair())
    : dialer(io, sockets[0]), acceptor(io, sockets[1]) {}

  void shake_hands() {
    stream_outcome dialed;
    stream_outcome accepted;
    dialer.stream->shake_hands(true, dialed.handler());
    acceptor.stream->shake_hands(false, accepted.handler());
    turn();
    CHECK((dialed.is_over && !dialed.failed));
    CHECK((accepted.is_over && !accepted.failed));
  }

  // Until both processes sleep, and none is woken.
  void turn() {
    auto any = true;
    while (any) {
      any = io.poll() > 0;
      io.restart();
      for (auto* end : {&dialer, &acceptor})
        any = end->reads.complete_one() || !end->reads.may_sleep() || any;
    }
  }

  /// Bytes of the next read of an end.
  std::string read(stream_end& end, size_t most = 1 << 20) {
    std::string into(most, 0);
    stream_outcome read;
    end.stream->read_some(asio::buffer(into), read.handler());
    turn();
    REQUIRE(read.is_over);
    CHECK_FALSE(read.failed);
    into.resize(read.bytes);
    return into;
  }

  asio::io_context io;
  stream_end dialer;
  stream_end acceptor;
};

/// A read that may wait for its bytes.
struct begun_read {
  explicit begun_read(stream_end& end) {
    end.stream->read_some(asio::buffer(into), result.handler());
  }

  std::string into = std::string(10, 0);
  stream_outcome result;
};

/// Looks into the socket, where there are wake-ups only.
size_t bytes_in(int socket) {
  std::array<char, 4096> bytes{};
  auto count = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

} // namespace

TEST_SUITE("actors/net/sockets/local_stream") {
  TEST_CASE("bytes go both ways, and none of them through the socket") {
    auto sockets = socket_pair();
    auto watched = ::dup(sockets[1]);
    connection pair{sockets};
    pair.shake_hands();
    std::string text(1000, 'a');
    CHECK(pair.dialer.stream->write_now(buffers_of(text)) == 1000);
    CHECK(bytes_in(watched) == 0); // neither process sleeps
    CHECK(pair.read(pair.acceptor) == text);
    CHECK(pair.acceptor.stream->write_now(buffers_of("answer")) == 6);
    CHECK(pair.read(pair.dialer, 3) == "ans");
    CHECK(pair.read(pair.dialer, 3) == "wer");
    ::close(watched);
  }

  TEST_CASE("a process that sleeps is woken by the first bytes") {
    connection pair;
    pair.shake_hands();
    begun_read read{pair.acceptor};
    pair.turn();
    CHECK_FALSE(read.result.is_over);
    CHECK(pair.dialer.stream->write_now(buffers_of("abc")) == 3);
    CHECK_FALSE(pair.acceptor.reads.complete_one()); // it sleeps
    pair.io.poll();
    CHECK(read.result.is_over);
    CHECK(read.result.bytes == 3);
  }

  TEST_CASE("a write of more than there is room for ends when the other side has read") {
    connection pair;
    pair.shake_hands();
    std::string text(5 << 20, 0);
    for (size_t i = 0; i < text.size(); ++i)
      text[i] = static_cast<char>(i * 2'654'435'761U >> 13);
    stream_outcome written;
    auto at_once = pair.dialer.stream->write_now(buffers_of(text));
    CHECK(at_once < text.size());
    std::array<asio::const_buffer, 1> rest{asio::buffer(text) + at_once};
    pair.dialer.stream->write(rest, written.handler());
    pair.turn();
    CHECK_FALSE(written.is_over);
    std::string received;
    while (received.size() < text.size())
      received += pair.read(pair.acceptor, 300'000);
    CHECK(received == text);
    CHECK(written.is_over);
    CHECK(written.bytes == text.size() - at_once);
  }

  TEST_CASE("the end comes after the last byte, whether a side finishes or its process is gone") {
    for (auto is_gone : {false, true}) {
      CAPTURE(is_gone);
      connection pair;
      pair.shake_hands();
      CHECK(pair.dialer.stream->write_now(buffers_of("last")) == 4);
      is_gone ? pair.dialer.stream->close() : pair.dialer.stream->finish();
      pair.turn();
      CHECK(pair.read(pair.acceptor) == "last");
      begun_read read{pair.acceptor};
      pair.turn();
      CHECK(read.result.is_over);
      CHECK(read.result.failed == asio::error::eof);
    }
  }

  TEST_CASE("a peer that is gone ends the read and the write that wait for it") {
    connection pair;
    pair.shake_hands();
    begun_read read{pair.acceptor};
    stream_outcome written;
    std::string text(5 << 20, 'a');
    pair.acceptor.stream->write(buffers_of(text), written.handler());
    pair.turn();
    CHECK_FALSE((read.result.is_over || written.is_over));
    pair.dialer.stream->close();
    pair.turn();
    CHECK(read.result.failed == asio::error::eof);
    CHECK(written.failed == asio::error::broken_pipe);
  }

  TEST_CASE("a stream that is closed ends its own read") {
    connection pair;
    pair.shake_hands();
    begun_read read{pair.acceptor};
    pair.turn();
    pair.acceptor.stream->close();
    pair.turn();
    CHECK(read.result.failed == asio::error::operation_aborted);
  }

  TEST_CASE("a process that cannot take the memory gets all bytes through the socket") {
    auto sockets = socket_pair();
    asio::io_context io;
    stream_end dialer{io, sockets[0]};
    stream_outcome dialed;
    dialer.stream->shake_hands(true, dialed.handler());
    char offer = 0;
    CHECK(::recv(sockets[1], &offer, 1, 0) == 1); // the descriptor is not taken
    CHECK(::send(sockets[1], "n", 1, 0) == 1);
    io.poll();
    REQUIRE((dialed.is_over && !dialed.failed));
    CHECK(dialer.stream->write_now(buffers_of("abc")) == 3);
    CHECK(bytes_in(sockets[1]) == 3);
    ::close(sockets[1]);
  }

  TEST_CASE("a process that offers no memory gets all bytes through the socket") {
    auto sockets = socket_pair();
    asio::io_context io;
    stream_end acceptor{io, sockets[0]};
    stream_outcome accepted;
    acceptor.stream->shake_hands(false, accepted.handler());
    CHECK(::send(sockets[1], "mabc", 4, 0) == 4);
    io.poll();
    REQUIRE((accepted.is_over && !accepted.failed));
    char answer = 0;
    CHECK(::recv(sockets[1], &answer, 1, 0) == 1);
    CHECK(answer == 'n');
    std::string into(10, 0);
    stream_outcome read;
    acceptor.stream->read_some(asio::buffer(into), read.handler());
    CHECK(acceptor.reads.complete_socket());
    CHECK(into.substr(0, read.bytes) == "abc");
    ::close(sockets[1]);
  }

  TEST_CASE("a peer that sends more descriptors than one leaves none of them open") {
    auto open_descriptors = [] {
      std::filesystem::directory_iterator entries{"/proc/self/fd"};
      return std::distance(begin(entries), end(entries));
    };
    auto sockets = socket_pair();
    asio::io_context io;
    stream_end acceptor{io, sockets[0]};
    stream_outcome accepted;
    acceptor.stream->shake_hands(false, accepted.handler());
    auto before = open_descriptors();
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    char offer = 'm';
    iovec content{&offer, 1};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(2 * sizeof(int));
    std::memcpy(CMSG_DATA(part), sockets.data(), 2 * sizeof(int));
    CHECK(::sendmsg(sockets[1], &message, 0) == 1);
    io.poll();
    CHECK((accepted.is_over && !accepted.failed));
    CHECK(open_descriptors() == before);
    ::close(sockets[1]);
  }

  TEST_CASE("a peer that begins with something else is refused") {
    for (auto is_dialer : {false, true}) {
      CAPTURE(is_dialer);
      auto sockets = socket_pair();
      asio::io_context io;
      stream_end end{io, sockets[0]};
      stream_outcome greeted;
      end.stream->shake_hands(is_dialer, greeted.handler());
      CHECK(::send(sockets[1], "TRP1", 4, 0) == 4);
      io.poll();
      CHECK(greeted.is_over);
      CHECK(greeted.failed);
      ::close(sockets[1]);
    }
  }
}

} // namespace local_stream_test
