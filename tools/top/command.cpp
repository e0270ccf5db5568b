// SPDX-License-Identifier: Apache-2.0
// The command `troupe top`: ask, draw, wait, again.
#include "tools/top/command.hpp"

#include "actors/observing/http_client.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/options/job_options.hpp"
#include "tools/system/terminal.hpp"
#include "tools/top/view.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

namespace troupe {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds answer_deadline{3000};

constexpr const char* top_introduction
  = "Shows a running job in the terminal; 'q' or Ctrl-C ends it.\n"
    "\n"
    "Usage: troupe top [OPTIONS] HOST:PORT\n"
    "\n"
    "HOST:PORT is what the job's --metrics-port serves. Beyond loopback the job wants\n"
    "its token, in the environment: TROUPE_METRICS_TOKEN.\n";
constexpr const char* top_exit_codes
  = "\n"
    "Exit codes:\n"
    "  0      ended by 'q' or Ctrl-C, or printed one look\n"
    "  1      what answers there is no job of troupe, or wants a token\n"
    "  2      an argument is not as it must be\n"
    "  4      no job answers there, or it has ended\n";

/// The arguments of `troupe top`, as parsed.
struct top_options {
  std::string endpoint;
  std::string host;
  std::string port;
  double period_seconds = 1;
  bool once = false;
  std::string answer; ///< To be printed instead, if not empty.
};

// "host:port", "[::1]:port", and the address of the page.
bool split_endpoint(top_options& options) {
  constexpr std::string_view scheme = "http://";
  if (options.endpoint.starts_with(scheme)) options.endpoint.erase(0, scheme.size());
  if (auto path = options.endpoint.find('/'); path != std::string::npos)
    options.endpoint.resize(path);
  auto colon = options.endpoint.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  options.host = options.endpoint.substr(0, colon);
  options.port = options.endpoint.substr(colon + 1);
  if (options.host.front() == '[' && options.host.back() == ']')
    options.host = options.host.substr(1, options.host.size() - 2);
  uint16_t port = 0;
  const auto* end = options.port.data() + options.port.size();
  auto [behind, failed] = std::from_chars(options.port.data(), end, port);
  return !options.host.empty() && failed == std::errc{} && behind == end && port > 0;
}

expected<top_options> parse(int argument_count, const char* const* arguments) {
  top_options options;
  command_options all{top_introduction, "one job is shown at a time", top_exit_codes};
  all.add("endpoint", "", "", text_value(options.endpoint));
  all.add("--period", "SECONDS", "how often to look",
          real_value(options.period_seconds, {0.1, 3600}, "seconds"));
  all.add_flag("--once", options.once, "print one look as plain text, as without a terminal");
  all.add_help();
  auto answer = all.read(argument_count, arguments);
  if (!answer) return tl::unexpected<error>(answer.error());
  options.answer = *answer;
  if (!options.answer.empty() || split_endpoint(options)) return options;
  return misuse(fmt::format(
    "'{}' is no HOST:PORT with a port from 1 to 65535, as in 127.0.0.1:9464", options.endpoint));
}

expected<std::string> ask(const top_options& options, const std::string& path) {
  const char* token = std::getenv(metrics_token_variable);
  auto reply = http_ask({.host = options.host,
                         .port = options.port,
                         .path = path,
                         .authorization = token != nullptr ? fmt::format("Bearer {}", token) : "",
                         .deadline = answer_deadline});
  if (!reply) return tl::unexpected<error>(reply.error());
  if (reply->status == 200) return std::move(reply->body);
  if (reply->status == 401)
    return fail(
      errc::failed_precondition,
      fmt::format("{} answers those that know its token, which the job has printed: set {}",
                  options.endpoint, metrics_token_variable));
  return fail(errc::not_found,
              fmt::format("{} answered with status {}", options.endpoint, reply->status));
}

expected<top_sample> look(const top_options& options) {
  auto metrics = ask(options, "/metrics");
  if (!metrics) return tl::unexpected<error>(metrics.error());
  auto actors = ask(options, "/actors");
  if (!actors) return tl::unexpected<error>(actors.error());
  return read_top_sample(*metrics, *actors);
}

exit_code code_of(const error& reason) {
  auto is_gone = reason.code == errc::unavailable || reason.code == errc::deadline_exceeded;
  return is_gone ? exit_code::lost_peer : exit_code::user_error;
}

volatile std::sig_atomic_t asked_to_end = 0;

void end_soon(int) {
  asked_to_end = 1;
}

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// The terminal as a page that is drawn anew and takes single keys; as it was before, afterwards.
class screen {
public:
  screen() {
    is_keyboard_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    auto keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    if (is_keyboard_) tcsetattr(STDIN_FILENO, TCSANOW, &keys);

    struct sigaction action {};

    action.sa_handler = end_soon; // without SA_RESTART: the wait for a key ends
    for (int number : {SIGINT, SIGTERM, SIGHUP})
      sigaction(number, &action, nullptr);
    write_out("\x1b[?1049h\x1b[?25l");
  }

  ~screen() {
    write_out("\x1b[?25h\x1b[?1049l");
    if (is_keyboard_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;

  // Every line is cleared to its end, then all below: nothing flickers.
  void draw(const std::string& page) {
    std::string text = "\x1b[H";
    for (char letter : page)
      text += letter == '\n' ? std::string{"\x1b[K\r\n"} : std::string{letter};
    write_out(text + "\x1b[J");
  }

  /// Waits for a key that ends the show. @returns Whether one came in time, or a signal.
  [[nodiscard]] bool is_over_within(double seconds) const {
    auto end = steady::now() + std::chrono::duration<double>(seconds);
    pollfd keyboard{.fd = is_keyboard_ ? STDIN_FILENO : -1, .events = POLLIN};
    while (asked_to_end == 0) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady::now()).count();
      if (left <= 0) return false;
      if (poll(&keyboard, 1, static_cast<int>(left)) <= 0) continue;
      constexpr char ctrl_c = 3;
      char key = 0;
      if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == ctrl_c)
        return true;
    }
    return true;
  }

private:
  termios before_{};
  bool is_keyboard_ = false;
};

// The last line stays free, or the terminal would scroll.
top_window window() {
  return {.width = terminal_width(STDOUT_FILENO), .height = terminal_height(STDOUT_FILENO) - 1};
}

/// Draws until the user ends it. @returns Why it ended, if the user did not.
std::optional<error> show(const top_options& options, top_sample now) {
  screen page;
  auto seen = steady::now();
  std::optional<double> speed;
  while (true) {
    page.draw(top_page(options.endpoint, now, speed, window()));
    if (page.is_over_within(options.period_seconds)) return std::nullopt;
    auto next = look(options);
    if (!next) return next.error();
    auto passed = std::chrono::duration<double>(steady::now() - seen).count();
    speed = (next->step - now.step) / passed;
    seen = steady::now();
    now = std::move(*next);
  }
}

int run(const top_options& options) {
  auto first = look(options);
  if (!first) return refuse("troupe top", first.error(), code_of(first.error()));
  if (options.once || !is_terminal(STDOUT_FILENO)) {
    write_out(top_page(options.endpoint, *first, std::nullopt, {.width = 1000}));
    return static_cast<int>(exit_code::finished);
  }
  if (auto ended = show(options, std::move(*first)))
    return refuse("troupe top",
                  {ended->code, "the job is over, or out of reach: " + ended->message},
                  code_of(*ended));
  return static_cast<int>(exit_code::finished);
}

} // namespace

int top_command_main(int argument_count, const char* const* arguments) {
  auto options = parse(argument_count, arguments);
  if (auto code = answered("troupe top", options)) return *code;
  return run(*options);
}

} // namespace troupe
