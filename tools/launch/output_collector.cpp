// SPDX-License-Identifier: Apache-2.0
// Accepts connections, checks their greetings and reads their lines.
#include "tools/launch/output_collector.hpp"

#include "actors/net/close_on_exec.hpp"
#include "messages/errors/printable.hpp"
#include "messages/mapped.hpp"

#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility> // before Boost.Asio 1.74, which uses std::exchange without it
#include <vector>

namespace troupe {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds accept_pause{100};

// How often the grace time may pass for a launcher that was kept from sending.
constexpr int graces_max = 6;

std::string name_of(const tcp::socket& socket) {
  error_code failed;
  auto peer = socket.remote_endpoint(failed);
  return failed ? "a launcher" : to_string(host_port{peer.address().to_string(), peer.port()});
}

// A line for the terminal, with its end. A carriage return is kept as part of that: elsewhere it
// would let the sender write over the name of its task.
std::string printed(std::string line) {
  std::string_view end = "\n";
  if (line.ends_with('\r')) {
    line.pop_back();
    end = "\r\n";
  }
  return printable(std::move(line), "\t").append(end);
}

} // namespace

/// The connection with one launcher. Its pending operations keep it alive.
class output_collector::connection : public std::enable_shared_from_this<connection> {
public:
  connection(tcp::socket socket, output_collector& collector)
    : collector_(collector), socket_(std::move(socket)), deadline_(socket_.get_executor()),
      lines_(output_line_bytes_max) {}

  void start() {
    error_code ignored;
    socket_.set_option(asio::socket_base::keep_alive{true}, ignored);
    deadline_.expires_after(greeting_time_max);
    deadline_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled && !self->task_) self->end();
    });
    read();
  }

  void resume() {
    if (std::exchange(is_paused_, false)) read();
  }

  // Whether this launcher has kept the other one from sending since the last call.
  bool was_held_up() { return std::exchange(was_held_up_, is_paused_); }

  void cut_off() {
    if (task_)
      tell(
        fmt::format("cuts off the launcher of {} at {}, which did not end in time; what {} still "
                    "writes is lost",
                    name_, name_of(socket_), name_));
    end();
  }

  void end() {
    error_code ignored;
    deadline_.cancel();
    socket_.close(ignored);
    collector_.drop(shared_from_this());
  }

private:
  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](error_code failed, size_t count) {
                              if (!self->socket_.is_open()) return;
                              failed ? self->on_end(failed) : self->on_read(count);
                            });
  }

  void on_read(size_t count) {
    put(lines_.add({buffer_.data(), count}));
    if (!socket_.is_open() || is_refused_) return;
    if (!collector_.events_.is_full()) return read();
    is_paused_ = true;
    was_held_up_ = true;
  }

  // A launcher closes when its task is over, behind a whole line.
  void on_end(error_code failed) {
    auto is_cut = task_ && (failed != asio::error::eof || !lines_.rest().empty());
    if (is_cut)
      tell(fmt::format("lost the launcher of {} at {}: {}", name_, name_of(socket_),
                       failed.message()));
    end();
  }

  void put(const std::vector<std::string>& received) {
    for (const auto& line : received) {
      auto text = std::string_view{line}.substr(0, line.size() - 1);
      auto was_greeted = task_.has_value();
      if (line.ends_with('\n') && (was_greeted ? take(text) : greet(text))) continue;
      if (was_greeted)
        tell(fmt::format("the launcher of {} at {} does not speak as one does: its connection is "
                         "closed",
                         name_, name_of(socket_)));
      if (socket_.is_open() && !is_refused_) end();
      return;
    }
  }

  bool take(std::string_view text) {
    auto line = parse_output_line(text);
    if (!line) return false;
    if (line->descriptor == 0) {
      tell(dropped_text(name_, line->dropped));
      return true;
    }
    const std::array lines{printed(std::move(line->text))};
    collector_.events_.put(*task_, line->descriptor, lines);
    return true;
  }

  bool greet(std::string_view text) {
    auto greeting = text.size() < output_greeting_bytes_max
                      ? parse_output_greeting(text)
                      : fail(errc::invalid_argument, "too long");
    if (!greeting) return false;
    name_ = greeting->task.name();
    if (greeting->job_id != collector_.job_id_)
      return refuse(
        fmt::format("{} is of another job: give both launchers the same --job-id", name_));
    task_ = collector_.events_.number_of(greeting->task);
    if (!task_) return refuse("it collects from too many tasks already");
    deadline_.cancel();
    answer_ = "ok\n";
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code, size_t) {});
    return true;
  }

  bool refuse(const std::string& reason) {
    is_refused_ = true;
    tell(fmt::format("refuses the launcher at {}: {}", name_of(socket_), reason));
    answer_ = fmt::format("refused: {}\n", reason);
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code, size_t) { self->end(); });
    return false;
  }

  void tell(const std::string& line) { collector_.events_.tell(line); }

  output_collector& collector_;
  tcp::socket socket_;
  asio::steady_timer deadline_; // of the greeting
  line_splitter lines_;
  std::array<char, 16384> buffer_{};
  std::string answer_;
  std::optional<size_t> task_; // once it has greeted
  std::string name_;
  bool is_paused_ = false;
  bool was_held_up_ = false;
  bool is_refused_ = false;
};

expected<std::string> collecting_address(const host_port& at,
                                         const std::vector<std::string>& resolved,
                                         std::span<const network_card> cards, bool may_be_reached) {
  if (is_loopback(at.host)) return resolved.front();
  if (!may_be_reached)
    return fail(
      errc::invalid_argument,
      fmt::format("--collect-output would listen at {}, where every machine can write to this "
                  "terminal; allow it with --insecure-network",
                  to_string(at)));
  if (!std::ranges::all_of(resolved, is_loopback)) return resolved.front();
  auto card = choose_network_card(cards, "");
  if (card) return card->address;
  return fail(card.error().code, fmt::format("--collect-output: '{}' leads to loopback here, and "
                                             "there is {}; give an address of this machine",
                                             at.host, card.error().message));
}

output_collector::output_collector(asio::io_context& context, std::string job_id, events events)
  : acceptor_(context), retry_(context), deadline_(context), job_id_(std::move(job_id)),
    events_(std::move(events)) {}

output_collector::~output_collector() = default;

expected<void> output_collector::listen(const host_port& at, bool may_be_reached) {
  error_code failed;
  tcp::resolver resolver{acceptor_.get_executor()};
  auto found = resolver.resolve(at.host, std::to_string(at.port), failed);
  if (failed || found.empty())
    return fail(errc::unavailable, fmt::format("--collect-output: host '{}' is not known here: {}",
                                               at.host, failed.message()));
  auto resolved
    = mapped(found, [](const auto& entry) { return entry.endpoint().address().to_string(); });
  auto cards = network_cards();
  if (!cards) return tl::unexpected<error>(cards.error());
  auto address = collecting_address(at, resolved, *cards, may_be_reached);
  if (!address) return tl::unexpected<error>(address.error());
  const tcp::endpoint endpoint{asio::ip::make_address(*address), at.port};
  acceptor_.open(endpoint.protocol(), failed);
  if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) close_on_exec(acceptor_.native_handle());
  if (!failed) acceptor_.bind(endpoint, failed);
  if (!failed) acceptor_.listen(tcp::acceptor::max_listen_connections, failed);
  if (failed)
    return fail(errc::unavailable,
                fmt::format("--collect-output: cannot listen at {}: {}; give a port that is free, "
                            "at an address of this machine",
                            to_string(at), failed.message()));
  accept();
  return {};
}

void output_collector::accept() {
  acceptor_.async_accept([this](error_code failed, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!failed && connections_.size() < connections_max) {
      close_on_exec(socket.native_handle());
      auto accepted = std::make_shared<connection>(std::move(socket), *this);
      connections_.insert(accepted);
      accepted->start();
    }
    if (!failed) return accept();
    // Without file descriptors accepting fails at once, again and again.
    retry_.expires_after(accept_pause);
    retry_.async_wait([this](error_code cancelled) {
      if (!cancelled && acceptor_.is_open()) accept();
    });
  });
}

void output_collector::resume() {
  for (const auto& each : std::set{connections_})
    each->resume();
}

void output_collector::drop(const std::shared_ptr<connection>& ended) {
  if (connections_.erase(ended) > 0 && connections_.empty() && is_finishing_) {
    deadline_.cancel();
    events_.on_over();
  }
}

void output_collector::finish(duration grace) {
  is_finishing_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  if (connections_.empty()) return events_.on_over();
  for (const auto& each : connections_)
    static_cast<void>(each->was_held_up()); // only what happens from now on counts
  wait_for_ends(grace, graces_max);
}

void output_collector::wait_for_ends(duration grace, int graces_left) {
  deadline_.expires_after(grace);
  deadline_.async_wait([this, grace, graces_left](error_code cancelled) {
    if (cancelled) return;
    for (const auto& each : std::set{connections_})
      if (!each->was_held_up() || graces_left == 1) each->cut_off();
    if (!connections_.empty()) wait_for_ends(grace, graces_left - 1);
  });
}

} // namespace troupe
