// SPDX-License-Identifier: Apache-2.0
// How processes of one machine reach each other past its network.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <optional>
#include <string>
#include <utility> // Boost 1.74 misses it in C++20
#include <vector>

namespace troupe {

/// Where a node that listens at `at` is also to be found by processes of its machine: a name that
/// ends with its process, and that only its network namespace sees ("abstract", unix(7)).
[[nodiscard]] boost::asio::local::stream_protocol::endpoint
local_endpoint(const boost::asio::ip::tcp::endpoint& at);

/// Whether the process at the other side is the same user's. A port belongs to the process that may
/// listen there; a name could be taken by any user of the machine, and says nothing.
/// @param socket The descriptor of a local socket.
[[nodiscard]] bool is_same_user(int socket);

/// Connects with a node of this machine and user that listens at one of `addresses`; nothing, if
/// there is none. Never waits.
[[nodiscard]] std::optional<boost::asio::local::stream_protocol::socket>
connect_locally(boost::asio::io_context& io,
                const std::vector<boost::asio::ip::tcp::endpoint>& addresses);

/// "process 4711 of this machine": the other side. @param socket As above.
[[nodiscard]] std::string local_peer(int socket);

} // namespace troupe
