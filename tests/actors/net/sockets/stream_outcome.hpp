// SPDX-License-Identifier: Apache-2.0
// Two connected sockets, and what came of a call of a stream.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace troupe {

/// The result of a call of a stream.
struct stream_outcome {
  bool is_over = false;
  boost::system::error_code failed;
  size_t bytes = 0;

  /// For the call; this must live until it is over.
  [[nodiscard]] auto handler() {
    return [this](const boost::system::error_code& failure, size_t count) {
      *this = {true, failure, count};
    };
  }
};

[[nodiscard]] inline std::array<int, 2> socket_pair() {
  std::array<int, 2> sockets{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) == 0);
  return sockets;
}

/// @param text Outlives the result.
[[nodiscard]] inline std::vector<boost::asio::const_buffer> buffers_of(const std::string& text) {
  return {boost::asio::buffer(text)};
}

} // namespace troupe
