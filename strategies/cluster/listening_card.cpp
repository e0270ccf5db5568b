// SPDX-License-Identifier: Apache-2.0
// Compares a task's address with the cards of its machine.
#include "strategies/cluster/listening_card.hpp"

#include "actors/net/host_port.hpp"
#include "actors/net/sockets/name_lookup.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

expected<host_port> own_place(const resolved_cluster& cluster) {
  return parse_host_port(cluster.self().address, 0);
}

// A task without an address may be anywhere.
bool has_tasks_elsewhere(const resolved_cluster& cluster, const std::string& host) {
  return std::ranges::any_of(cluster.tasks, [&](const cluster_task& task) {
    auto place = parse_host_port(task.address, 0);
    return task.type != "evaluator" && (!place || place->host != host);
  });
}

std::string known_cards(const machine_networks& machine) {
  std::string all;
  for (const auto& card : machine.cards)
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", card.address, card.name);
  return all;
}

} // namespace

expected<machine_networks> own_networks(std::chrono::milliseconds timeout,
                                        const std::stop_token& stop) {
  auto cards = network_cards();
  if (!cards) return tl::unexpected<error>(cards.error());
  auto addresses_of = [timeout, stop](const std::string& host) {
    return look_up(host, "0", timeout, stop).map([](const endpoint_list& found) {
      auto addresses
        = mapped(found, [](const auto& endpoint) { return endpoint.address().to_string(); });
      std::stable_partition(addresses.begin(), addresses.end(), [](const auto& address) {
        return address.find(':') == std::string::npos; // IPv4 first
      });
      return addresses;
    });
  };
  return machine_networks{std::move(*cards), addresses_of};
}

std::string wanted_card(const resolved_cluster& cluster, const std::string& interface,
                        const environment_reader& environment) {
  auto own = own_place(cluster);
  if (!interface.empty() || !own || is_loopback(own->host)) return interface;
  return environment("NCCL_SOCKET_IFNAME").value_or("");
}

expected<network_card> listening_card(const resolved_cluster& cluster, const std::string& wanted,
                                      const machine_networks& machine) {
  if (!wanted.empty()) return choose_network_card(machine.cards, wanted);
  auto own = own_place(cluster);
  if (!own) return tl::unexpected<error>(own.error());
  auto addresses = machine.addresses_of(own->host);
  if (!addresses) return tl::unexpected<error>(addresses.error());
  if (std::ranges::all_of(*addresses, is_loopback)) {
    auto is_for_others = !is_loopback(own->host) && has_tasks_elsewhere(cluster, own->host);
    if (is_for_others) return choose_network_card(machine.cards, "");
    return network_card{"lo", addresses->empty() ? own->host : addresses->front()};
  }
  for (const auto& address : *addresses) {
    auto card = std::ranges::find(machine.cards, address, &network_card::address);
    if (card != machine.cards.end() && !is_loopback(address)) return *card;
  }
  return fail(errc::invalid_argument,
              fmt::format("{} is at {}, which is no address of this machine; it has {}. If the "
                          "others reach it nevertheless, name a card (--interface)",
                          to_string(cluster.self()), cluster.self().address, known_cards(machine)));
}

std::string listening_note(const resolved_cluster& cluster, const std::string& wanted,
                           const network_card& card) {
  auto own = own_place(cluster);
  if (wanted.empty() || !own || is_loopback(own->host) == is_loopback(card.address)) return {};
  if (!is_loopback(own->host) && !has_tasks_elsewhere(cluster, own->host)) return {};
  return fmt::format("'{}' means card {} ({}), but the others connect to {}: they will not "
                     "reach this process there",
                     wanted, card.name, card.address, cluster.self().address);
}

} // namespace troupe
