// SPDX-License-Identifier: Apache-2.0
// A server of HTTP by Boost.Beast.
#include "actors/observing/http.hpp"

#include "actors/net/close_on_exec.hpp"
#include "actors/net/host_port.hpp"
#include "actors/observing/http_token.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <fmt/format.h>
#include <set>
#include <string_view>
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

// Whether a Host header has a name or an address that means this machine on every machine.
bool names_this_machine(std::string_view header) {
  auto is_bracketed = header.starts_with('['); // IPv6
  auto host
    = is_bracketed ? header.substr(1, header.find(']') - 1) : header.substr(0, header.find(':'));
  return beast::iequals({host.data(), host.size()}, "localhost")
         || is_loopback_address(std::string{host});
}

/// One of the clients that there may be at a time.
class client_place {
public:
  explicit client_place(std::shared_ptr<size_t> taken) : taken_(std::move(taken)) { ++*taken_; }

  client_place(client_place&&) = default;
  client_place& operator=(client_place&&) = delete;

  ~client_place() {
    if (taken_) --*taken_;
  }

private:
  std::shared_ptr<size_t> taken_;
};

/// A client that is told news, one text after the other.
class news_reader : public std::enable_shared_from_this<news_reader> {
public:
  using news_text = std::shared_ptr<const std::string>;
  using listener = std::function<void(const std::shared_ptr<news_reader>&)>;

  /// @param on_end Called once: the client is gone, was cut, or has the last text.
  news_reader(tcp::socket socket, client_place place, std::chrono::milliseconds deadline,
              listener on_end)
    : stream_(std::move(socket)), place_(std::move(place)), deadline_(deadline),
      on_end_(std::move(on_end)) {}

  // An answer without a length goes on until the connection ends.
  void begin() {
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [self = shared_from_this()](error_code) { self->end(); });
    send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
         "Connection: close\r\n\r\n");
  }

  /// Sends a text that it does not have, unless another one is on its way.
  void tell(const news_text& now) {
    if (is_sending_) return;
    if (now != sent_) return send("data: ", now);
    if (++silent_ % silent_periods_max == 0) send(": nothing new\n\n");
  }

  /// The same for the last text, after which the answer ends.
  void tell_last(const news_text& now) {
    last_ = now;
    if (is_sending_) return;
    sent_ == last_ ? end() : send("data: ", last_);
  }

private:
  // Proxies between a browser and the job give up connections that are silent for a minute or so.
  static constexpr size_t silent_periods_max = 15;

  void send(std::string_view begin, const news_text& text = {}) {
    is_sending_ = true;
    silent_ = 0;
    if (text) sent_ = text;
    const std::array<asio::const_buffer, 3> parts{
      asio::buffer(begin), text ? asio::buffer(*sent_) : asio::const_buffer{},
      text ? asio::buffer("\n\n", 2) : asio::const_buffer{}};
    stream_.expires_after(deadline_);
    asio::async_write(stream_, parts, [self = shared_from_this()](error_code failed, size_t) {
      self->on_sent(failed);
    });
  }

  void on_sent(error_code failed) {
    is_sending_ = false;
    if (failed || (last_ && last_ == sent_)) return end();
    if (last_) send("data: ", last_);
  }

  void end() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.close();
    if (auto tell = std::exchange(on_end_, {})) tell(shared_from_this());
  }

  beast::tcp_stream stream_;
  client_place place_;
  std::chrono::milliseconds deadline_;
  listener on_end_;
  news_text sent_;
  news_text last_; ///< Null before the server ends.
  bool is_sending_ = false;
  size_t silent_ = 0; ///< Periods in a row without a text.
};

/// Tells all readers at once what is new, so that a text is made once for all of them.
class news_desk {
public:
  news_desk(asio::io_context& context, http_news news, const http_server_options& options)
    : news_(std::move(news)), options_(options), period_(context) {}

  [[nodiscard]] bool is_at(std::string_view path) const {
    return !news_.path.empty() && news_.path == path;
  }

  [[nodiscard]] bool is_full() const { return readers_.size() >= options_.news_clients_max; }

  void add(tcp::socket socket, client_place place) {
    auto reader = std::make_shared<news_reader>(
      std::move(socket), std::move(place), options_.deadline,
      [this](const std::shared_ptr<news_reader>& gone) { forget(gone); });
    readers_.insert(reader);
    reader->begin();
    if (readers_.size() == 1) wait();
  }

  /// Tells the last text. @param on_end Called when all readers have it, or are gone.
  void finish(std::function<void()> on_end) {
    on_end_ = std::move(on_end);
    period_.cancel();
    if (readers_.empty()) return on_end_();
    const auto last = news_.text();
    for (const auto& reader : std::set{readers_})
      reader->tell_last(last);
  }

private:
  void wait() {
    period_.expires_after(options_.news_period);
    period_.async_wait([this](error_code failed) {
      if (!failed && !readers_.empty()) tell();
    });
  }

  void tell() {
    const auto now = news_.text();
    for (const auto& reader : std::set{readers_})
      reader->tell(now);
    wait();
  }

  void forget(const std::shared_ptr<news_reader>& gone) {
    readers_.erase(gone);
    if (readers_.empty() && on_end_) on_end_();
  }

  http_news news_;
  const http_server_options& options_;
  asio::steady_timer period_;
  std::set<std::shared_ptr<news_reader>> readers_;
  std::function<void()> on_end_;
};

/// One connection: a request, an answer, the end. It lives as long as something is going on.
class http_client_session : public std::enable_shared_from_this<http_client_session> {
public:
  /// @param is_one_too_many Sends it away when it has asked.
  /// @param options, answer, news Outlive all that it does.
  http_client_session(tcp::socket socket, client_place place, bool is_one_too_many,
                      const http_server_options& options, const http_server::handler& answer,
                      news_desk& news)
    : stream_(std::move(socket)), place_(std::move(place)), is_one_too_many_(is_one_too_many),
      options_(options), answer_(answer), news_(news) {
    parser_.header_limit(header_bytes_max);
    parser_.body_limit(0);
  }

  void run() {
    stream_.expires_after(options_.deadline);
    http::async_read(
      stream_, buffer_, parser_,
      [self = shared_from_this()](error_code failed, size_t) { self->on_read(failed); });
  }

private:
  void on_read(error_code failed) {
    auto is_get = parser_.get().method() == http::verb::get;
    if ((!failed || failed == http::error::body_limit) && !is_get)
      return answer({405, plain_text, "only GET is answered here\n"});
    if (failed == http::error::header_limit)
      return answer({431, plain_text, "the header of the request is too long\n"});
    if (failed == http::error::body_limit)
      return answer({413, plain_text, "a request has no body here\n"});
    if (failed == http::error::end_of_stream || failed == beast::error::timeout) return;
    if (failed) return answer({400, plain_text, "this is no request that HTTP knows\n"});
    if (is_one_too_many_)
      return answer({503, plain_text, "too many clients ask at a time; ask again later\n"});
    if (names_another_machine())
      return answer({403, plain_text,
                     "this server is for this machine alone: ask for localhost or 127.0.0.1\n"});
    auto target = std::string{parser_.get().target()};
    auto proof = parser_.get()[http::field::authorization];
    if (!knows_token(options_.token, {proof.data(), proof.size()}, target))
      return answer({401, plain_text,
                     "the job printed its address with a token: ask for PATH?token=TOKEN, or with "
                     "the header Authorization: Bearer TOKEN\n"});
    auto path = target.substr(0, target.find('?'));
    if (!news_.is_at(path)) return answer(answer_(path));
    if (news_.is_full()) return answer({503, plain_text, "too many clients are told news\n"});
    news_.add(stream_.release_socket(), std::move(place_));
  }

  [[nodiscard]] bool names_another_machine() {
    auto host = parser_.get()[http::field::host];
    return is_loopback_address(options_.address) && !host.empty()
           && !names_this_machine({host.data(), host.size()});
  }

  void answer(http_answer answer) {
    reply_.result(answer.status);
    reply_.version(11);
    reply_.set(http::field::content_type, answer.content_type);
    if (answer.status == 401) reply_.set(http::field::www_authenticate, "Bearer");
    if (answer.status == 405) reply_.set(http::field::allow, "GET");
    reply_.keep_alive(false);
    reply_.body() = std::move(answer.body);
    reply_.prepare_payload();
    stream_.expires_after(options_.deadline);
    http::async_write(stream_, reply_, [self = shared_from_this()](error_code, size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  client_place place_;
  bool is_one_too_many_;
  beast::flat_buffer buffer_{header_bytes_max * 2};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> reply_;
  const http_server_options& options_;
  const http_server::handler& answer_;
  news_desk& news_;
};

class beast_server final : public http_server {
public:
  beast_server(http_server_options options, handler answer, http_news news)
    : options_(std::move(options)), answer_(std::move(answer)),
      news_(context_, std::move(news), options_) {}

  ~beast_server() override {
    asio::post(context_, [this] { end(); });
    if (thread_.joinable()) thread_.join();
  }

  beast_server(const beast_server&) = delete;
  beast_server& operator=(const beast_server&) = delete;

  expected<void> listen() {
    error_code failed;
    auto address = asio::ip::make_address(options_.address, failed);
    if (failed)
      return fail(
        errc::invalid_argument,
        fmt::format("cannot listen on '{}': it is no IP address; give one of this machine, "
                    "such as 127.0.0.1",
                    options_.address));
    open({address, options_.port}, failed);
    if (failed)
      return fail(errc::resource, fmt::format("cannot listen on {} port {}: {}", options_.address,
                                              options_.port, failed.message()));
    accept();
    thread_ = std::thread{[this] { context_.run(); }};
    return {};
  }

  [[nodiscard]] std::string endpoint() const override {
    error_code ignored;
    auto bound = acceptor_.local_endpoint(ignored);
    return to_string(host_port{bound.address().to_string(), bound.port()});
  }

private:
  void open(const tcp::endpoint& where, error_code& failed) {
    acceptor_.open(where.protocol(), failed);
    if (!failed) close_on_exec(acceptor_.native_handle());
    if (!failed) acceptor_.set_option(asio::socket_base::reuse_address{true}, failed);
    if (!failed) acceptor_.bind(where, failed);
    if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  }

  void accept() {
    acceptor_.async_accept([this](error_code failed, tcp::socket socket) {
      // As many again are told that they are too many, and what comes beyond those is cut.
      if (!failed) close_on_exec(socket.native_handle());
      const auto is_full = *clients_ >= options_.clients_max;
      if (!failed && *clients_ < 2 * options_.clients_max)
        std::make_shared<http_client_session>(std::move(socket), client_place{clients_}, is_full,
                                              options_, answer_, news_)
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

  // A client that takes nothing is left behind.
  void end() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.expires_after(last_news_max);
    pause_.async_wait([this](error_code) { context_.stop(); });
    news_.finish([this] { context_.stop(); });
  }

  http_server_options options_;
  handler answer_;
  std::shared_ptr<size_t> clients_ = std::make_shared<size_t>(0);
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  news_desk news_;
  std::thread thread_;
};

} // namespace

bool is_loopback_address(const std::string& address) {
  error_code failed;
  auto known = asio::ip::make_address(address, failed);
  return !failed && known.is_loopback();
}

expected<std::unique_ptr<http_server>> http_server::start(http_server_options options,
                                                          handler answer, http_news news) {
  auto server
    = std::make_unique<beast_server>(std::move(options), std::move(answer), std::move(news));
  auto listening = server->listen();
  if (!listening) return tl::unexpected<error>(listening.error());
  return server;
}

} // namespace troupe
