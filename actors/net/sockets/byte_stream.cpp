// SPDX-License-Identifier: Apache-2.0
// Plain sockets and OpenSSL's streams behind one face.
#include "actors/net/sockets/byte_stream.hpp"

#include "actors/net/host_port.hpp"
#include "actors/net/sockets/local_socket.hpp"
#include "actors/net/sockets/tls.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

class tls_identity {
public:
  ssl::context context{ssl::context::tls};
};

namespace {

// So much may wait in the system's hands to be sent, and a token behind it. Less would take a turn
// of the writing thread for each quarter of a part, and half the bandwidth of a fast network. Linux
// gives a local socket less: 416 KiB, which is twice what it has unasked.
constexpr int unsent_bytes_max = 1 << 20;

void tune_tcp(stream_socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes_max,
               sizeof unsent_bytes_max);
}

std::string to_string(const stream_socket::endpoint_type& tcp_endpoint) {
  tcp::endpoint endpoint;
  endpoint.resize(tcp_endpoint.size());
  std::memcpy(endpoint.data(), tcp_endpoint.data(), tcp_endpoint.size());
  return troupe::to_string(host_port{endpoint.address().to_string(), endpoint.port()});
}

error explain_plainly(const error_code& failure) {
  if (failure == asio::error::eof || failure == ssl::error::stream_truncated)
    return {errc::unavailable, "it closed the connection"};
  if (failure == asio::error::connection_reset || failure == asio::error::broken_pipe)
    return {errc::unavailable, "the connection was reset"};
  return {errc::unavailable, failure.message()};
}

// So many buffers go into one call of the system.
constexpr size_t pieces_max = 128;

// A reader of a longer body by TCP is not woken for each packet of it, but for so much. Local
// sockets have no packets.
constexpr size_t long_bytes = 64 * 1024;
constexpr size_t tcp_low_mark_max = 256 * 1024;

// Asio by itself makes a call of the system for each 64 KiB, and a turn of its loop.
size_t all_at_once(const error_code& failed, size_t /*written*/) {
  return failed ? 0 : std::numeric_limits<size_t>::max();
}

class plain_stream final : public byte_stream {
public:
  plain_stream(stream_socket socket, std::string peer, size_t low_mark_max)
    : socket_(std::move(socket)), peer_(std::move(peer)), low_mark_max_(low_mark_max) {}

  void shake_hands(bool /*is_dialer*/, handler done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }

  void read_some(asio::mutable_buffer into, handler done) override {
    auto is_long = into.size() > long_bytes;
    wake_at(is_long ? static_cast<int>(std::min(into.size(), low_mark_max_)) : 1);
    socket_.async_read_some(into, std::move(done));
  }

  void hurry() override { wake_at(1); }

  void read(asio::mutable_buffer into, handler done) override {
    asio::async_read(socket_, into, std::move(done));
  }

  void write(std::span<const asio::const_buffer> what, handler done) override {
    asio::async_write(socket_, what, all_at_once, std::move(done));
  }

  size_t write_now(std::span<const asio::const_buffer> what) override {
    std::array<iovec, pieces_max> pieces;
    auto count = std::min(what.size(), pieces.size());
    for (size_t i = 0; i < count; ++i)
      pieces[i] = {const_cast<void*>(what[i].data()), what[i].size()}; // NOLINT: as POSIX has it
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<size_t>(sent); // the next write meets a failure again
  }

  void finish() override {
    error_code ignored;
    socket_.shutdown(stream_socket::shutdown_send, ignored);
  }

  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }

  [[nodiscard]] error explain(const error_code& failure) const override {
    return explain_plainly(failure);
  }

  [[nodiscard]] std::string peer() const override { return peer_; }

private:
  void wake_at(int bytes) {
    if (std::exchange(low_mark_, bytes) == bytes) return;
    error_code ignored;
    socket_.set_option(stream_socket::receive_low_watermark(bytes), ignored);
  }

  stream_socket socket_;
  std::string peer_;
  size_t low_mark_max_;
  int low_mark_ = 1;
};

class tls_stream final : public byte_stream {
public:
  tls_stream(stream_socket socket, std::string peer, std::shared_ptr<tls_identity> identity)
    : identity_(std::move(identity)), stream_(std::move(socket), identity_->context),
      peer_(std::move(peer)) {}

  void shake_hands(bool is_dialer, handler done) override {
    stream_.async_handshake(
      is_dialer ? ssl::stream_base::client : ssl::stream_base::server,
      [done = std::move(done)](const error_code& failed) { done(failed, 0); });
  }

  void read_some(asio::mutable_buffer into, handler done) override {
    stream_.async_read_some(into, std::move(done));
  }

  void hurry() override {}

  void read(asio::mutable_buffer into, handler done) override {
    asio::async_read(stream_, into, std::move(done));
  }

  void write(std::span<const asio::const_buffer> what, handler done) override {
    asio::async_write(stream_, what, std::move(done));
  }

  // OpenSSL's state belongs to one thread at a time, and reading is under way.
  size_t write_now(std::span<const asio::const_buffer> /*what*/) override { return 0; }

  void finish() override {
    error_code ignored;
    stream_.next_layer().shutdown(stream_socket::shutdown_send, ignored);
  }

  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

  [[nodiscard]] error explain(const error_code& failure) const override {
    if (failure.category() != asio::error::get_ssl_category()) return explain_plainly(failure);
    auto verified = ::SSL_get_verify_result(ssl());
    if (verified == X509_V_OK) // what it objects to comes as an alert
      return {errc::failed_precondition, fmt::format("TLS: it says: {}", failure.message())};
    return {errc::failed_precondition, fmt::format("TLS: its certificate is refused: {}",
                                                   ::X509_verify_cert_error_string(verified))};
  }

  [[nodiscard]] std::string peer() const override { return peer_; }

private:
  [[nodiscard]] const SSL* ssl() const {
    return const_cast<ssl::stream<stream_socket>&>(stream_).native_handle(); // NOLINT: it asks only
  }

  std::shared_ptr<tls_identity> identity_;
  ssl::stream<stream_socket> stream_;
  std::string peer_;
};

} // namespace

expected<std::shared_ptr<tls_identity>> load_tls_identity(const tls_files& files) {
  auto identity = std::make_shared<tls_identity>();
  auto& context = identity->context;
  if (auto read = trust(context, files.authority); !read)
    return tl::unexpected<error>(read.error());
  error_code failed;
  context.use_certificate_chain_file(files.certificate, failed);
  if (auto read = check_pem(failed, "certificate", files.certificate); !read)
    return tl::unexpected<error>(read.error());
  auto is_encrypted = std::make_shared<bool>(false); // the callback stays with the context
  context.set_password_callback([is_encrypted](size_t, ssl::context::password_purpose) {
    *is_encrypted = true;
    return std::string{};
  });
  context.use_private_key_file(files.key, ssl::context::pem, failed);
  if (failed && *is_encrypted)
    return fail(errc::invalid_argument,
                fmt::format("the key {} is encrypted; take the pass phrase off: "
                            "openssl pkey -in {} -out KEY",
                            files.key, files.key));
  if (failed)
    return fail(errc::invalid_argument,
                fmt::format("the key {}: {}; give the PEM file of the key that {} was made with",
                            files.key, failed.message(), files.certificate));
  return identity;
}

std::unique_ptr<byte_stream> make_byte_stream(stream_socket socket,
                                              std::shared_ptr<tls_identity> identity) {
  std::string peer = "somebody";
  size_t low_mark_max = 1;
  error_code failed;
  auto endpoint = socket.remote_endpoint(failed);
  if (!failed && endpoint.protocol().family() == AF_UNIX) {
    peer = local_peer(socket.native_handle());
    socket.set_option(stream_socket::send_buffer_size(unsent_bytes_max), failed);
  } else if (!failed) {
    peer = to_string(endpoint);
    low_mark_max = tcp_low_mark_max;
    tune_tcp(socket);
  }
  if (identity)
    return std::make_unique<tls_stream>(std::move(socket), std::move(peer), std::move(identity));
  return std::make_unique<plain_stream>(std::move(socket), std::move(peer), low_mark_max);
}

} // namespace troupe
