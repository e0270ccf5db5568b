// SPDX-License-Identifier: Apache-2.0
// Opens sockets, and tells failures in words.
#include "actors/net/sockets/tcp_dial.hpp"

#include "actors/net/close_on_exec.hpp"

namespace troupe {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::shared_ptr<tcp::socket> open_to_dial(asio::io_context& io, const tcp::endpoint& there) {
  auto socket = std::make_shared<tcp::socket>(io);
  error_code failed;
  socket->open(there.protocol(), failed);
  if (!failed) close_on_exec(socket->native_handle());
  return socket;
}

std::optional<std::string> dial_failure(const error_code& failed, const tcp::socket& reached) {
  if (failed == asio::error::operation_aborted) return "it does not answer";
  if (failed) return failed.message();
  error_code ignored;
  if (reached.local_endpoint(ignored) == reached.remote_endpoint(ignored))
    return "nothing listens there";
  return std::nullopt;
}

} // namespace troupe
