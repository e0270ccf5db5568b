// SPDX-License-Identifier: Apache-2.0
// Listening, and what there is to say if that cannot be.
#include "actors/net/sockets/connection_acceptor.hpp"

#include "actors/net/close_on_exec.hpp"
#include "actors/net/host_port.hpp"
#include "actors/net/sockets/local_socket.hpp"
#include "actors/net/sockets/peer_admission.hpp"

#include <chrono>
#include <fmt/format.h>

namespace troupe {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

namespace {

// Mostly it is files that lack, and others close theirs.
constexpr std::chrono::seconds retry_after{1};

expected<tcp::endpoint> endpoint_of(tcp::resolver resolver, const socket_network_options& options) {
  const auto& own = options.nodes[options.self];
  auto where = parse_host_port(own.address, 0);
  if (!where)
    return fail(where.error().code, fmt::format("{}: {}", own.name, where.error().message));
  auto host = options.listen_host.empty() ? where->host : options.listen_host;
  error_code failed;
  auto found = resolver.resolve(host, std::to_string(where->port), failed);
  if (failed || found.empty())
    return fail(errc::unavailable, fmt::format("{}: host '{}' is not known here: {}", own.name,
                                               host, failed.message()));
  return found.begin()->endpoint();
}

// Any process that reaches a port may dial it.
bool may_come_in(const tcp::socket& /*comes*/) {
  return true;
}

bool may_come_in(stream_protocol::socket& comes) {
  return is_same_user(comes.native_handle());
}

} // namespace

expected<void> connection_acceptor::open(const socket_network_options& options) {
  const auto& own = options.nodes[options.self];
  auto endpoint = endpoint_of(tcp::resolver{front_.acceptor.get_executor()}, options);
  if (!endpoint) return tl::unexpected<error>(endpoint.error());
  if (!endpoint->address().is_loopback() && !options.tls && !options.insecure_network)
    return fail(
      errc::invalid_argument,
      fmt::format("{} would listen at {} without TLS, where every machine can speak to it; "
                  "give --tls-ca, --tls-certificate and --tls-key, or allow it with "
                  "--insecure-network",
                  own.name, own.address));
  auto& acceptor = front_.acceptor;
  error_code failed;
  acceptor.open(endpoint->protocol(), failed);
  if (!failed) close_on_exec(acceptor.native_handle());
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(*endpoint, failed);
  if (!failed) acceptor.listen(tcp::acceptor::max_listen_connections, failed);
  if (failed == asio::error::address_in_use)
    return fail(errc::unavailable,
                fmt::format("{} cannot listen at {}: another process does, of this job or of "
                            "another one; end it, or choose another port, under Slurm and mpirun "
                            "with --port-base",
                            own.name, own.address));
  if (failed)
    return fail(errc::unavailable, fmt::format("{} cannot listen at {}: {}; give it an address "
                                               "of this machine",
                                               own.name, own.address, failed.message()));
  auto bound = acceptor.local_endpoint();
  address_ = to_string(host_port{bound.address().to_string(), bound.port()});
  accept(front_);
  if (goes_past_network(options)) open_side(bound);
  return {};
}

// Where it cannot be opened, all peers come by TCP.
void connection_acceptor::open_side(const tcp::endpoint& beside) {
  auto& acceptor = side_.acceptor;
  error_code failed;
  acceptor.open({}, failed);
  if (!failed) close_on_exec(acceptor.native_handle());
  if (!failed) acceptor.bind(local_endpoint(beside), failed);
  if (!failed) acceptor.listen(stream_protocol::acceptor::max_listen_connections, failed);
  if (failed) return static_cast<void>(acceptor.close(failed));
  accept(side_);
}

void connection_acceptor::close() {
  error_code ignored;
  front_.acceptor.close(ignored);
  front_.retry.cancel();
  side_.acceptor.close(ignored);
  side_.retry.cancel();
}

template <class Protocol>
void connection_acceptor::accept(listener<Protocol>& at) {
  at.acceptor.async_accept([this, &at](const error_code& failed, typename Protocol::socket comes) {
    if (!at.acceptor.is_open()) return;
    if (!failed) {
      if (may_come_in(comes)) on_arrival_(std::move(comes));
      return accept(at);
    }
    on_warning_(fmt::format("no connection can be accepted: {}; trying again", failed.message()));
    at.retry.expires_after(retry_after);
    at.retry.async_wait([this, &at](const error_code& given_up) {
      if (!given_up) accept(at);
    });
  });
}

} // namespace troupe
