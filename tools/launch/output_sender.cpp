// SPDX-License-Identifier: Apache-2.0
// Dials the other launcher, greets it and sends lines.
#include "tools/launch/output_sender.hpp"

#include "actors/net/close_on_exec.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/printable.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <fmt/format.h>
#include <utility> // before Boost.Asio 1.74, which uses std::exchange without it

namespace troupe {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds redial_pause{500};
constexpr std::chrono::seconds silence_max{5};
constexpr std::chrono::seconds answer_time_max{10};

// Bytes that count for each line beside its letters, so that empty lines are limited, too.
constexpr size_t sent_line_overhead_bytes = 64;

size_t size_of(const output_line& line) {
  return line.text.size() + sent_line_overhead_bytes;
}

} // namespace

output_sender::output_sender(asio::io_context& context, host_port to, output_greeting greeting,
                             events events)
  : resolver_(context), socket_(context), retry_(context), deadline_(context), to_(std::move(to)),
    greeting_(std::move(greeting)), events_(std::move(events)) {}

// ---- dialing ----

void output_sender::start() {
  deadline_.expires_after(dial_time_max);
  deadline_.async_wait([this](error_code cancelled) {
    if (!cancelled && phase_ == phase::dialing) give_up(dial_failure_);
  });
  resolve();
}

// A query to a name server cannot be cancelled: the end of this process would wait for it.
void output_sender::resolve() {
  tell_if_silent();
  auto on_resolved = [this](error_code failed, tcp::resolver::results_type found) {
    if (phase_ != phase::dialing) return;
    if (failed) return dial_again(failed.message());
    found_ = std::move(found);
    dial();
  };
  resolver_.async_resolve(to_.host, std::to_string(to_.port), on_resolved);
}

void output_sender::dial() {
  tell_if_silent();
  asio::async_connect(socket_, found_, [this](error_code failed, const tcp::endpoint&) {
    if (phase_ != phase::dialing) return;
    failed ? dial_again(failed.message()) : greet();
  });
}

// Where packets are dropped, the kernel tries for minutes before it reports a failure.
void output_sender::tell_if_silent() {
  dial_failure_ = "it does not answer";
  retry_.expires_after(silence_max);
  retry_.async_wait([this](error_code cancelled) {
    if (!cancelled && phase_ == phase::dialing) tell_once();
  });
}

void output_sender::tell_once() {
  if (!std::exchange(has_told_failure_, true))
    events_.tell(
      fmt::format("no launcher at {} yet ({}); lines wait for it", to_string(to_), dial_failure_));
}

void output_sender::dial_again(std::string reason) {
  dial_failure_ = std::move(reason);
  if (!is_finishing_) found_ = {}; // the host may have another address by now
  tell_once();
  retry_.expires_after(redial_pause);
  retry_.async_wait([this](error_code cancelled) {
    if (cancelled || phase_ != phase::dialing) return;
    found_.empty() ? resolve() : dial();
  });
}

// ---- greeting ----

void output_sender::greet() {
  phase_ = phase::greeting;
  error_code ignored;
  close_on_exec(socket_.native_handle());
  socket_.set_option(asio::socket_base::keep_alive{true}, ignored);
  retry_.cancel();
  if (!is_finishing_) {
    deadline_.expires_after(answer_time_max);
    deadline_.async_wait([this](error_code cancelled) {
      if (!cancelled && phase_ == phase::greeting) give_up("it does not answer");
    });
  }
  bytes_under_way_ = written(greeting_);
  asio::async_write(socket_, asio::buffer(bytes_under_way_), [this](error_code failed, size_t) {
    if (phase_ != phase::greeting) return;
    failed ? give_up(failed.message()) : read_answer();
  });
}

void output_sender::read_answer() {
  asio::async_read_until(socket_, asio::dynamic_buffer(answer_, output_greeting_bytes_max), '\n',
                         [this](error_code failed, size_t) {
                           if (phase_ != phase::greeting) return;
                           failed ? give_up(failed.message()) : on_answer();
                         });
}

void output_sender::on_answer() {
  auto answer = printable(answer_.substr(0, answer_.find('\n')));
  if (answer != "ok") return give_up(answer);
  if (!is_finishing_) deadline_.cancel();
  phase_ = phase::sending;
  watch();
  send();
}

// The other launcher sends nothing more; but a read fails at once when that launcher is gone.
void output_sender::watch() {
  socket_.async_read_some(asio::buffer(ignored_bytes_), [this](error_code failed, size_t) {
    if (phase_ != phase::sending) return;
    failed ? give_up(failed == asio::error::eof ? "it has ended" : failed.message()) : watch();
  });
}

// ---- sending ----

void output_sender::put(int descriptor, std::span<const std::string> lines) {
  TROUPE_ASSERT(is_open(), greeting_.task.name());
  for (const auto& text : lines) {
    output_line line{.descriptor = descriptor, .text = text.substr(0, text.find('\n'))};
    if (waiting_bytes_ + size_of(line) > waiting_bytes_max) {
      ++dropped_;
      continue;
    }
    if (dropped_ > 0) waiting_.push_back({.dropped = std::exchange(dropped_, 0)});
    waiting_bytes_ += size_of(line);
    waiting_.push_back(std::move(line));
  }
  send();
}

void output_sender::send() {
  if (phase_ != phase::sending || !under_way_.empty()) return;
  if (waiting_.empty() && dropped_ > 0) waiting_.push_back({.dropped = std::exchange(dropped_, 0)});
  if (waiting_.empty()) {
    if (is_finishing_) close();
    return;
  }
  under_way_ = std::exchange(waiting_, {});
  bytes_under_way_.clear();
  for (const auto& line : under_way_)
    bytes_under_way_ += written(line);
  asio::async_write(socket_, asio::buffer(bytes_under_way_), [this](error_code failed, size_t) {
    if (phase_ != phase::sending) return;
    if (failed) return give_up(failed.message());
    for (const auto& line : std::exchange(under_way_, {}))
      if (line.descriptor != 0) waiting_bytes_ -= size_of(line);
    send();
  });
}

// ---- ends ----

void output_sender::finish(duration grace) {
  if (!is_open() || std::exchange(is_finishing_, true)) return;
  deadline_.expires_after(grace);
  deadline_.async_wait([this](error_code cancelled) {
    if (!cancelled && is_open()) give_up("the task is over, and this could not be sent in time");
  });
  send();
}

void output_sender::close() {
  phase_ = phase::over;
  error_code ignored;
  resolver_.cancel();
  retry_.cancel();
  deadline_.cancel();
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
  events_.on_over();
}

void output_sender::give_up(const std::string& reason) {
  phase_ = phase::over; // first: the text may come back as a line
  events_.tell(
    fmt::format("no connection to the launcher at {} ({}); what {} writes is printed here",
                to_string(to_), reason, greeting_.task.name()));
  for (const auto* lines : {&under_way_, &waiting_})
    for (const auto& line : *lines) {
      if (line.descriptor != 0)
        events_.give_back(line.descriptor, line.text);
      else
        events_.tell(dropped_text(greeting_.task.name(), line.dropped));
    }
  if (dropped_ > 0) events_.tell(dropped_text(greeting_.task.name(), dropped_));
  waiting_.clear(); // those under way are being written until the socket is closed
  close();
}

} // namespace troupe
