// SPDX-License-Identifier: Apache-2.0
// The command `troupe top`: asks a job for its state again and again, and draws it.
#include "tools/top/command.hpp"

#include "actors/observing/http_client.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/options/job_options.hpp"
#include "tools/system/terminal.hpp"
#include "tools/top/view.hpp"

#include <cerrno>
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
  host_port server;
  double period_seconds = 1;
  bool once = false;
  std::string answer; ///< To be printed instead, if not empty.
};

// Takes host and port out of the endpoint, which may be the address of the job's page.
expected<host_port> server_of(std::string_view endpoint) {
  constexpr std::string_view scheme = "http://";
  if (endpoint.starts_with("https://"))
    return fail(errc::invalid_argument,
                fmt::format("'{}': a job answers without TLS, by http://", endpoint));
  if (endpoint.starts_with(scheme)) endpoint.remove_prefix(scheme.size());
  return parse_host_port(endpoint.substr(0, endpoint.find('/')));
}

expected<top_options> parse(int argument_count, const char* const* arguments) {
  top_options options;
  std::string endpoint;
  command_options all{top_introduction, "one job is shown at a time", top_exit_codes};
  all.add("endpoint", "", "", text_value(endpoint));
  all.add("--period", "SECONDS", "how often to look",
          real_value(options.period_seconds, {0.1, 3600}, "seconds"));
  all.add_flag("--once", options.once, "print one look as plain text, as without a terminal");
  all.add_help(options.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!options.answer.empty()) return options;
  auto server = server_of(endpoint);
  if (!server) return misuse(server.error().message + "; give HOST:PORT, as in 127.0.0.1:9464");
  options.server = std::move(*server);
  return options;
}

expected<std::string> ask(const top_options& options, const std::string& path) {
  const char* token = std::getenv(metrics_token_variable);
  auto reply = http_ask({.server = options.server,
                         .path = path,
                         .authorization = token != nullptr ? fmt::format("Bearer {}", token) : "",
                         .deadline = answer_deadline});
  if (!reply) return tl::unexpected<error>(reply.error());
  if (reply->status == 200) return std::move(reply->body);
  if (reply->status == 401)
    return fail(
      errc::failed_precondition,
      fmt::format("{} answers those that know its token, which the job has printed: set {}",
                  to_string(options.server), metrics_token_variable));
  return fail(errc::not_found,
              fmt::format("{} answered with status {}", to_string(options.server), reply->status));
}

expected<top_sample> take_sample(const top_options& options) {
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

volatile std::sig_atomic_t end_requested = 0;

void request_end(int) {
  end_requested = 1;
}

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Makes the terminal a page that is drawn anew and takes single keys. Restores it in the end.
class screen {
public:
  screen() {
    has_keyboard_ = tcgetattr(STDIN_FILENO, &original_) == 0;
    auto single_keys = original_;
    single_keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    if (has_keyboard_) tcsetattr(STDIN_FILENO, TCSANOW, &single_keys);

    struct sigaction action {};

    action.sa_handler = request_end; // without SA_RESTART: the wait for a key ends
    for (int number : {SIGINT, SIGTERM, SIGHUP})
      sigaction(number, &action, nullptr);
    write_out("\x1b[?1049h\x1b[?25l");
  }

  ~screen() {
    write_out("\x1b[?25h\x1b[?1049l");
    if (has_keyboard_) tcsetattr(STDIN_FILENO, TCSANOW, &original_);
  }

  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;

  // Clears each line behind its text, not the whole page before: nothing flickers.
  void draw(const std::string& page) {
    std::string text = "\x1b[H";
    for (char letter : page)
      text += letter == '\n' ? std::string{"\x1b[K\r\n"} : std::string{letter};
    write_out(text + "\x1b[J");
  }

  /// Waits for a key or a signal that ends the command. @returns Whether one came in time.
  [[nodiscard]] bool ends_within(double seconds) const {
    auto end = steady::now() + std::chrono::duration<double>(seconds);
    pollfd keyboard{.fd = has_keyboard_ ? STDIN_FILENO : -1, .events = POLLIN};
    while (end_requested == 0) {
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
  termios original_{};
  bool has_keyboard_ = false;
};

// The last line stays free, or the terminal would scroll.
top_window window() {
  return {.width = terminal_width(STDOUT_FILENO), .height = terminal_height(STDOUT_FILENO) - 1};
}

/// Draws until the user ends it. @returns The error that ended it instead.
std::optional<error> show(const top_options& options, top_sample now) {
  screen page;
  auto sampled_at = steady::now();
  std::optional<double> steps_per_second;
  while (true) {
    page.draw(top_page(to_string(options.server), now, steps_per_second, window()));
    if (page.ends_within(options.period_seconds)) return std::nullopt;
    auto next = take_sample(options);
    if (!next) return next.error();
    auto passed = std::chrono::duration<double>(steady::now() - sampled_at).count();
    steps_per_second = (next->step - now.step) / passed;
    sampled_at = steady::now();
    now = std::move(*next);
  }
}

int run(const top_options& options) {
  auto first = take_sample(options);
  if (!first) return refuse("troupe top", first.error(), code_of(first.error()));
  if (options.once || !is_terminal(STDOUT_FILENO)) {
    write_out(top_page(to_string(options.server), *first, std::nullopt, {.width = 1000}));
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
