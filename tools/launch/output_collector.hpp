// SPDX-License-Identifier: Apache-2.0
// Receives lines of tasks that other launchers have started.
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

/// Chooses the address to listen at. Debian resolves a machine's own name to 127.0.1.1, which no
/// other launcher reaches: for such a name it is the address of the card that `choose_network_card`
/// takes for "".
/// @param resolved The addresses of the host as this machine resolves it, at least one.
/// @param cards The network cards of this machine.
/// @param may_be_reached Whether addresses that other machines reach are allowed.
/// Errors: invalid_argument for an address that must not be reached, not_found for no such card.
[[nodiscard]] expected<std::string> collecting_address(const host_port& at,
                                                       const std::vector<std::string>& resolved,
                                                       std::span<const network_card> cards,
                                                       bool may_be_reached);

/// Listens for launchers and hands over the lines that they send. A connection with other bytes is
/// closed; a launcher of another job is refused. Thread: that of the context.
class output_collector {
public:
  using duration = std::chrono::milliseconds;

  /// The most connections at a time.
  static constexpr size_t connections_max = 256;

  /// The longest time between a connection and its greeting.
  static constexpr duration greeting_time_max{5'000};

  /// The launcher's reactions.
  struct events {
    /// Gives the task a number; nothing: there are too many tasks.
    std::function<std::optional<size_t>(const launch_task&)> number_of;
    std::function<void(size_t task, int descriptor, std::span<const std::string> lines)> put;
    std::function<bool()> is_full;                     ///< Whether to `put` no more until `resume`.
    std::function<void(const std::string& line)> tell; ///< Prints a line of the launcher.
    std::function<void()> on_over; ///< No connection is left after `finish`. Called once.
  };

  /// @param job_id The id that senders must have; empty: they must have none.
  output_collector(boost::asio::io_context& context, std::string job_id, events events);
  output_collector(const output_collector&) = delete;
  output_collector& operator=(const output_collector&) = delete;
  ~output_collector();

  /// Begins to listen. @param may_be_reached As for `collecting_address`.
  /// Errors: as `collecting_address`; unavailable for an address that cannot be listened at;
  /// resource.
  [[nodiscard]] expected<void> listen(const host_port& at, bool may_be_reached);

  /// Reads again after `is_full`.
  void resume();

  /// Accepts no more connections, and cuts off those that are left after `grace`, with a line. A
  /// connection that `is_full` kept from sending gets as much time again, at most five times.
  void finish(duration grace);

private:
  class connection;

  void accept();
  void wait_for_ends(duration grace, int graces_left);
  void drop(const std::shared_ptr<connection>& ended);

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  boost::asio::steady_timer deadline_;
  std::string job_id_;
  events events_;
  std::set<std::shared_ptr<connection>> connections_;
  bool is_finishing_ = false;
};

} // namespace troupe
