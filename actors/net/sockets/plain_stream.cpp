// SPDX-License-Identifier: Apache-2.0
// Bytes through a socket.
#include "actors/net/sockets/plain_stream.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// So many buffers go into one call of the system.
constexpr size_t pieces_max = 128;

// From so many bytes on a body is long.
constexpr size_t long_bytes = 64 * 1024;

// Asio by itself makes a call of the system for each 64 KiB, and a turn of its loop.
size_t all_at_once(const error_code& failed, size_t /*written*/) {
  return failed ? 0 : std::numeric_limits<size_t>::max();
}

} // namespace

void plain_stream::shake_hands(bool /*is_dialer*/, handler done) {
  asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
}

void plain_stream::read_some(asio::mutable_buffer into, handler done) {
  auto is_long = into.size() > long_bytes;
  wake_at(is_long ? static_cast<int>(std::min(into.size(), low_mark_max_)) : 1);
  if (is_long || !reads_.add_socket(short_read_))
    return socket_.async_read_some(into, std::move(done));
  short_read_.begin(into, std::move(done));
}

void plain_stream::write(std::span<const asio::const_buffer> buffers, handler done) {
  asio::async_write(socket_, buffers, all_at_once, std::move(done));
}

size_t plain_stream::write_now(std::span<const asio::const_buffer> buffers) {
  std::array<iovec, pieces_max> pieces;
  auto count = std::min(buffers.size(), pieces.size());
  for (size_t i = 0; i < count; ++i)
    pieces[i]
      = {const_cast<void*>(buffers[i].data()), buffers[i].size()}; // NOLINT: POSIX has it so
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<size_t>(sent); // the next write meets a failure again
}

void plain_stream::finish() {
  error_code ignored;
  socket_.shutdown(stream_socket::shutdown_send, ignored);
}

void plain_stream::close() {
  reads_.remove(short_read_);
  short_read_.give_up();
  error_code ignored;
  socket_.close(ignored);
}

error plain_stream::explain(const error_code& failure) const {
  return explain_plainly(failure);
}

void plain_stream::wake_at(int bytes) {
  if (std::exchange(low_mark_, bytes) == bytes) return;
  error_code ignored;
  socket_.set_option(stream_socket::receive_low_watermark(bytes), ignored);
}

// ---- a short read ----

void plain_stream::short_read::begin(asio::mutable_buffer into, handler done) {
  waiting_.emplace(waiting{into, std::move(done), asio::make_work_guard(socket_.get_executor())});
}

bool plain_stream::short_read::has_news() {
  const auto& into = waiting_->into;
  auto read = ::recv(socket_.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
  if (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  bytes_ = read > 0 ? static_cast<size_t>(read) : 0;
  failed_ = read > 0    ? error_code{}
            : read == 0 ? error_code{asio::error::eof}
                        : error_code{errno, boost::system::system_category()};
  return true;
}

// Bytes that have come meanwhile complete it at once.
bool plain_stream::short_read::sleeps() {
  auto read = *std::exchange(waiting_, std::nullopt);
  socket_.async_read_some(read.into, std::move(read.done));
  return true;
}

void plain_stream::short_read::complete() {
  auto read = *std::exchange(waiting_, std::nullopt);
  read.done(failed_, bytes_);
}

void plain_stream::short_read::give_up() {
  if (!waiting_) return;
  auto read = *std::exchange(waiting_, std::nullopt);
  asio::post(socket_.get_executor(),
             [done = std::move(read.done)] { done(asio::error::operation_aborted, 0); });
}

error explain_plainly(const error_code& failure) {
  if (failure == asio::error::eof || failure == asio::ssl::error::stream_truncated)
    return {errc::unavailable, "it closed the connection"};
  if (failure == asio::error::connection_reset || failure == asio::error::broken_pipe)
    return {errc::unavailable, "the connection was reset"};
  return {errc::unavailable, failure.message()};
}

} // namespace troupe
