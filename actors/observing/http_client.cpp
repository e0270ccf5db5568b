// SPDX-License-Identifier: Apache-2.0
// A client of HTTP by Boost.Beast, over a socket or OpenSSL's stream.
#include "actors/observing/http_client.hpp"

#include "actors/net/sockets/name_lookup.hpp"
#include "actors/net/sockets/tls.hpp"
#include "actors/recording/seconds.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility> // before Boost.Asio 1.74, which uses std::exchange without it

namespace troupe {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

using plain_http = beast::tcp_stream;
using tls_http = beast::ssl_stream<beast::tcp_stream>;

/// A question and its reply. @tparam Stream Plain, or with TLS.
template <class Stream>
class conversation {
public:
  /// @param tls Needed by a stream with TLS only.
  template <class... Tls>
  explicit conversation(const http_question& question, Tls&... tls)
    : question_(question), stream_(*context_, tls...) {
    request_.method(http::verb::get);
    request_.target(question.path);
    request_.version(11);
    request_.set(http::field::host, to_string(question.server));
    if (!question.authorization.empty())
      request_.set(http::field::authorization, question.authorization);
    request_.keep_alive(false);
    parser_.body_limit(question.answer_bytes_max);
  }

  Stream& stream() { return stream_; }

  expected<http_reply> hold() {
    const auto& [host, port] = question_.server;
    look_up(context_, host, std::to_string(port), [this](const expected<endpoint_list>& found) {
      is_found_ = true;
      found ? connect(*found) : give_up(found.error());
    });
    context_->run_for(question_.deadline);
    if (given_up_) return tl::unexpected<error>(*given_up_);
    if (!outcome_)
      return fail(errc::deadline_exceeded,
                  fmt::format("{} {} within {} s", address(),
                              is_found_ ? "did not answer" : "could not be looked up",
                              seconds(question_.deadline)));
    if (*outcome_) return failure(*outcome_);
    return http_reply{parser_.get().result_int(), std::move(parser_.get().body())};
  }

private:
  [[nodiscard]] std::string address() const { return to_string(question_.server); }

  void connect(const endpoint_list& found) {
    beast::get_lowest_layer(stream_).async_connect(
      found, [this](error_code failed, const auto&) { failed ? finish(failed) : shake_hands(); });
  }

  void shake_hands() {
    if constexpr (std::is_same_v<Stream, tls_http>)
      stream_.async_handshake(ssl::stream_base::client,
                              [this](error_code failed) { failed ? finish(failed) : send(); });
    else
      send();
  }

  void send() {
    http::async_write(stream_, request_,
                      [this](error_code failed, size_t) { failed ? finish(failed) : receive(); });
  }

  void receive() {
    http::async_read_header(stream_, buffer_, parser_, [this](error_code failed, size_t) {
      failed ? finish(failed) : receive_body();
    });
  }

  // The limit of Beast's parser is none for a response that says its length.
  void receive_body() {
    auto length = parser_.content_length();
    if (length && *length > question_.answer_bytes_max) return finish(http::error::body_limit);
    http::async_read(stream_, buffer_, parser_,
                     [this](error_code failed, size_t) { finish(failed); });
  }

  void finish(error_code failed) {
    outcome_ = failed;
    context_->stop();
  }

  void give_up(const error& reason) {
    given_up_ = error{reason.code, fmt::format("{}: {}", address(), reason.message)};
    context_->stop();
  }

  // Empty unless its certificate was the reason.
  std::string refusal() {
    if constexpr (std::is_same_v<Stream, tls_http>) {
      auto verified = ::SSL_get_verify_result(stream_.native_handle());
      if (verified != X509_V_OK) return ::X509_verify_cert_error_string(verified);
    }
    return {};
  }

  tl::unexpected<error> failure(error_code failed) {
    auto line
      = [this](std::string_view problem) { return fmt::format("{}: {}", address(), problem); };
    if (auto refused = refusal(); !refused.empty())
      return fail(errc::failed_precondition,
                  line(fmt::format("its certificate is refused: {}", refused)));
    if (failed == http::error::body_limit)
      return fail(errc::limit_exceeded, line(fmt::format("it answers with more than {} bytes",
                                                         question_.answer_bytes_max)));
    auto is_strange = (failed.category() == make_error_code(http::error::bad_version).category()
                       && failed != http::error::end_of_stream)
                      || failed.category() == asio::error::get_ssl_category();
    return fail(is_strange ? errc::malformed : errc::unavailable, line(failed.message()));
  }

  const http_question& question_;
  std::shared_ptr<asio::io_context> context_ = std::make_shared<asio::io_context>(1);
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_->get_executor()};
  Stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::empty_body> request_;
  http::response_parser<http::string_body> parser_;
  bool is_found_ = false; ///< The host.
  std::optional<error> given_up_;
  std::optional<error_code> outcome_;
};

// The certificate must be of the host that is dialed, be that a name or a number.
void expect_name(tls_http& stream, const std::string& host) {
  auto* checks = ::SSL_get0_param(stream.native_handle());
  if (::X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) == 1) return;
  ::X509_VERIFY_PARAM_set1_host(checks, host.c_str(), host.size());
  // One address may have several servers behind it.  The macro casts away const.
  SSL_set_tlsext_host_name(stream.native_handle(), host.c_str()); // NOLINT
}

} // namespace

expected<http_reply> http_ask(const http_question& question) {
  if (question.authority.empty()) return conversation<plain_http>{question}.hold();
  ssl::context tls{ssl::context::tls_client};
  if (auto done = trust(tls, question.authority); !done) return tl::unexpected<error>(done.error());
  conversation<tls_http> talk{question, tls};
  expect_name(talk.stream(), question.server.host);
  return talk.hold();
}

} // namespace troupe
