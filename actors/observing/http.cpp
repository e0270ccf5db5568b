// SPDX-License-Identifier: Apache-2.0
// A server of HTTP by Boost.Beast.
#include "actors/observing/http.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <fmt/format.h>
#include <thread>
#include <utility> // before Boost.Asio 1.74, which uses std::exchange without it

namespace troupe {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto plain_text = "text/plain; charset=utf-8";
constexpr uint32_t header_bytes_max = 8192;

std::string spelled(const tcp::endpoint& endpoint) {
  auto address = endpoint.address();
  if (address.is_v6()) return fmt::format("[{}]:{}", address.to_string(), endpoint.port());
  return fmt::format("{}:{}", address.to_string(), endpoint.port());
}

/// One connection: a request, an answer, the end. It lives as long as something is going on.
class http_client_session : public std::enable_shared_from_this<http_client_session> {
public:
  http_client_session(tcp::socket socket, const http_server::handler& answer,
                      std::chrono::milliseconds deadline, std::shared_ptr<size_t> clients)
    : stream_(std::move(socket)), answer_(answer), deadline_(deadline),
      clients_(std::move(clients)) {
    ++*clients_;
    parser_.header_limit(header_bytes_max);
    parser_.body_limit(0);
  }

  http_client_session(const http_client_session&) = delete;
  http_client_session& operator=(const http_client_session&) = delete;

  ~http_client_session() { --*clients_; }

  void run() {
    stream_.expires_after(deadline_);
    http::async_read(
      stream_, buffer_, parser_,
      [self = shared_from_this()](error_code failed, size_t) { self->on_read(failed); });
  }

private:
  void on_read(error_code failed) {
    auto is_get = parser_.get().method() == http::verb::get;
    if ((!failed || failed == http::error::body_limit) && !is_get)
      return answer({405, plain_text, "only GET is answered here\n"});
    if (failed == http::error::header_limit || failed == http::error::body_limit)
      return answer({431, plain_text, "the request is too long\n"});
    if (failed == http::error::end_of_stream || failed == beast::error::timeout) return;
    if (failed) return answer({400, plain_text, "this is no request that HTTP knows\n"});
    auto target = std::string{parser_.get().target()};
    answer(answer_(target.substr(0, target.find('?'))));
  }

  void answer(http_answer said) {
    reply_.result(said.status);
    reply_.version(11);
    reply_.set(http::field::content_type, said.content_type);
    if (said.status == 405) reply_.set(http::field::allow, "GET");
    reply_.keep_alive(false);
    reply_.body() = std::move(said.body);
    reply_.prepare_payload();
    stream_.expires_after(deadline_);
    http::async_write(stream_, reply_, [self = shared_from_this()](error_code, size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{header_bytes_max * 2};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> reply_;
  const http_server::handler& answer_;
  std::chrono::milliseconds deadline_;
  std::shared_ptr<size_t> clients_;
};

class beast_server final : public http_server {
public:
  beast_server(http_server_options options, handler answer)
    : options_(std::move(options)), answer_(std::move(answer)) {}

  ~beast_server() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  beast_server(const beast_server&) = delete;
  beast_server& operator=(const beast_server&) = delete;

  expected<void> listen() {
    error_code failed;
    auto address = asio::ip::make_address(options_.address, failed);
    if (!failed) open({address, options_.port}, failed);
    if (failed)
      return fail(errc::resource, fmt::format("cannot listen on {} port {}: {}", options_.address,
                                              options_.port, failed.message()));
    accept();
    thread_ = std::thread{[this] { context_.run(); }};
    return {};
  }

  [[nodiscard]] std::string endpoint() const override {
    error_code ignored;
    return spelled(acceptor_.local_endpoint(ignored));
  }

private:
  void open(const tcp::endpoint& where, error_code& failed) {
    acceptor_.open(where.protocol(), failed);
    if (!failed) acceptor_.set_option(asio::socket_base::reuse_address{true}, failed);
    if (!failed) acceptor_.bind(where, failed);
    if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  }

  void accept() {
    acceptor_.async_accept([this](error_code failed, tcp::socket socket) {
      if (!failed && *clients_ < options_.clients_max)
        std::make_shared<http_client_session>(std::move(socket), answer_, options_.deadline,
                                              clients_)
          ->run();
      if (failed == asio::error::operation_aborted) return;
      failed ? accept_later() : accept();
    });
  }

  // Without file descriptors accepting fails at once, again and again.
  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds{100});
    pause_.async_wait([this](error_code failed) {
      if (!failed) accept();
    });
  }

  http_server_options options_;
  handler answer_;
  std::shared_ptr<size_t> clients_ = std::make_shared<size_t>(0);
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

} // namespace

expected<std::unique_ptr<http_server>> http_server::start(http_server_options options,
                                                          handler answer) {
  auto server = std::make_unique<beast_server>(std::move(options), std::move(answer));
  auto listening = server->listen();
  if (!listening) return tl::unexpected<error>(listening.error());
  return server;
}

} // namespace troupe
