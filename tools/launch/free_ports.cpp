// SPDX-License-Identifier: Apache-2.0
// Draws ports, and tries to bind to them.
#include "tools/launch/free_ports.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <fmt/format.h>
#include <random>
#include <set>
#include <utility> // before Boost.Asio 1.74, which uses std::exchange without it

namespace troupe {

namespace {

using boost::asio::ip::tcp;

// Linux gives connections ports from 32768 on (net.ipv4.ip_local_port_range); most well-known
// services lie below 20000.
constexpr uint16_t port_min = 20'000;
constexpr uint16_t port_max = 32'767;

bool is_free(boost::asio::io_context& context, uint16_t port) {
  tcp::endpoint endpoint{boost::asio::ip::address_v4::loopback(), port};
  boost::system::error_code refused;
  tcp::acceptor acceptor{context};
  acceptor.open(endpoint.protocol(), refused);
  if (!refused) acceptor.bind(endpoint, refused);
  return !refused;
}

} // namespace

expected<std::vector<uint16_t>> free_ports(size_t count) {
  boost::asio::io_context context;
  std::random_device source;
  std::uniform_int_distribution<int> any_port{port_min, port_max};
  std::set<uint16_t> tried;
  std::vector<uint16_t> ports;
  constexpr size_t tries_max = 4096;
  while (ports.size() < count && tried.size() < tries_max) {
    auto port = static_cast<uint16_t>(any_port(source));
    if (tried.insert(port).second && is_free(context, port)) ports.push_back(port);
  }
  if (ports.size() == count) return ports;
  return fail(errc::resource, fmt::format("of {} ports from {} to {} on 127.0.0.1, only {} are "
                                          "free, and {} are needed",
                                          tried.size(), port_min, port_max, ports.size(), count));
}

} // namespace troupe
