// SPDX-License-Identifier: Apache-2.0
// Goal: the card is chosen that NCCL would choose. Method: a machine with six of them, in a table.
#include "strategies/cluster/network_card.hpp"
#include "tests/doctest.hpp"

#include <algorithm>

namespace network_card_test {

namespace {

using namespace troupe;

const std::vector<network_card> cards{
  {"lo", "127.0.0.1"},  {"docker0", "172.17.0.1"}, {"eth0", "fd00::7"},   {"eth0", "10.0.0.7"},
  {"eth1", "10.1.0.7"}, {"ib0", "10.2.0.7"},       {"eth10", "10.3.0.7"},
};

std::string chosen(std::string_view wanted, std::span<const network_card> of = cards) {
  auto card = choose_network_card(of, wanted);
  return card ? card->name + " " + card->address : card.error().message;
}

} // namespace

TEST_SUITE("strategies/cluster/network_card") {
  TEST_CASE("without a wish the first card is taken that is neither loopback nor a container's") {
    CHECK(chosen("") == "eth0 10.0.0.7");
    CHECK(chosen("", std::span{cards}.first(2)) == "docker0 172.17.0.1");
  }

  TEST_CASE("words are beginnings of names, the first that fits counts") {
    CHECK(chosen("ib,eth") == "ib0 10.2.0.7");
    CHECK(chosen("wlan,eth1") == "eth1 10.1.0.7");
    CHECK(chosen("docker") == "docker0 172.17.0.1");
  }

  TEST_CASE("'=' asks for exact names") {
    CHECK(chosen("=eth10") == "eth10 10.3.0.7");
    CHECK(chosen("=eth2,eth1") == "eth1 10.1.0.7");
    CHECK(chosen("=eth")
          == "no network card that '=eth' means; there are: lo (127.0.0.1), docker0 (172.17.0.1), "
             "eth0 (fd00::7), eth0 (10.0.0.7), eth1 (10.1.0.7), ib0 (10.2.0.7), eth10 (10.3.0.7)");
  }

  TEST_CASE("'^' excludes, and does not name the loopback card") {
    CHECK(chosen("^eth,docker") == "ib0 10.2.0.7");
    CHECK(chosen("^=eth0,docker0") == "eth1 10.1.0.7");
    CHECK(chosen("^ib") == "docker0 172.17.0.1");
    CHECK(chosen("^eth,docker,ib").starts_with("no network card that '^eth,docker,ib' means"));
  }

  TEST_CASE("the loopback card is chosen only if it is named") {
    CHECK(chosen("lo") == "lo 127.0.0.1");
    CHECK(chosen("=lo") == "lo 127.0.0.1");
    CHECK(chosen("", std::span{cards}.first(1))
          == "no network card but the loopback one, which must be named (lo); there are: lo "
             "(127.0.0.1)");
    CHECK(chosen("", {}).ends_with("there are: none"));
  }

  TEST_CASE("an IPv6 address is taken where there is no other") {
    CHECK(chosen("=eth0", std::span{cards}.first(3)) == "eth0 fd00::7");
  }

  TEST_CASE("the machine's own cards have names and addresses") {
    auto own = network_cards();
    REQUIRE(own);
    CHECK(std::ranges::all_of(
      *own, [](const auto& card) { return !card.name.empty() && !card.address.empty(); }));
  }
}

} // namespace network_card_test
