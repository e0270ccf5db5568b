// SPDX-License-Identifier: Apache-2.0
// A connection whose bytes go through a socket as they are.
#pragma once

#include "actors/net/sockets/byte_stream.hpp"
#include "actors/net/sockets/read_watch.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <optional>

namespace troupe {

class plain_stream : public byte_stream {
public:
  /// @param low_mark_max A reader of a longer body is not woken for each packet of it, but for so
  /// many bytes. @param reads The reads of the thread that runs the socket's executor; outlives
  /// the stream.
  plain_stream(stream_socket socket, std::string peer, size_t low_mark_max, read_watch& reads)
    : socket_(std::move(socket)), peer_(std::move(peer)), low_mark_max_(low_mark_max),
      reads_(reads), short_read_(socket_) {}

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

  [[nodiscard]] read_watch& reads() { return reads_; }

private:
  /// A read of whatever comes, which the reading thread looks for itself while it does not sleep.
  class short_read final : public watched_read {
  public:
    explicit short_read(stream_socket& socket) : socket_(socket) {}

    void begin(boost::asio::mutable_buffer into, handler done);
    [[nodiscard]] bool has_news() override;
    [[nodiscard]] bool sleeps() override;
    void complete() override;
    /// Tells its caller so, later. No error if none waits.
    void give_up();

  private:
    struct waiting {
      boost::asio::mutable_buffer into;
      handler done;
      boost::asio::executor_work_guard<stream_socket::executor_type> work; ///< More may come.
    };

    stream_socket& socket_;
    std::optional<waiting> waiting_;
    boost::system::error_code failed_; ///< The failure that `has_news` has met.
    size_t bytes_ = 0;
  };

  void wake_at(int bytes);

  stream_socket socket_;
  std::string peer_;
  size_t low_mark_max_;
  int low_mark_ = 1;
  read_watch& reads_;
  short_read short_read_;
};

/// A failure of the system in words for people.
[[nodiscard]] error explain_plainly(const boost::system::error_code& failure);

} // namespace troupe
