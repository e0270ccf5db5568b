// SPDX-License-Identifier: Apache-2.0
// Seven options as CLI11 takes them.
#include "tools/options/server_arguments.hpp"

#include "tools/options/arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr double start_deadline_max = 86'400;
constexpr double window_mib_max = 1 << 20;

expected<double> amount_of(std::string_view option, const std::string& text, std::string_view what,
                           double max) {
  auto given = number_of<double>(text);
  if (!given || !(*given > 0) || *given > max)
    return misuse(
      fmt::format("--{} must be {}, above 0 and up to {}, not '{}'", option, what, max, text));
  return *given;
}

} // namespace

void add_server_options(CLI::App& app, server_arguments& raw) {
  app.add_option("--job-id", raw.job)->take_last();
  app.add_option("--tls-ca", raw.tls.authority)->take_last();
  app.add_option("--tls-certificate", raw.tls.certificate)->take_last();
  app.add_option("--tls-key", raw.tls.key)->take_last();
  app.add_flag("--insecure-network", raw.insecure_network);
  app.add_option("--start-deadline", raw.start_deadline)->take_last();
  app.add_option("--window", raw.window)->take_last();
}

expected<server_options> settled(const server_arguments& raw) {
  server_options options{.job = raw.job, .insecure_network = raw.insecure_network};
  auto given = !raw.tls.authority.empty() + !raw.tls.certificate.empty() + !raw.tls.key.empty();
  if (given != 0 && given != 3)
    return fail(
      errc::invalid_argument,
      "--tls-ca, --tls-certificate and --tls-key belong together: give all three, or none");
  if (given == 3) options.tls = raw.tls;
  if (!raw.start_deadline.empty()) {
    auto given = amount_of("start-deadline", raw.start_deadline, "seconds", start_deadline_max);
    if (!given) return tl::unexpected<error>(given.error());
    options.start_deadline
      = std::chrono::duration_cast<job_time>(std::chrono::duration<double>{*given});
  }
  if (!raw.window.empty()) {
    auto given = amount_of("window", raw.window, "MiB", window_mib_max);
    if (!given) return tl::unexpected<error>(given.error());
    options.window_bytes = static_cast<uint64_t>(std::ceil(*given * (1 << 20)));
  }
  return options;
}

} // namespace troupe
