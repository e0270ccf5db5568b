// SPDX-License-Identifier: Apache-2.0
// Goal: lines of other launchers are lost only with a word. Method: a connection of this process.
#include "tests/doctest.hpp"
#include "tools/launch/free_ports.hpp"
#include "tools/launch/output_collector.hpp"

#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace output_collector_test {

using namespace troupe;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

/// A launcher that collects, and another one that sends from worker:1.
struct two_launchers {
  asio::io_context context;
  bool is_full = false;
  bool is_over = false;
  std::vector<std::string> lines;
  std::vector<std::string> told;
  output_collector collector{
    context,
    "",
    {.number_of = [](const launch_task&) { return std::optional{size_t{0}}; },
     .put =
       [this](size_t, int, std::span<const std::string> some) {
         lines.insert(lines.end(), some.begin(), some.end());
       },
     .is_full = [this] { return is_full; },
     .tell = [this](const std::string& line) { told.push_back(line); },
     .on_over = [this] { is_over = true; }}};
  tcp::socket sender{context};

  two_launchers() {
    auto port = (*free_ports(1))[0];
    REQUIRE(collector.listen({"127.0.0.1", port}, false));
    sender.connect({asio::ip::address_v4::loopback(), port});
    send(written(output_greeting{.task = {.type = "worker", .index = 1}}));
    std::array<char, 3> answer{};
    run_until([&] { return sender.available() >= answer.size(); });
    sender.read_some(asio::buffer(answer));
    CHECK(std::string{answer.data(), answer.size()} == "ok\n");
  }

  void send(const std::string& bytes) { asio::write(sender, asio::buffer(bytes)); }

  void run_until(const std::function<bool()>& is_reached) {
    auto end = std::chrono::steady_clock::now() + 60s;
    while (!is_reached() && std::chrono::steady_clock::now() < end)
      context.run_one_for(1ms);
    REQUIRE(is_reached());
  }
};

std::string collects(const host_port& at, const std::vector<std::string>& leads_to,
                     bool may_be_reached = true) {
  const std::vector<network_card> cards{
    {"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}, {"eth0", "10.0.0.7"}};
  auto address = collecting_address(at, leads_to, cards, may_be_reached);
  return address ? *address : address.error().message;
}

TEST_SUITE("tools/launch/output_collector") {
  TEST_CASE("a name that leads to loopback here is listened at on a real card") {
    CHECK(collects({"node0", 9500}, {"127.0.1.1"}) == "10.0.0.7");
    CHECK(collects({"node0", 9500}, {"10.0.0.7"}) == "10.0.0.7");
    CHECK(collects({"localhost", 9500}, {"127.0.0.1", "::1"}, false) == "127.0.0.1");
    CHECK(collects({"127.0.0.5", 9500}, {"127.0.0.5"}, false) == "127.0.0.5");
    auto alone = collecting_address({"node0", 9500}, {"127.0.1.1"}, {}, true);
    REQUIRE_FALSE(alone);
    CHECK(alone.error().message.starts_with("--collect-output: 'node0' leads to loopback here"));
  }

  TEST_CASE("an address for others is refused unless it is allowed") {
    const std::vector<std::vector<std::string>> places{{"127.0.1.1"}, {"10.0.0.7"}};
    for (const auto& leads_to : places)
      CHECK(collects({"node0", 9500}, leads_to, false)
            == "--collect-output would listen at node0:9500, where every machine can write to this "
               "terminal; allow it with --insecure-network");
  }

  TEST_CASE("a line cannot write over the name of its task") {
    two_launchers both;
    for (const auto* text : {"1 %\r2 %", "\r[worker:0] all is well\r\r", "a\tb\r", "\r"})
      both.send(written(output_line{.descriptor = 1, .text = text}));
    both.run_until([&] { return both.lines.size() == 4; });
    CHECK(
      both.lines
      == std::vector<std::string>{"1 %?2 %\n", "?[worker:0] all is well?\r\n", "a\tb\r\n", "\r\n"});
  }

  TEST_CASE("a launcher that does not end in time is cut off, with a line") {
    two_launchers both;
    both.collector.finish(1ms);
    both.run_until([&] { return both.is_over; });
    REQUIRE(both.told.size() == 1);
    CHECK(both.told[0].find("cuts off the launcher of worker:1 at 127.0.0.1:") == 0);
  }

  TEST_CASE("a launcher that was kept from sending has as much time again, and nothing is lost") {
    two_launchers both;
    both.is_full = true;
    both.send(written(output_line{.descriptor = 1, .text = "first"}));
    both.run_until([&] { return both.lines.size() == 1; });
    both.send(written(output_line{.descriptor = 1, .text = "second"}));
    both.collector.finish(300ms);
    both.context.run_for(500ms); // beyond the limit
    CHECK_FALSE(both.is_over);
    both.sender.close();
    both.is_full = false;
    both.collector.resume();
    both.run_until([&] { return both.is_over; });
    CHECK(both.lines == std::vector<std::string>{"first\n", "second\n"});
    CHECK(both.told.empty());
  }

  TEST_CASE("a launcher that is kept from sending for good is cut off in the end") {
    two_launchers both;
    both.is_full = true;
    both.send(written(output_line{.descriptor = 1, .text = "first"}));
    both.collector.finish(1ms);
    both.run_until([&] { return both.is_over; });
    CHECK(both.told.size() == 1);
  }
}

} // namespace output_collector_test
