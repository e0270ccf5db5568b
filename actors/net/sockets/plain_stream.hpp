// SPDX-License-Identifier: Apache-2.0
// A connection whose bytes go through a socket as they are.
#pragma once

#include "actors/net/sockets/byte_stream.hpp"

namespace troupe {

class plain_stream : public byte_stream {
public:
  /// @param low_mark_max A reader of a longer body is not woken for each packet of it, but for so
  /// many bytes.
  plain_stream(stream_socket socket, std::string peer, size_t low_mark_max)
    : socket_(std::move(socket)), peer_(std::move(peer)), low_mark_max_(low_mark_max) {}

  void shake_hands(bool is_dialer, handler done) override;
  void read_some(boost::asio::mutable_buffer into, handler done) override;

  void hurry() override { wake_at(1); }

  void write(std::span<const boost::asio::const_buffer> buffers, handler done) override;
  [[nodiscard]] size_t write_now(std::span<const boost::asio::const_buffer> buffers) override;
  void finish() override;
  void close() override;
  [[nodiscard]] error explain(const boost::system::error_code& failure) const override;

  [[nodiscard]] std::string peer() const override { return peer_; }

protected:
  [[nodiscard]] stream_socket& socket() { return socket_; }

private:
  void wake_at(int bytes);

  stream_socket socket_;
  std::string peer_;
  size_t low_mark_max_;
  int low_mark_ = 1;
};

/// A failure of the system in words for people.
[[nodiscard]] error explain_plainly(const boost::system::error_code& failure);

} // namespace troupe
