// SPDX-License-Identifier: Apache-2.0
// Starts a job's server, and gives it a token.
#include "tools/job/job_service.hpp"

#include "actors/net/host_port.hpp"
#include "actors/observing/http_token.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/cluster/network_card.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

expected<std::string> token_for(const std::string& address, const environment_reader& environment) {
  if (auto token = environment(metrics_token_variable); token && !token->empty()) {
    if (is_token(*token)) return *token;
    return fail(errc::invalid_argument,
                fmt::format("{} must be 16 to 128 letters, digits, '-', '.', '_' or '~'; leave it "
                            "out to have one drawn",
                            metrics_token_variable));
  }
  return is_loopback_address(address) ? std::string{} : draw_token();
}

// Where clients connect to. A server that listens at all addresses of this machine names none.
std::string address_for_clients(const std::string& endpoint) {
  auto at = parse_host_port(endpoint);
  if (!at || (at->host != "0.0.0.0" && at->host != "::")) return endpoint;
  auto card
    = network_cards().and_then([](const auto& cards) { return choose_network_card(cards, ""); });
  return to_string(host_port{card ? card->address : "127.0.0.1", at->port});
}

} // namespace

std::string job_service::text() const {
  const auto endpoint = address_for_clients(server->endpoint());
  return fmt::format("page      http://{0}/{1}\n"
                     "metrics   http://{0}/metrics, or: {2}troupe top {0}\n",
                     endpoint, token.empty() ? "" : "?token=" + token,
                     token.empty() ? "" : fmt::format("{}=... ", metrics_token_variable));
}

expected<job_service> serve_job(const job_options& options, const quality_measure& measure,
                                const environment_reader& environment) {
  auto token = token_for(options.metrics_address, environment);
  if (!token) return tl::unexpected<error>(token.error());
  auto page = std::make_shared<live_page>(measure.column, options);
  try {
    auto server = std::make_shared<metrics_server_hook>(
      http_server_options{.address = options.metrics_address,
                          .port = static_cast<uint16_t>(*options.metrics_port),
                          .token = *token},
      [page](const std::string& path) { return page->answer(path); }, page->news());
    return job_service{std::move(page), std::move(server), std::move(*token)};
  } catch (const failure& failed) {
    return fail(errc::resource,
                fmt::format("--metrics-port, --metrics-address: {}", failed.reason().message));
  }
}

} // namespace troupe
