// SPDX-License-Identifier: Apache-2.0
// A thread for each question, and the answer that it shares.
#include "actors/net/sockets/name_lookup.hpp"

#include "actors/net/host_port.hpp"
#include "actors/recording/seconds.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace troupe {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

using found_endpoints = expected<endpoint_list>;

found_endpoints asked(const std::string& host, const std::string& port,
                      tcp::resolver::flags flags) {
  asio::io_context context;
  error_code failed;
  auto found = tcp::resolver{context}.resolve(host, port, flags, failed);
  if (failed)
    return fail(errc::unavailable,
                fmt::format("host '{}' is not known here: {}", host, failed.message()));
  return endpoint_list(found.begin(), found.end());
}

bool is_number(const std::string& host) {
  error_code failed;
  asio::ip::make_address(host, failed);
  return !failed;
}

// @param tell Called on this thread or on one of its own.
void ask(const std::string& host, const std::string& port,
         const std::function<void(found_endpoints)>& tell) {
  if (is_number(host)) return tell(asked(host, port, tcp::resolver::numeric_host));
  try {
    std::thread{[host, port, tell] { tell(asked(host, port, {})); }}.detach();
  } catch (const std::system_error& none) {
    tell(
      fail(errc::resource, fmt::format("no thread to look for host '{}': {}", host, none.what())));
  }
}

/// Shared by the waiting caller and the thread that it may leave behind.
struct awaited_answer {
  std::mutex mutex;
  std::condition_variable_any has_come;
  std::optional<found_endpoints> found;
};

} // namespace

void look_up(const std::shared_ptr<asio::io_context>& io, const std::string& host,
             const std::string& port, const std::function<void(found_endpoints)>& tell) {
  ask(host, port, [io, tell](found_endpoints found) {
    asio::post(*io, [tell, found = std::move(found)] { tell(found); });
  });
}

found_endpoints look_up(const std::string& host, const std::string& port,
                        std::chrono::milliseconds deadline, const std::stop_token& stop) {
  auto awaited = std::make_shared<awaited_answer>();
  ask(host, port, [awaited](found_endpoints found) {
    std::lock_guard guard{awaited->mutex};
    awaited->found = std::move(found);
    awaited->has_come.notify_all();
  });
  std::unique_lock lock{awaited->mutex};
  if (awaited->has_come.wait_for(lock, stop, deadline, [&] { return awaited->found.has_value(); }))
    return *awaited->found;
  if (stop.stop_requested())
    return fail(errc::cancelled, fmt::format("asked to stop while looking for host '{}'", host));
  return fail(
    errc::deadline_exceeded,
    fmt::format("the name of host '{}' was not resolved for {} s; does the name server answer?",
                host, seconds(deadline)));
}

endpoint_list reachable(const std::string& host, endpoint_list found,
                        std::span<const std::string> own) {
  auto is_here = [](const tcp::endpoint& at) { return at.address().is_loopback(); };
  if (is_loopback(host) || !std::ranges::all_of(found, is_here)) return found;
  for (const auto& address : own) {
    error_code ignored;
    auto parsed = asio::ip::make_address(address, ignored);
    if (!ignored) found.emplace_back(parsed, found.front().port());
  }
  return found;
}

} // namespace troupe
