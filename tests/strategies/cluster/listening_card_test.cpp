// SPDX-License-Identifier: Apache-2.0
// Goal: a task listens where the others dial it. Method: a machine with four cards and a table of
// the hosts that it knows.
#include "strategies/cluster/listening_card.hpp"
#include "tests/doctest.hpp"

#include <map>

namespace listening_card_test {

namespace {

using namespace troupe;

/// Its own name leads to loopback, as Debian writes it.
machine_networks played_machine() {
  const std::map<std::string, std::vector<std::string>> hosts{
    {"self", {"127.0.1.1"}},
    {"self-ib", {"10.1.0.7"}},
    {"localhost", {"127.0.0.1", "::1"}},
    {"self-both", {"203.0.113.9", "10.0.0.7"}},
  };
  return {
    .cards
    = {{"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}, {"eth0", "10.0.0.7"}, {"ib0", "10.1.0.7"}},
    .addresses_of = [hosts](const std::string& host) -> expected<std::vector<std::string>> {
      if (hosts.contains(host)) return hosts.at(host);
      if (host.find_first_not_of("0123456789.") == std::string::npos)
        return std::vector<std::string>{host};
      return fail(errc::unavailable, "host '" + host + "' is not known here");
    }};
}

resolved_cluster chief_at(const std::string& address, const std::string& worker = "other:2") {
  resolved_cluster cluster;
  cluster.tasks = {{"chief", 0, address}, {"worker", 0, worker}};
  cluster.own = 0;
  return cluster;
}

std::string listens(const resolved_cluster& cluster, const std::string& wanted = "") {
  auto card = listening_card(cluster, wanted, played_machine());
  return card ? card->name + " " + card->address : card.error().message;
}

std::string wish(const std::string& address, const std::string& interface = "") {
  return wanted_card(chief_at(address), interface,
                     fixed_environment({{"NCCL_SOCKET_IFNAME", "eth"}}));
}

} // namespace

TEST_SUITE("strategies/cluster/listening_card") {
  TEST_CASE("a task listens on the card that its own address leads to") {
    CHECK(listens(chief_at("self-ib:1")) == "ib0 10.1.0.7");
    CHECK(listens(chief_at("10.0.0.7:1")) == "eth0 10.0.0.7");
    CHECK(listens(chief_at("self-both:1")) == "eth0 10.0.0.7"); // the other one is not ours
  }

  TEST_CASE("a name that leads to loopback here is dialed from elsewhere on a real card") {
    CHECK(listens(chief_at("self:1")) == "eth0 10.0.0.7");
    CHECK(listens(chief_at("self:1", "")) == "eth0 10.0.0.7"); // for a worker that may be anywhere
    CHECK(listens(chief_at("self:1", "self:2")) == "lo 127.0.1.1");
  }

  TEST_CASE("an address that is loopback on every host stays there") {
    CHECK(listens(chief_at("localhost:1")) == "lo 127.0.0.1");
    CHECK(listens(chief_at("127.0.0.5:1")) == "lo 127.0.0.5");
  }

  TEST_CASE("a card that is wanted is taken, whatever the address") {
    CHECK(listens(chief_at("self:1"), "ib") == "ib0 10.1.0.7");
    CHECK(listens(chief_at("nowhere:1"), "=docker0") == "docker0 172.17.0.1");
    CHECK(listens(chief_at("self:1"), "wlan").starts_with("no network card that 'wlan' means"));
  }

  TEST_CASE("an address that is not this machine's is refused, and so is an unknown host") {
    CHECK(listens(chief_at("203.0.113.9:1"))
          == "chief 0 is at 203.0.113.9:1, which is no address of this machine; it has 127.0.0.1 "
             "(lo), 172.17.0.1 (docker0), 10.0.0.7 (eth0), 10.1.0.7 (ib0). If the others reach it "
             "nevertheless, name a card (--interface)");
    CHECK(listens(chief_at("nowhere:1")) == "host 'nowhere' is not known here");
    CHECK(listens(chief_at("self")) == "'self' has no port");
  }

  TEST_CASE("an option goes before NCCL's variable, which says nothing about loopback addresses") {
    CHECK(wish("self:1") == "eth");
    CHECK(wish("self:1", "ib") == "ib");
    CHECK(wish("localhost:1").empty());
    CHECK(wish("127.0.0.1:1", "lo") == "lo");
  }

  TEST_CASE("there is a note if a wanted card is none that the others dial") {
    const network_card loopback{"lo", "127.0.0.1"};
    const network_card real{"eth0", "10.0.0.7"};
    CHECK(listening_note(chief_at("192.0.2.2:1"), "lo", loopback)
          == "'lo' means card lo (127.0.0.1), but the others connect to 192.0.2.2:1: they will "
             "not reach this process there");
    CHECK_FALSE(listening_note(chief_at("127.0.0.1:1"), "eth", real).empty());
    CHECK(listening_note(chief_at("self:1"), "eth", real).empty());
    CHECK(listening_note(chief_at("127.0.0.1:1"), "lo", loopback).empty());
    CHECK(listening_note(chief_at("self:1", "self:2"), "lo", loopback).empty()); // all are here
  }

  TEST_CASE("this machine knows its own cards and hosts") {
    auto machine = own_networks(std::chrono::seconds{30});
    REQUIRE(machine);
    CHECK_FALSE(machine->cards.empty());
    auto here = machine->addresses_of("localhost");
    REQUIRE(here);
    CHECK(here->front() == "127.0.0.1");
  }
}

} // namespace listening_card_test
