// SPDX-License-Identifier: Apache-2.0
// A connection between two processes of one machine: bytes through shared memory, wake-ups through
// a local socket.
#pragma once

#include "actors/net/sockets/plain_stream.hpp"
#include "actors/net/sockets/read_watch.hpp"
#include "actors/net/sockets/shared_ring.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A local socket copies each byte twice in the system, and takes a call of it for each message.
/// Through memory a byte is copied in and out, and a process that looks for messages needs no call.
/// The process that dials makes the memory and passes it on; where it cannot, or the other one
/// cannot take it, all bytes go through the socket.
class local_stream final : public plain_stream, private watched_read {
public:
  /// @param reads The reads of the thread that runs the socket's executor; outlives the stream.
  local_stream(stream_socket socket, std::string peer, read_watch& reads);

  void shake_hands(bool is_dialer, handler done) override;
  void read_some(boost::asio::mutable_buffer into, handler done) override;
  void write(std::span<const boost::asio::const_buffer> buffers, handler done) override;
  [[nodiscard]] size_t write_now(std::span<const boost::asio::const_buffer> buffers) override;
  void finish() override;

private:
  struct pending_read {
    boost::asio::mutable_buffer into;
    handler done;
  };

  struct pending_write {
    std::vector<boost::asio::const_buffer> rest;
    handler done;
    size_t written = 0;
  };

  [[nodiscard]] bool has_news() override;
  [[nodiscard]] bool sleeps() override;
  void complete() override;

  bool offer_memory();
  void take_answer(const boost::system::error_code& failed, const handler& done);
  boost::system::error_code take_offer();
  void begin(bool is_dialer, const boost::system::error_code& failed, const handler& done);

  void write_more();
  void wake_peer();
  void await_wake_ups(handler owner);
  void on_wake_up();

  std::shared_ptr<ring_memory> memory_; ///< Null: all goes through the socket.
  std::optional<ring_reader> in_;
  std::optional<ring_writer> out_;
  std::optional<pending_read> read_;
  std::optional<pending_write> write_;
  boost::system::error_code ended_; ///< Why no wake-ups come any more.
  std::array<char, 64> wake_ups_{};
};

} // namespace troupe
