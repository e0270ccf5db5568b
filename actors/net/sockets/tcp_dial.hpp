// SPDX-License-Identifier: Apache-2.0
// The sockets of a node that dials, and how a dial went.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// A socket to connect to `there` with. If it cannot be opened, connecting fails, too.
[[nodiscard]] std::shared_ptr<boost::asio::ip::tcp::socket>
open_to_dial(boost::asio::io_context& io, const boost::asio::ip::tcp::endpoint& there);

/// Why a dial has failed; nothing if it has reached another socket. Where nothing listens
/// at a port that the system also gives to sockets that dial, a dial may meet itself.
[[nodiscard]] std::optional<std::string> dial_failure(const boost::system::error_code& failed,
                                                      const boost::asio::ip::tcp::socket& reached);

} // namespace troupe
