// SPDX-License-Identifier: Apache-2.0
// Plain sockets and OpenSSL's streams behind one face.
#include "actors/net/sockets/byte_stream.hpp"

#include "actors/net/close_on_exec.hpp"
#include "actors/net/host_port.hpp"
#include "actors/net/sockets/local_socket.hpp"
#include "actors/net/sockets/local_stream.hpp"
#include "actors/net/sockets/plain_stream.hpp"
#include "actors/net/sockets/tls.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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

// A reader of a longer body by TCP is woken for so many bytes.
constexpr size_t tcp_low_mark_max = 256 * 1024;

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

// Whether a peer does not take our certificate. All else may be another program's answer, which
// speaks no TLS, and is not there the next time.
bool is_distrust(const error_code& failure) {
  constexpr std::array reasons{
    SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, SSL_R_SSLV3_ALERT_NO_CERTIFICATE,
    SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,       SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
    SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,   SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
    SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,   SSL_R_TLSV1_ALERT_UNKNOWN_CA,
    SSL_R_TLSV1_ALERT_ACCESS_DENIED,         SSL_R_TLSV1_ALERT_DECRYPT_ERROR,
    SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED};
  return std::ranges::count(reasons, ERR_GET_REASON(static_cast<unsigned long>(failure.value())))
         > 0;
}

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

  void write(std::span<const asio::const_buffer> buffers, handler done) override {
    asio::async_write(stream_, buffers, std::move(done));
  }

  // OpenSSL's state belongs to one thread at a time, and reading is under way.
  size_t write_now(std::span<const asio::const_buffer> /*buffers*/) override { return 0; }

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
      return {is_distrust(failure) ? errc::failed_precondition : errc::unavailable,
              fmt::format("TLS: it says: {}", failure.message())};
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

void drop_front(std::vector<asio::const_buffer>& buffers, size_t count) {
  auto buffer = buffers.begin();
  for (; buffer != buffers.end() && count >= buffer->size(); ++buffer)
    count -= buffer->size();
  buffers.erase(buffers.begin(), buffer);
  if (count > 0) buffers.front() += count;
}

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

std::unique_ptr<byte_stream>
make_byte_stream(stream_socket socket, std::shared_ptr<tls_identity> identity, read_watch& reads) {
  close_on_exec(socket.native_handle());
  error_code failed;
  auto endpoint = socket.remote_endpoint(failed);
  auto is_local = !failed && endpoint.protocol().family() == AF_UNIX;
  auto peer = failed     ? "somebody"
              : is_local ? local_peer(socket.native_handle())
                         : to_string(endpoint);
  if (is_local)
    socket.set_option(stream_socket::send_buffer_size(unsent_bytes_max), failed);
  else if (!failed)
    tune_tcp(socket);
  if (identity)
    return std::make_unique<tls_stream>(std::move(socket), std::move(peer), std::move(identity));
  if (is_local) return std::make_unique<local_stream>(std::move(socket), std::move(peer), reads);
  return std::make_unique<plain_stream>(std::move(socket), std::move(peer), tcp_low_mark_max,
                                        reads);
}

} // namespace troupe
