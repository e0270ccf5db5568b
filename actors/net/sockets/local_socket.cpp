// SPDX-License-Identifier: Apache-2.0
// Names beside ports, and the user of the process at the other side.
#include "actors/net/sockets/local_socket.hpp"

#include "actors/net/host_port.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;

namespace {

std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  return peer;
}

} // namespace

stream_protocol::endpoint local_endpoint(const tcp::endpoint& at) {
  auto name = "troupe/" + to_string(host_port{at.address().to_string(), at.port()});
  return {std::string(1, '\0') + name};
}

bool is_same_user(int socket) {
  auto peer = peer_of(socket);
  return peer && peer->uid == ::geteuid();
}

std::optional<stream_protocol::socket>
connect_locally(asio::io_context& io, const std::vector<tcp::endpoint>& addresses) {
  for (const auto& address : addresses) {
    boost::system::error_code failed;
    stream_protocol::socket socket{io};
    socket.open({}, failed);
    if (!failed) socket.native_non_blocking(true, failed);
    if (failed) return std::nullopt;
    auto there = local_endpoint(address);
    // Asio would wait where too many are at the door.
    if (::connect(socket.native_handle(), there.data(), static_cast<socklen_t>(there.size())) == 0
        && is_same_user(socket.native_handle()))
      return socket;
  }
  return std::nullopt;
}

std::string local_peer(int socket) {
  auto peer = peer_of(socket);
  return peer ? fmt::format("process {} of this machine", peer->pid) : "somebody";
}

} // namespace troupe
