// SPDX-License-Identifier: Apache-2.0
// Sends signals when times are over.
#include "tools/launch/ending.hpp"

#include <algorithm>
#include <csignal>

namespace troupe {

namespace {

using boost::system::error_code;
using steady = std::chrono::steady_clock;

// A terminal and a launcher that passes signals on both send the same Ctrl-C.
constexpr auto signal_echo_time = std::chrono::milliseconds{500};

} // namespace

launch_ending::launch_ending(boost::asio::io_context& context, launch_outcome& outcome,
                             task_group& tasks)
  : grace_end_(context), outcome_(outcome), tasks_(tasks) {}

void launch_ending::begin(int number) {
  phase_.enter(phase::ending);
  began_ = steady::now();
  tasks_.cancel_restarts();
  tasks_.signal_all(number);
  wait_for_grace();
}

void launch_ending::begin_later() {
  if (has_begun()) return;
  phase_.enter(phase::serving);
  wait_for_grace();
}

void launch_ending::wait_for_grace() {
  grace_end_.expires_after(outcome_.grace());
  grace_end_.async_wait([this, waits_in = phase{phase_}](error_code cancelled) {
    if (!cancelled && phase_ == waits_in) on_grace_over();
  });
}

void launch_ending::on_grace_over() {
  if (phase_ == phase::ending) return kill();
  outcome_.on_servers_told();
  begin(SIGTERM);
}

void launch_ending::insist() {
  if (phase_ == phase::ending && steady::now() - began_ > signal_echo_time) kill();
}

void launch_ending::kill() {
  phase_.enter(phase::killing);
  outcome_.on_kill();
  tasks_.kill(limit());
}

void launch_ending::on_restart() {
  grace_end_.cancel();
  phase_.enter(phase::running);
}

void launch_ending::finish() {
  grace_end_.cancel();
  phase_.enter(phase::over);
}

output_limit launch_ending::limit() const {
  if (phase_ == phase::killing) return {.time = launch_grace_min, .waits_for_outlet = false};
  return {.time = std::max(launch_grace_min, outcome_.grace()), .waits_for_outlet = true};
}

} // namespace troupe
