// SPDX-License-Identifier: Apache-2.0
// Listening, and what there is to say if that cannot be.
#include "actors/net/doorway.hpp"

#include "actors/net/host_port.hpp"

#include <chrono>
#include <fmt/format.h>

namespace troupe {

namespace asio = boost::asio;
using asio::ip::tcp;
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

} // namespace

expected<void> doorway::open(const socket_network_options& options) {
  const auto& own = options.nodes[options.self];
  auto endpoint = endpoint_of(tcp::resolver{acceptor_.get_executor()}, options);
  if (!endpoint) return tl::unexpected<error>(endpoint.error());
  if (!endpoint->address().is_loopback() && !options.tls && !options.insecure_network)
    return fail(errc::invalid_argument,
                fmt::format("{} would listen at {} without TLS, where anybody can speak to it; "
                            "give --tls-ca, --tls-certificate and --tls-key, or allow it with "
                            "--insecure-network",
                            own.name, own.address));
  error_code failed;
  acceptor_.open(endpoint->protocol(), failed);
  if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor_.bind(*endpoint, failed);
  if (!failed) acceptor_.listen(tcp::acceptor::max_listen_connections, failed);
  if (failed == asio::error::address_in_use)
    return fail(errc::unavailable,
                fmt::format("{} cannot listen at {}: another process does, of this job or of "
                            "another one; end it, or choose another port",
                            own.name, own.address));
  if (failed)
    return fail(errc::unavailable, fmt::format("{} cannot listen at {}: {}; give it an address "
                                               "of this machine",
                                               own.name, own.address, failed.message()));
  auto bound = acceptor_.local_endpoint();
  address_ = to_string(host_port{bound.address().to_string(), bound.port()});
  accept();
  return {};
}

void doorway::close() {
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
}

void doorway::accept() {
  acceptor_.async_accept([this](const error_code& failed, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!failed) {
      on_arrival_(std::move(socket));
      return accept();
    }
    on_warning_(fmt::format("nobody can be let in: {}; trying again", failed.message()));
    retry_.expires_after(retry_after);
    retry_.async_wait([this](const error_code& given_up) {
      if (!given_up) accept();
    });
  });
}

} // namespace troupe
