// SPDX-License-Identifier: Apache-2.0
// A small server of HTTP: pages, and news for browsers that look on.
#pragma once

#include "messages/errors/errc.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// A server's answer to one request.
struct http_answer {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// A text that changes, for browsers that look on.
/// Source: WHATWG, "HTML", section 9.2, server-sent events.
struct http_news {
  std::string path; ///< The answer to it has no end: an event whenever the text is another one.
  /// The text as it is now, on one line. Called on the server's thread; throws nothing.
  std::function<std::shared_ptr<const std::string>()> text;
};

/// Where a server listens, and how much of it clients may use.
struct http_server_options {
  std::string address = "127.0.0.1";        ///< IPv4 or IPv6, of this machine; no name.
  uint16_t port = 0;                        ///< 0 = any that is free.
  size_t clients_max = 32;                  ///< At a time; as many more are sent away.
  std::chrono::milliseconds deadline{5000}; ///< For a client to ask, and again to take the answer.
  /// A client proves that it knows it by "Authorization: Bearer TOKEN", or "?token=TOKEN" in a
  /// browser; empty: every client is answered.
  std::string token{};
  size_t news_clients_max = 16;                ///< Clients that wait for news, at most.
  std::chrono::milliseconds news_period{1000}; ///< How often they are told.
};

/// Whether an address can be reached from this machine alone; false for a text that is no address.
[[nodiscard]] bool is_loopback_address(const std::string& address);

/// A job must not feel its observers. This server has one thread of its own, answers one request a
/// connection, and cuts clients that are slow, talk too long or are too many. A client that is told
/// news has one text at most on its way, and misses those that came meanwhile.
class http_server {
public:
  /// Answers GET of a path. Called on the server's thread; throws nothing.
  using handler = std::function<http_answer(const std::string& path)>;

  /// Listens from now on. Requests with other methods than GET are answered with 405, without the
  /// token with 401, and beyond `clients_max`, or for news `news_clients_max`, with 503. At a
  /// loopback address, a request whose Host header names another machine is answered with 403: a
  /// web page of that name must not read the answer (DNS rebinding).
  /// @param news Without a path: there are none.
  /// Errors: resource, if the address is none of this machine or the port is taken or forbidden;
  /// the line names both; invalid_argument, if it is no IP address.
  [[nodiscard]] static expected<std::unique_ptr<http_server>>
  start(http_server_options options, handler answer, http_news news = {});

  /// Tells the last news to those that are told any, for `last_news_max` at most.
  virtual ~http_server() = default;

  static constexpr std::chrono::milliseconds last_news_max{1000};

  /// Where it listens: "127.0.0.1:9464", "[::1]:9464".
  [[nodiscard]] virtual std::string endpoint() const = 0;
};

} // namespace troupe
