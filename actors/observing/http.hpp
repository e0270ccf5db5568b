// SPDX-License-Identifier: Apache-2.0
// As much of HTTP as it takes to be looked at: a server of pages.
#pragma once

#include "messages/errc.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// What a server says to one request.
struct http_answer {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Where a server listens, and how much of it clients may use.
struct http_server_options {
  std::string address = "127.0.0.1";        ///< IPv4 or IPv6, of this machine.
  uint16_t port = 0;                        ///< 0 = any that is free.
  size_t clients_max = 32;                  ///< At a time; one more is sent away.
  std::chrono::milliseconds deadline{5000}; ///< For a client to ask, and again to take the answer.
};

/// A job must not feel its observers. This server has one thread of its own, answers one request a
/// connection, and cuts clients that are slow, talk too long or are too many.
class http_server {
public:
  /// Answers GET of a path. Called on the server's thread; throws nothing.
  using handler = std::function<http_answer(const std::string& path)>;

  /// Listens from now on. Requests with other methods than GET are answered with 405.
  /// Errors: resource, if the address is none of this machine or the port is taken or forbidden;
  /// the line names both.
  [[nodiscard]] static expected<std::unique_ptr<http_server>> start(http_server_options options,
                                                                    handler answer);

  virtual ~http_server() = default;

  /// Where it listens: "127.0.0.1:9464", "[::1]:9464".
  [[nodiscard]] virtual std::string endpoint() const = 0;
};

} // namespace troupe
