// SPDX-License-Identifier: Apache-2.0
// Where others come in: the address that a node listens at.
#pragma once

#include "actors/net/sockets/byte_stream.hpp"
#include "actors/net/sockets/socket_network.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <string>

namespace troupe {

/// Takes a node's address and hands over every connection that comes: by TCP, and, if the options
/// say so, from processes of this machine and user by a local socket, which needs no configuration.
///
/// Thread: the io_context's, but for `open`, which is called before it runs.
class connection_acceptor {
public:
  /// @param on_arrival Has each connection that comes. @param on_warning Told if none can come in
  /// for a while.
  connection_acceptor(boost::asio::io_context& io, std::function<void(stream_socket)> on_arrival,
                      std::function<void(const std::string&)> on_warning)
    : front_(io), side_(io), on_arrival_(std::move(on_arrival)),
      on_warning_(std::move(on_warning)) {}

  /// Listens where the options say that this node is.
  /// Errors: as `socket_network::open`.
  [[nodiscard]] expected<void> open(const socket_network_options& options);

  void close();

  /// "127.0.0.1:2222"; empty if it is not open.
  [[nodiscard]] const std::string& address() const { return address_; }

private:
  template <class Protocol>
  struct listener {
    explicit listener(boost::asio::io_context& io) : acceptor(io), retry(io) {}

    typename Protocol::acceptor acceptor;
    boost::asio::steady_timer retry;
  };

  void open_side(const boost::asio::ip::tcp::endpoint& beside);

  template <class Protocol>
  void accept(listener<Protocol>& at);

  listener<boost::asio::ip::tcp> front_;
  listener<boost::asio::local::stream_protocol> side_;
  std::function<void(stream_socket)> on_arrival_;
  std::function<void(const std::string&)> on_warning_;
  std::string address_;
};

} // namespace troupe
