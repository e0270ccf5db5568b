// SPDX-License-Identifier: Apache-2.0
// Lists the cards of this machine, and chooses one by its name.
#include "strategies/cluster/network_card.hpp"

#include "actors/net/host_port.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <system_error>

namespace troupe {

namespace {

using card_list = std::vector<network_card>;

/// The wanted cards, taken apart.
struct card_pattern {
  bool excludes = false;
  bool is_exact = false;
  std::vector<std::string_view> words;

  [[nodiscard]] bool fits(std::string_view word, const std::string& name) const {
    return is_exact ? name == word : name.starts_with(word);
  }

  [[nodiscard]] bool fits_any(const std::string& name) const {
    return std::ranges::any_of(words, [&](auto word) { return fits(word, name); });
  }
};

card_pattern parsed(std::string_view wanted) {
  card_pattern pattern;
  pattern.excludes = wanted.starts_with('^');
  if (pattern.excludes) wanted.remove_prefix(1);
  pattern.is_exact = wanted.starts_with('=');
  if (pattern.is_exact) wanted.remove_prefix(1);
  while (!wanted.empty()) {
    auto word = wanted.substr(0, wanted.find(','));
    wanted.remove_prefix(std::min(word.size() + 1, wanted.size()));
    if (!word.empty()) pattern.words.push_back(word);
  }
  return pattern;
}

bool is_virtual(const network_card& card) {
  constexpr std::array<std::string_view, 4> beginnings{"docker", "veth", "virbr", "br-"};
  return std::ranges::any_of(beginnings,
                             [&](auto beginning) { return card.name.starts_with(beginning); });
}

// Cards of the first word that fits any.
card_list named(std::span<const network_card> cards, const card_pattern& pattern) {
  card_list found;
  for (auto word : pattern.words) {
    std::ranges::copy_if(cards, std::back_inserter(found),
                         [&](const auto& card) { return pattern.fits(word, card.name); });
    if (!found.empty()) break;
  }
  return found;
}

card_list not_excluded(std::span<const network_card> cards, const card_pattern& pattern) {
  card_list found;
  std::ranges::copy_if(cards, std::back_inserter(found), [&](const auto& card) {
    return card.name != "lo" && !is_loopback(card.address) && !pattern.fits_any(card.name);
  });
  if (pattern.words.empty() && !std::ranges::all_of(found, is_virtual))
    std::erase_if(found, is_virtual);
  return found;
}

std::string named_cards(std::span<const network_card> cards) {
  auto words = mapped(
    cards, [](const auto& card) { return fmt::format("{} ({})", card.name, card.address); });
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes
    = address.sa_family == AF_INET
        ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
        : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  inet_ntop(address.sa_family, bytes, text.data(), text.size());
  return text.data();
}

// An address that others can dial without saying through which card: no link-local one.
bool is_usable(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  if (entry.ifa_addr->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

} // namespace

expected<network_card> choose_network_card(std::span<const network_card> cards,
                                           std::string_view wanted) {
  auto pattern = parsed(wanted);
  auto is_named = !pattern.excludes && !pattern.words.empty();
  auto found = is_named ? named(cards, pattern) : not_excluded(cards, pattern);
  if (found.empty()) {
    auto problem = wanted.empty() ? "no network card but the loopback one, which must be named (lo)"
                                  : fmt::format("no network card that '{}' means", wanted);
    return fail(errc::not_found, fmt::format("{}; there are: {}", problem, named_cards(cards)));
  }
  auto chosen = std::ranges::find_if(
    found, [](const auto& card) { return card.address.find(':') == std::string::npos; });
  return chosen == found.end() ? found.front() : *chosen;
}

expected<std::vector<network_card>> network_cards() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    return fail(errc::resource, fmt::format("the system does not tell its network cards: {}",
                                            std::generic_category().message(errno)));
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned{first, freeifaddrs};
  std::vector<network_card> cards;
  for (auto* entry = first; entry != nullptr; entry = entry->ifa_next)
    if (is_usable(*entry)) cards.push_back({entry->ifa_name, address_text(*entry->ifa_addr)});
  return cards;
}

} // namespace troupe
