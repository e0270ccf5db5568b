// SPDX-License-Identifier: Apache-2.0
// Lines of tasks that other launchers have started.
#pragma once

#include "actors/net/host_port.hpp"
#include "strategies/cluster/network_card.hpp"
#include "tools/launch/output_protocol.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Debian has a machine's own name lead to 127.0.1.1, which no other launcher reaches: for such a
/// name a launcher listens on the card that `choose_network_card` takes for "".
/// @param leads_to The addresses that the host has here, at least one. @param cards This machine's.
/// @param may_be_reached Whether addresses beyond this machine are allowed.
/// @returns The address to listen at.
/// Errors: invalid_argument for one that must not be reached, not_found if there is no such card.
[[nodiscard]] expected<std::string> collecting_address(const host_port& at,
                                                       const std::vector<std::string>& leads_to,
                                                       std::span<const network_card> cards,
                                                       bool may_be_reached);

/// Listens for launchers and hands over the lines that they send. A connection that does not speak
/// as a launcher does is closed; one of another job is refused. Thread: that of the context.
class output_collector {
public:
  using duration = std::chrono::milliseconds;

  /// At most so many connections at a time.
  static constexpr size_t connections_max = 256;

  /// How long one that has connected may take to greet.
  static constexpr duration greeting_time_max{5'000};

  /// The launcher's reactions.
  struct events {
    /// The number of a task from now on; nothing: there are too many tasks.
    std::function<std::optional<size_t>(const launch_task&)> number_of;
    std::function<void(size_t task, int descriptor, std::span<const std::string> lines)> put;
    std::function<bool()> is_full;                     ///< Whether to `put` no more until `resume`.
    std::function<void(const std::string& line)> tell; ///< Print a line of the launcher.
    std::function<void()> on_over; ///< After `finish`, when no connection is left. Called once.
  };

  /// @param job_id That senders must know; empty: they must have none.
  output_collector(boost::asio::io_context& context, std::string job_id, events events);
  output_collector(const output_collector&) = delete;
  output_collector& operator=(const output_collector&) = delete;
  ~output_collector();

  /// Begins to listen. @param may_be_reached Whether addresses beyond this machine are allowed.
  /// Errors: as `collecting_address`; unavailable for an address that cannot be listened at;
  /// resource.
  [[nodiscard]] expected<void> listen(const host_port& at, bool may_be_reached);

  /// Goes on to read after `is_full`.
  void resume();

  /// Takes no new connections, and cuts off those that are left after `grace`, with a line. One
  /// that could not send because of `is_full` is given as much time again, five times at most.
  void finish(duration grace);

private:
  class connection;

  void accept();
  void wait_for_ends(duration grace, int graces_left);
  void drop(const std::shared_ptr<connection>& which);

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  boost::asio::steady_timer deadline_;
  std::string job_id_;
  events events_;
  std::set<std::shared_ptr<connection>> connections_;
  bool is_finishing_ = false;
};

} // namespace troupe
