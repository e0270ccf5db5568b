// SPDX-License-Identifier: Apache-2.0
// One question to a server of HTTP, with or without TLS.
#pragma once

#include "actors/net/host_port.hpp"
#include "messages/errors/errc.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace troupe {

/// A question, and the server that it goes to.
struct http_question {
  host_port server;
  std::string path;
  /// The asker's proof of identity, such as "Bearer TOKEN"; empty: nothing.
  std::string authorization{};
  /// The certificate of the authority that the server's must be of, a PEM file; empty: plain HTTP.
  /// The server must be the one that its certificate names.
  std::string authority{};
  std::chrono::milliseconds deadline = std::chrono::seconds{10}; ///< For all of it.
  uint64_t answer_bytes_max = uint64_t{64} << 20;
};

/// A server's answer.
struct http_reply {
  unsigned status = 0;
  std::string body;
};

/// Asks a server. @returns The answer, with any status.
/// Errors: unavailable, if no server listens there or it goes away; deadline_exceeded; malformed,
/// if what comes is no HTTP, or the authority's file no certificate; limit_exceeded;
/// failed_precondition, if the server's certificate is refused, with the reason; not_found, if
/// there is no such file. The line names host and port, or the file.
[[nodiscard]] expected<http_reply> http_ask(const http_question& question);

} // namespace troupe
