// SPDX-License-Identifier: Apache-2.0
// The terms of every TLS connection.
#pragma once

#include "messages/errors/errc.hpp"

#include <boost/asio/ssl/context.hpp>

#include <string>
#include <utility> // before Boost.Asio 1.74, which uses std::exchange without it

namespace troupe {

/// Has connections be of TLS 1.2 or later, only with peers with a certificate of an authority.
/// @param authority Its certificate, a PEM file. Errors: as `check_pem`.
[[nodiscard]] expected<void> trust(boost::asio::ssl::context& context,
                                   const std::string& authority);

/// Explains a failure to read a PEM file. @param role Its name for people: "certificate".
/// Errors: not_found, if it cannot be read; malformed, if it is none. The line names the file.
[[nodiscard]] expected<void> check_pem(const boost::system::error_code& failed, const char* role,
                                       const std::string& file);

} // namespace troupe
