// SPDX-License-Identifier: Apache-2.0
// Goal: one thread at a time has the turn to write, and no message stays behind. Method: the calls
// of several threads, one after the other.
#include "actors/net/sockets/shared_outbox.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

namespace shared_outbox_test {

using namespace troupe;

namespace {

encoded_parcel token(uint64_t step) {
  return *encode_parcel({.content = caf::make_message(make_token(step))});
}

size_t token_bytes() {
  return frame_header_bytes + token(1).header.body_bytes;
}

/// An outbox to a peer that keeps a lot.
struct open_outbox : shared_outbox {
  explicit open_outbox(uint64_t bytes_max = 1 << 20) : shared_outbox(1 << 10, bytes_max) {
    set_window(1 << 20);
  }

  [[nodiscard]] size_t batch_bytes() const { return boost::asio::buffer_size(buffers()); }
};

} // namespace

TEST_SUITE("actors/net/sockets/shared_outbox") {
  TEST_CASE("a sender has the turn until it has written, and then another") {
    open_outbox outbox;
    CHECK(outbox.send(token(1)).begins);
    CHECK(outbox.batch_bytes() == token_bytes());
    CHECK_FALSE(outbox.begin_write().begins);
    CHECK_FALSE(outbox.end_send(token_bytes()));
    CHECK(outbox.is_idle());
    CHECK(outbox.send(token(2)).begins);
  }

  TEST_CASE("the link's thread writes what a sender has left, and then what came meanwhile") {
    open_outbox outbox;
    CHECK(outbox.send(token(1)).begins);
    CHECK_FALSE(outbox.send(token(2)).begins);
    CHECK(outbox.end_send(token_bytes() - 1));
    CHECK(outbox.batch_bytes() == 1);
    CHECK_FALSE(outbox.send(token(3)).begins);
    outbox.end_write();
    CHECK(outbox.begin_write().begins);
    CHECK(outbox.batch_bytes() == 2 * token_bytes());
    outbox.end_write();
    CHECK(outbox.is_idle());
  }

  TEST_CASE("a sender passes its turn on if the link's thread has found it writing") {
    open_outbox outbox;
    CHECK(outbox.send(token(1)).begins);
    SUBCASE("when it was to be idle") {
      CHECK_FALSE(outbox.is_idle());
    }
    SUBCASE("when it was to be closed") {
      CHECK_FALSE(outbox.close());
    }
    CHECK(outbox.end_send(token_bytes()));
    CHECK(outbox.batch_bytes() == 0);
    outbox.end_write();
    CHECK(outbox.is_idle());
    CHECK(outbox.close());
  }

  TEST_CASE("more than may wait is told of once, and nothing is taken after it") {
    open_outbox outbox{token_bytes() + message_overhead_bytes};
    CHECK(outbox.send(token(1)).begins);
    CHECK_FALSE(outbox.send(token(2)).overflows);
    CHECK(outbox.send(token(3)).overflows);
    auto waiting = outbox.bytes();
    CHECK_FALSE(outbox.send(token(4)).overflows);
    CHECK(outbox.bytes() == waiting);
  }

  TEST_CASE("new signals follow when all is dropped, behind what is being written") {
    open_outbox outbox;
    CHECK(outbox.send(token(1)).begins);
    CHECK_FALSE(outbox.send(token(2)).begins);
    outbox.drop_all();
    CHECK(outbox.bytes() == 0);
    CHECK(outbox.batch_bytes() == token_bytes());
    outbox.add_signal({.kind = frame_kind::heartbeat}, {});
    CHECK(outbox.end_send(token_bytes()));
    outbox.end_write();
    CHECK(outbox.begin_write().begins);
    CHECK(outbox.batch_bytes() == frame_header_bytes);
    CHECK_FALSE(outbox.send(token(3)).begins);
    CHECK(outbox.bytes() == 0);
  }

  TEST_CASE("a heartbeat is needed if no thread has written since the last one was thought of") {
    open_outbox outbox;
    CHECK_FALSE(outbox.take_has_written());
    CHECK(outbox.send(token(1)).begins);
    CHECK(outbox.take_has_written());
    CHECK_FALSE(outbox.take_has_written());
  }
}

} // namespace shared_outbox_test
