// SPDX-License-Identifier: Apache-2.0
// Offers and takes the memory, copies bytes, and wakes the process that waits for them.
#include "actors/net/sockets/local_stream.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>

#include <cstring>
#include <span>
#include <sys/socket.h>
#include <utility>

namespace troupe {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// The first byte of either side; the dialer's brings the descriptor of the memory, if it has any.
constexpr char offer_byte = 'm';
constexpr char taken_byte = 'y';
constexpr char refused_byte = 'n';

/// One byte, and room for one descriptor.
struct descriptor_message {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};

  descriptor_message() {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
  }

  descriptor_message(const descriptor_message&) = delete;
  descriptor_message& operator=(const descriptor_message&) = delete;

  void make_room() {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_LEN(sizeof(int)); // what alignment leaves could hold another
  }

  void add(int descriptor) {
    make_room();
    auto* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  }

  // -1: it brings none.
  [[nodiscard]] int descriptor() {
    int brought = -1;
    auto* part = CMSG_FIRSTHDR(&header);
    if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS
        && part->cmsg_len == CMSG_LEN(sizeof brought))
      std::memcpy(&brought, CMSG_DATA(part), sizeof brought);
    return brought;
  }
};

error_code last_failure() {
  return {errno, boost::system::system_category()};
}

error_code no_protocol() {
  return make_error_code(boost::system::errc::protocol_error);
}

} // namespace

local_stream::local_stream(stream_socket socket, std::string peer, read_watch& reads)
  : plain_stream(std::move(socket), std::move(peer), 1, reads) {}

// ---- the handshake ----

void local_stream::shake_hands(bool is_dialer, handler done) {
  if (!is_dialer)
    return socket().async_wait(stream_socket::wait_read,
                               [this, done = std::move(done)](const error_code& failed) {
                                 begin(false, failed ? failed : take_offer(), done);
                               });
  if (!offer_memory())
    return asio::post(socket().get_executor(),
                      [failed = last_failure(), done = std::move(done)] { done(failed, 0); });
  asio::async_read(socket(), asio::buffer(wake_ups_, 1),
                   [this, done = std::move(done)](const error_code& failed, size_t) {
                     take_answer(failed, done);
                   });
}

// @returns False if the socket takes nothing.
bool local_stream::offer_memory() {
  if (auto made = ring_memory::make()) memory_ = std::move(*made);
  descriptor_message offer;
  offer.byte = offer_byte;
  if (memory_) offer.add(memory_->descriptor());
  auto is_sent
    = ::sendmsg(socket().native_handle(), &offer.header, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
  if (memory_) memory_->close_descriptor();
  return is_sent;
}

void local_stream::take_answer(const error_code& failed, const handler& done) {
  auto answer = wake_ups_.front();
  if (failed || answer == refused_byte) memory_.reset();
  auto is_known = answer == refused_byte || (answer == taken_byte && memory_);
  begin(true, failed || is_known ? failed : no_protocol(), done);
}

error_code local_stream::take_offer() {
  descriptor_message offer;
  offer.make_room();
  auto read = ::recvmsg(socket().native_handle(), &offer.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (read < 0) return last_failure();
  if (read == 0) return asio::error::eof;
  if (auto descriptor = offer.descriptor(); descriptor >= 0) {
    auto opened = ring_memory::open(descriptor);
    if (opened) memory_ = std::move(*opened);
  }
  if (offer.byte != offer_byte) return no_protocol();
  auto answer = memory_ ? taken_byte : refused_byte;
  if (::send(socket().native_handle(), &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
    return last_failure();
  return {};
}

void local_stream::begin(bool is_dialer, const error_code& failed, const handler& done) {
  if (!failed && memory_) {
    in_.emplace(is_dialer ? memory_->from_acceptor() : memory_->from_dialer());
    out_.emplace(is_dialer ? memory_->from_dialer() : memory_->from_acceptor());
    await_wake_ups(done);
  }
  done(failed, 0);
}

// ---- reading ----

void local_stream::read_some(asio::mutable_buffer into, handler done) {
  if (!memory_) return plain_stream::read_some(into, std::move(done));
  read_ = {into, std::move(done)};
  reads().add(*this);
}

bool local_stream::has_news() {
  return ended_ || in_->has_news();
}

bool local_stream::sleeps() {
  return !ended_ && in_->sleeps();
}

void local_stream::complete() {
  auto [into, done] = *std::exchange(read_, std::nullopt);
  auto failed = ended_ ? ended_ : in_->is_finished() ? error_code{asio::error::eof} : error_code{};
  auto bytes = in_->read({static_cast<std::byte*>(into.data()), into.size()}); // before any end
  if (bytes > 0) failed = {};
  if (in_->is_broken()) failed = no_protocol();
  if (in_->must_wake_writer()) wake_peer();
  done(failed, bytes);
}

// ---- writing ----

void local_stream::write(std::span<const asio::const_buffer> buffers, handler done) {
  if (!memory_) return plain_stream::write(buffers, std::move(done));
  auto owner = done;
  write_ = {{buffers.begin(), buffers.end()}, std::move(done)};
  asio::post(socket().get_executor(), [this, owner = std::move(owner)] { write_more(); });
}

// Copies what there is room for.
size_t local_stream::write_now(std::span<const asio::const_buffer> buffers) {
  if (!memory_) return plain_stream::write_now(buffers);
  size_t written = 0;
  for (const auto& buffer : buffers) {
    std::span<const std::byte> rest{static_cast<const std::byte*>(buffer.data()), buffer.size()};
    while (auto count = out_->write(rest)) {
      rest = rest.subspan(count);
      written += count;
      if (out_->must_wake_reader()) wake_peer();
    }
    if (!rest.empty()) break;
  }
  return written;
}

void local_stream::write_more() {
  if (!write_) return;
  auto& [rest, done, written] = *write_;
  do {
    auto count = write_now(rest);
    drop_front(rest, count);
    written += count;
  } while (!rest.empty() && !ended_ && !out_->sleeps());
  if (!rest.empty() && !ended_) return; // the peer wakes this process when it has read
  auto failed = rest.empty() ? error_code{} : error_code{asio::error::broken_pipe};
  auto is_over = *std::exchange(write_, std::nullopt);
  is_over.done(failed, is_over.written);
}

void local_stream::finish() {
  if (!memory_) return plain_stream::finish();
  out_->finish();
  if (out_->must_wake_reader()) wake_peer();
}

// ---- wake-ups ----

// A byte without meaning. If the socket takes none, there are many that the peer has not read.
void local_stream::wake_peer() {
  char byte = 0;
  static_cast<void>(::send(socket().native_handle(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

// @param owner Any handler of the stream's owner, which keeps it alive, and so the stream.
void local_stream::await_wake_ups(handler owner) {
  socket().async_read_some(asio::buffer(wake_ups_), [this, owner = std::move(owner)](
                                                      const error_code& failed, size_t) mutable {
    ended_ = failed;
    on_wake_up();
    if (!failed) await_wake_ups(std::move(owner));
  });
}

// The peer has written, read, or ended; or woken this process for what it has seen already.
void local_stream::on_wake_up() {
  write_more();
  if (!read_) return;
  reads().remove(*this);
  if (has_news()) return complete();
  reads().add(*this);
}

} // namespace troupe
