// SPDX-License-Identifier: Apache-2.0
// Six options as CLI11 takes them.
#include "tools/server_arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr double start_deadline_max = 86'400;

expected<job_time> start_deadline_of(const std::string& text) {
  double given = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), given);
  if (failed != std::errc{} || end != text.data() + text.size() || !(given > 0)
      || given > start_deadline_max)
    return fail(errc::invalid_argument,
                fmt::format("--start-deadline must be seconds, above 0 and up to {}, not '{}'",
                            start_deadline_max, text));
  return std::chrono::duration_cast<job_time>(std::chrono::duration<double>{given});
}

} // namespace

void add_server_options(CLI::App& app, server_arguments& raw) {
  app.add_option("--job-id", raw.job)->take_last();
  app.add_option("--tls-ca", raw.tls.authority)->take_last();
  app.add_option("--tls-certificate", raw.tls.certificate)->take_last();
  app.add_option("--tls-key", raw.tls.key)->take_last();
  app.add_flag("--insecure-network", raw.insecure_network);
  app.add_option("--start-deadline", raw.start_deadline)->take_last();
}

expected<server_options> settled(const server_arguments& raw) {
  server_options options{.job = raw.job, .insecure_network = raw.insecure_network};
  auto given = !raw.tls.authority.empty() + !raw.tls.certificate.empty() + !raw.tls.key.empty();
  if (given != 0 && given != 3)
    return fail(
      errc::invalid_argument,
      "--tls-ca, --tls-certificate and --tls-key belong together: give all three, or none");
  if (given == 3) options.tls = raw.tls;
  if (raw.start_deadline.empty()) return options;
  return start_deadline_of(raw.start_deadline).map([&](job_time deadline) {
    options.start_deadline = deadline;
    return options;
  });
}

} // namespace troupe
