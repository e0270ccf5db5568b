// SPDX-License-Identifier: Apache-2.0
// Sends a task's output to the launcher that collects it.
#pragma once

#include "actors/net/host_port.hpp"
#include "tools/launch/output_protocol.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A task must not wait for a terminal of another machine. So lines wait in memory while the other
/// launcher is dialed or slow. Lines beyond `waiting_bytes_max` are dropped and counted, and the
/// count is sent in their place. When the connection fails, the lines that wait are given back, and
/// the sender takes no more. Thread: that of the context.
class output_sender {
public:
  using duration = std::chrono::milliseconds;

  /// Bytes that may wait.
  static constexpr size_t waiting_bytes_max = size_t{1} << 20;

  /// How long the other launcher is dialed: as long as the tasks of a job wait for each other.
  static constexpr duration dial_time_max{60'000};

  /// The launcher's reactions.
  struct events {
    std::function<void(const std::string& line)> tell; ///< Prints a line of the launcher.
    /// Prints a line of the task that was not sent, or not to its end.
    std::function<void(int descriptor, const std::string& text)> give_back;
    std::function<void()> on_over; ///< All lines are sent, or given back. Called once.
  };

  /// @param to Where the other launcher listens. @param greeting The first line to send.
  output_sender(boost::asio::io_context& context, host_port to, output_greeting greeting,
                events events);
  output_sender(const output_sender&) = delete;
  output_sender& operator=(const output_sender&) = delete;

  /// Begins to dial, and dials again after each failure.
  void start();

  /// Whether the sender takes lines; if not, the caller prints them.
  [[nodiscard]] bool is_open() const { return phase_ != phase::over; }

  /// Takes lines of the task. @pre is_open()
  void put(int descriptor, std::span<const std::string> lines);

  /// The task is over: lines that wait are sent within `grace`, or given back.
  void finish(duration grace);

private:
  enum class phase : uint8_t { dialing, greeting, sending, over };

  void resolve();
  void dial();
  void dial_again(std::string reason);
  void tell_if_silent();
  void tell_once();
  void greet();
  void read_answer();
  void on_answer();
  void watch();
  void send();
  void close();
  void give_up(const std::string& reason);

  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::tcp::resolver::results_type found_;
  boost::asio::steady_timer retry_;    // while dialing: the next try, or its timeout
  boost::asio::steady_timer deadline_; // of dialing, of an answer, of the end
  host_port to_;
  output_greeting greeting_;
  events events_;
  phase phase_ = phase::dialing;
  std::string dial_failure_;
  bool has_told_failure_ = false;
  std::string answer_;
  std::array<char, 64> ignored_bytes_{};
  std::vector<output_line> waiting_;
  std::vector<output_line> under_way_;
  std::string bytes_under_way_;
  size_t waiting_bytes_ = 0; // with those under way
  uint64_t dropped_ = 0;     // since the last line that was taken
  bool is_finishing_ = false;
};

} // namespace troupe
