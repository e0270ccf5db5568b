// SPDX-License-Identifier: Apache-2.0
// Versions, authorities, and files that are none.
#include "actors/net/sockets/tls.hpp"

#include <fmt/format.h>
#include <fstream>

namespace troupe {

namespace ssl = boost::asio::ssl;

expected<void> trust(ssl::context& context, const std::string& authority) {
  context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1
                      | ssl::context::no_tlsv1_1 | ssl::context::no_sslv3);
  context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  boost::system::error_code failed;
  context.load_verify_file(authority, failed);
  return check_pem(failed, "authority's certificate", authority);
}

expected<void> check_pem(const boost::system::error_code& failed, const char* role,
                         const std::string& file) {
  if (!failed) return {};
  if (!std::ifstream{file}.is_open())
    return fail(errc::not_found, fmt::format("the {} {} cannot be read", role, file));
  return fail(errc::malformed,
              fmt::format("the {} {}: {}; give a PEM file", role, file, failed.message()));
}

} // namespace troupe
