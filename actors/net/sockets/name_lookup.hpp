// SPDX-License-Identifier: Apache-2.0
// Where a host is, asked without waiting longer than the caller wants.
#pragma once

#include "messages/errors/errc.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// Where one can connect to, or listen.
using endpoint_list = std::vector<boost::asio::ip::tcp::endpoint>;

/// The system's resolver takes as long as it likes, half a minute where a server of names is gone,
/// and cannot be called off. So it is asked on a thread of its own, which is left behind when its
/// answer is not awaited any more. An address in numbers needs neither.
///
/// Has `tell` called with the answer by a thread of `io`; never, if none runs it any more by then.
/// It is no work of `io`, which may end meanwhile. @param port A number or a service's name.
/// Errors of the answer: unavailable, naming the host; resource, if there can be no thread.
void look_up(const std::shared_ptr<boost::asio::io_context>& io, const std::string& host,
             const std::string& port, const std::function<void(expected<endpoint_list>)>& tell);

/// The same for a caller that waits: until the answer, the deadline, or that it is asked to stop.
/// Errors: those of the answer above; deadline_exceeded and cancelled, naming the host.
[[nodiscard]] expected<endpoint_list> look_up(const std::string& host, const std::string& port,
                                              std::chrono::milliseconds deadline,
                                              const std::stop_token& stop = {});

/// Where a node can be reached. Debian's /etc/hosts leads a machine's own name to 127.0.1.1, while
/// its node may listen on any card: then also there. @param own The addresses of this machine.
[[nodiscard]] endpoint_list reachable(const std::string& host, endpoint_list found,
                                      std::span<const std::string> own);

} // namespace troupe
