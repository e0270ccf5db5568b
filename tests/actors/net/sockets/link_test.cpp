// SPDX-License-Identifier: Apache-2.0
// Goal: a sender that writes to a connection keeps no other waiting, and the connection is not
// closed meanwhile. Method: a stream that waits in the middle of a write for the test.
#include "actors/net/sockets/link.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/net/station.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <cstring>
#include <thread>

namespace link_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// The calls of a stream as a test sees and answers them. All but `write_now` is done by the thread
/// that turns the io_context, which is the test's.
struct stream_story {
  std::vector<std::byte> incoming; ///< Given to the next reads.
  news<bool> write_begun;          ///< At once, by a sender.
  std::promise<void> may_write;
  std::atomic<size_t> written = 0;
  std::atomic<bool> is_closed = false;
  bool is_writing = false;
};

class played_stream final : public byte_stream {
public:
  played_stream(boost::asio::io_context& io, stream_story& story) : io_(io), story_(story) {}

  void shake_hands(bool /*is_dialer*/, handler done) override { later(std::move(done), 0); }

  void read_some(boost::asio::mutable_buffer into, handler done) override {
    auto count = std::min(into.size(), story_.incoming.size());
    if (count == 0) return; // for ever
    std::memcpy(into.data(), story_.incoming.data(), count);
    story_.incoming.erase(story_.incoming.begin(),
                          story_.incoming.begin() + static_cast<ptrdiff_t>(count));
    later(std::move(done), count);
  }

  void hurry() override {}

  void write(std::span<const boost::asio::const_buffer> what, handler done) override {
    story_.written += boost::asio::buffer_size(what);
    later(std::move(done), boost::asio::buffer_size(what));
  }

  size_t write_now(std::span<const boost::asio::const_buffer> what) override {
    story_.write_begun.tell(true);
    story_.may_write.get_future().wait();
    CHECK_FALSE(story_.is_closed);
    story_.written += boost::asio::buffer_size(what);
    return boost::asio::buffer_size(what);
  }

  void finish() override {}

  void close() override { story_.is_closed = true; }

  [[nodiscard]] error explain(const boost::system::error_code& failure) const override {
    return {errc::unavailable, failure.message()};
  }

  [[nodiscard]] std::string peer() const override { return "played"; }

private:
  void later(handler done, size_t bytes) {
    boost::asio::post(io_, [done = std::move(done), bytes] { done({}, bytes); });
  }

  boost::asio::io_context& io_;
  stream_story& story_;
};

/// A link that is up, and a sender in the middle of writing a token.
struct writing_link {
  writing_link() {
    greeting other{"test", 2, 1, 5, 100ms, 1 << 20};
    auto body = flatten(*frame(make_hello(other)));
    auto come = [this](const auto& bytes) {
      story.incoming.insert(story.incoming.end(), bytes.begin(), bytes.end());
    };
    come(write_frame_header({.kind = frame_kind::hello, .body_bytes = body.size()}));
    come(body);
    come(write_frame_header({.kind = frame_kind::heartbeat}));
    link::callbacks callbacks{.on_hello = [](auto&, auto&) { return expected<void>{}; },
                              .on_up = [](auto&) {},
                              .on_parcel = [](auto&, auto) { return expected<void>{}; },
                              .on_end = [this](auto&, auto&) { has_ended = true; },
                              .on_closed = [this](auto&) { is_closed = true; },
                              .on_warning = [](auto&, auto&) {},
                              .on_recalled = [](auto&, auto&) {}};
    link_options options{.self = {"test", 2, 0, 5, 1s, 1 << 20},
                         .silence_timeout = 1h,
                         .message_bytes_max = 1 << 20,
                         .part_bytes_max = 1 << 20};
    one = std::make_shared<troupe::link>(io, std::make_unique<played_stream>(*io, story),
                                         std::move(options), std::move(callbacks));
    one->start();
    io->poll();
    REQUIRE(one->is_up());
    greeted = story.written;
    sender = std::thread{[this] { one->send(token(1)); }};
    REQUIRE(story.write_begun.wait());
  }

  ~writing_link() {
    if (sender.joinable()) sender.join();
    one->drop({errc::cancelled, "the test is over"});
    io->poll();
  }

  static encoded_parcel token(uint64_t step) {
    return *encode_parcel({.content = caf::make_message(make_token(step))});
  }

  stream_story story;
  std::shared_ptr<boost::asio::io_context> io = std::make_shared<boost::asio::io_context>();
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io->get_executor()};
  std::shared_ptr<troupe::link> one;
  bool has_ended = false;
  bool is_closed = false;
  size_t greeted = 0; ///< Bytes that were written before.
  std::thread sender;
};

size_t frame_bytes() {
  return frame_header_bytes + writing_link::token(1).header.body_bytes;
}

} // namespace

TEST_SUITE("actors/net/sockets/link") {
  TEST_CASE_FIXTURE(writing_link, "a thread that sends while another writes does not wait for it") {
    one->send(token(2));
    CHECK(one->bytes_waiting() > 0);
    io->poll();
    CHECK(story.written == greeted);
    story.may_write.set_value();
    sender.join();
    io->poll();
    CHECK(story.written == greeted + 2 * frame_bytes());
    CHECK(one->bytes_waiting() == 0);
  }

  TEST_CASE_FIXTURE(writing_link, "a connection is not closed while a thread writes to it") {
    one->drop({errc::unavailable, "gone"});
    CHECK(has_ended);
    io->poll();
    CHECK_FALSE(story.is_closed);
    CHECK_FALSE(is_closed);
    story.may_write.set_value();
    sender.join();
    io->poll();
    CHECK(story.is_closed);
    CHECK(is_closed);
  }

  TEST_CASE_FIXTURE(writing_link, "last words go out behind what a sender is writing") {
    one->end({errc::unavailable, "that was all"});
    io->poll();
    CHECK(story.written == greeted);
    story.may_write.set_value();
    sender.join();
    io->poll();
    CHECK(story.written > greeted + frame_bytes());
    CHECK_FALSE(is_closed); // the words are on their way
    one->drop({errc::unavailable, "no time for words"});
    CHECK(is_closed);
  }
}

} // namespace link_test
