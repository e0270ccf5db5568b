// SPDX-License-Identifier: Apache-2.0
// Goal: what users say of networks and faults is what is simulated, and nonsense is refused in a
// line that names the culprit. Method: options and scenario files, read as the command reads them.
#include "tests/doctest.hpp"
#include "tools/options/config_file.hpp"
#include "tools/sim/command_line.hpp"
#include "tools/sim/network.hpp"

#include <fmt/format.h>

namespace sim_network_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

network_options network(sim_options options) {
  auto made = network_of(options);
  REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  REQUIRE(*made);
  return (*made)(7);
}

std::string network_refusal(const sim_options& options) {
  auto made = network_of(options);
  return made ? "accepted" : made.error().message;
}

fault_plan drawn(std::string_view text) {
  auto plan = parse_fault_rates(text);
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().message));
  return *plan;
}

std::string refusal(std::string_view text) {
  auto plan = parse_fault_rates(text);
  return plan ? "accepted" : plan.error().message;
}

expected<sim_options> scenario_file(std::string_view toml) {
  sim_command command;
  command_options all;
  add_options(all, command);
  if (auto done = read_config(toml, "s.toml", all, faults_key("s.toml", command)); !done)
    return tl::unexpected<error>(done.error());
  return command.options;
}

std::string file_refusal(std::string_view toml) {
  auto read = scenario_file(toml);
  return read ? "accepted" : read.error().message;
}

} // namespace

TEST_SUITE("tools/sim/network") {
  TEST_CASE("without a word of a network there is none") {
    auto made = network_of({});
    REQUIRE(made);
    CHECK_FALSE(*made);
  }

  TEST_CASE("latencies, cards, sizes and service times are read with their units") {
    auto made = network({.network = "300us",
                         .bandwidth = "1.5GB",
                         .owners = 4,
                         .model_bytes = "100MB",
                         .service = "0.001"});
    CHECK(made.owners == 4);
    CHECK(made.bytes_per_second == 1.5e9);
    CHECK(made.model_bytes == 100'000'000);
    CHECK(made.gradient_bytes == 100'000'000);
    CHECK(made.latency({0, "Token", 0}) == 300us);
    CHECK(made.service(0, 0) == 1ms);
    CHECK(network({.bandwidth = "1GB", .model_bytes = "1MiB", .gradient_bytes = "0"}).gradient_bytes
          == 0);
  }

  TEST_CASE("a unit may stand behind a single number, and within an expression none does") {
    CHECK(network({.network = "300 us"}).latency({0, "Token", 0}) == 300us);
    CHECK(network({.service = "2 ms"}).service(0, 0) == 2ms);
    constexpr std::string_view reason = " is too much here: times are in seconds, without a unit, "
                                        "such as 70e-6; only a number that stands alone may have "
                                        "one: us, ms or s, as in 70us\n";
    CHECK(network_refusal({.network = "1ms * slow({1}, 10)"})
            .starts_with(fmt::format("--network: 'ms'{}", reason)));
    CHECK(
      network_refusal({.network = "1ns"}).starts_with(fmt::format("--network: 'ns'{}", reason)));
    CHECK(network_refusal({.service = "exponential(1ms)"})
            .starts_with(fmt::format("--service: 'ms'{}", reason)));
  }

  TEST_CASE("latencies are drawn, from other numbers than computing times") {
    auto made = network({.network = "exponential(1)"});
    auto compute = distribution::parse("exponential(1)").value().times(7);
    CHECK(made.latency({3, "Token", 5}) == made.latency({3, "PushGradient", 5}));
    CHECK(made.latency({3, "Token", 5}) != made.latency({3, "Token", 6}));
    CHECK(made.latency({3, "Token", 5}) != compute(3, 5));
  }

  TEST_CASE("networks that make no sense are refused") {
    CHECK(network_refusal({.bandwidth = "fast"})
          == "--bandwidth must be a number of bytes such as 100MB, not 'fast'");
    CHECK(network_refusal({.bandwidth = "0"}).starts_with("--bandwidth is 0"));
    CHECK(network_refusal({.bandwidth = "0", .model_bytes = "1MB"})
          == "--bandwidth is 0: nothing would ever arrive; leave it out for no limit");
    CHECK(network_refusal({.model_bytes = "1GB"}).starts_with("--model-bytes and"));
    CHECK(network_refusal({.network = "slow"}).starts_with("--network: "));
    CHECK(network_refusal({.replicas = 5, .network = "0.001 slow={5}*10"})
          == "--network: 0.001 * slow({5}, 10) speaks of replica 5, but there are 5: 0 to 4");
    CHECK(network_refusal({.owners = 2, .service = "0.001 slow={2}*10"})
          == "--service: 0.001 * slow({2}, 10) speaks of owner 2, but there are 2: 0 to 1");
    CHECK(network_refusal({.bandwidth = "1GB"})
          == "--bandwidth changes nothing where nothing is moved; say what a replica reads, as in "
             "--model-bytes 100MB, or leave it out");
    CHECK(network_refusal({.bandwidth = "10", .model_bytes = "100GB"})
          == "--bandwidth 10 takes 2e+12 s to move the bytes of all replicas, and 1e+09 s are the "
             "most; raise it, or lower --model-bytes");
  }

  TEST_CASE("the learnt model says how many bytes its variables have") {
    auto made = network_of({.bandwidth = "1GB"}, 404);
    REQUIRE(made);
    CHECK((*made)(7).model_bytes == 404);
    CHECK((*made)(7).gradient_bytes == 404);
  }

  TEST_CASE("faults by chance are read from a list") {
    auto plan = drawn("crash=1000/20,freeze=500/10,wave=600*4,swizzle=100/5,lost=0.01,doubled=0.5,"
                      "late=1,down=3,permanent=0.25,warm-up=60");
    CHECK(plan.rates.crash_mean == 1000s);
    CHECK(plan.rates.return_mean == 20s);
    CHECK(plan.rates.freeze_mean == 500s);
    CHECK(plan.rates.thaw_mean == 10s);
    CHECK(plan.rates.wave_mean == 600s);
    CHECK(plan.rates.wave_size == 4);
    CHECK(plan.rates.swizzle_lasts == 5s);
    CHECK(plan.rates.down_max == 3);
    CHECK(plan.rates.permanent == 0.25);
    CHECK(plan.rates.warm_up == 60s);
    REQUIRE(plan.faults.size() == 1);
    CHECK(plan.faults[0].probabilities.lost == 0.01);
    CHECK(plan.loses_messages());
    CHECK(drawn("crash=1000").rates.return_mean == 0s);
    CHECK(drawn("").is_empty());
    auto spaced = drawn(" crash=1000/20, lost=0.01 ,late=1");
    CHECK(spaced.rates.return_mean == 20s);
    CHECK(spaced.faults[0].probabilities.reordered == 1);
    CHECK(refusal("crash=1000/20, lots=0.01").starts_with("no fault 'lots' is drawn by chance"));
  }

  TEST_CASE("lists of faults that make no sense are refused") {
    CHECK(refusal("crsh=1000")
          == "no fault 'crsh' is drawn by chance; the nearest that is one is 'crash'");
    for (const char* wrong : {"crash", "crash=0", "crash=soon", "lost=2", "down=many", "wave=5*x",
                              "permanent=2", "warm-up=-1", "crash=1e-10"})
      CHECK(
        refusal(wrong).ends_with("is not as in crash=1000/20, wave=600*4, lost=0.01 or down=3"));
    CHECK(refusal("lost=0.1,crash=5,lost=0") == "'lost' is given twice");
    CHECK(refusal("wave=5*2.7").starts_with("'wave=5*2.7' is not as in"));
    for (const char* idle : {"permanent=0.5", "down=1", "warm-up=5", "down=1,freeze=5/2"})
      CHECK(refusal(idle).ends_with(
        "is about crashes, and there are none; add them, as in crash=1000/20"));
    CHECK(refusal("crash=5,permanent=0.5").starts_with("permanent is a share of crashes"));
    CHECK(refusal("freeze=5").starts_with("a freeze of 0 s is none"));
    CHECK(faults_of({.faults = "swizzle=5/0"}).error().message
          == "--faults: a swizzle of 0 s is none; say how long it lasts, as in swizzle=100/10");
    CHECK(faults_of({.faults = "wave=5*0"}).error().message
          == "--faults: a wave of 0 is none; give the number of replicas");
    CHECK(faults_of({.replicas = 4, .faults = "wave=5*5"}).error().message
          == "--faults: a wave of 5 is of more than the 4 replicas; lower it");
    CHECK(refusal("crash=100/20,down=0")
          == "'down=0': no replica could crash; give 1 or more, or leave it out if any number may "
             "be down");
    CHECK(faults_of(*scenario_file("faults = \"crash=100,down=0\""))
            .error()
            .message.starts_with("--faults: 'down=0': "));
    CHECK(refusal("crash=100/0")
          == "'crash=100/0': no replica can return after 0 s; give a longer time, or leave it out "
             "if none returns, as in crash=1000");
  }

  TEST_CASE("replicas ask again where messages are lost, unless the user knows better") {
    CHECK(faults_of({.faults = "lost=0.1"})->ask_again_after == 1s);
    CHECK(faults_of({.faults = "lost=0.1", .ask_again = 0})->ask_again_after == 0s);
    CHECK(faults_of({.faults = "crash=10"})->ask_again_after == 0s);
    CHECK(faults_of({.ask_again = 0.5})->ask_again_after == 500ms);
  }

  TEST_CASE("so many faults and repeats that no step would end are refused") {
    auto refused = [](sim_options options) {
      options.replicas = 4;
      options.compute = "1";
      auto made = experiment_of(options);
      return made ? std::string{"accepted"} : made.error().message;
    };
    CHECK(refused({.faults = "crash=1e-4/1e-4"})
          == "--faults: some 2e+09 faults come in each step, and 1e+06 are the most; give longer "
             "times between them");
    for (const auto* faults : {"crash=1e-9/1e-9", "freeze=1e-6/1e-6", "swizzle=1e-6/1e-6",
                               "wave=1e-5*3,crash=1000/1e-3", "crash=1e-9,down=1"})
      CHECK(refused({.faults = faults}).starts_with("--faults: some "));
    // Faults that stop a job before its first step, and faults that only make it slow.
    for (const auto* faults :
         {"crash=1e-9", "crash=1e-9/1", "freeze=1e-6/1", "wave=1e-7", "crash=0.2/0.1",
          "freeze=1e-4/1e-4", "crash=1/1,down=2", "swizzle=0.01/0.1"})
      CHECK(refused({.faults = faults}) == "accepted");
    CHECK(refused({.faults = "lost=0.01", .ask_again = 1e-9})
          == "--ask-again: replicas may ask some 4e+09 times in each step, and 1e+06 are the most; "
             "give a longer time");
    CHECK(refused({.faults = "lost=0.01", .ask_again = 1e-4}) == "accepted");
  }

  TEST_CASE("nodes are as patient as links between processes, unless the user says otherwise") {
    CHECK_FALSE(network_of({.faults = "freeze=100/10"}).value());
    CHECK(network_options{}.silence_timeout == 2500ms);
    CHECK(network_of({.silence_timeout = 0}).value()(1).silence_timeout == 0s);
    CHECK(network_of({.network = "10ms", .silence_timeout = 5}).value()(1).silence_timeout == 5s);
  }

  TEST_CASE("a scenario file plans faults") {
    auto read = scenario_file(R"(
replicas = 8
[[fault]]
kind = "crash"
at = 3.5
who = ["replica 1", "replica 3-5"]
for = 20
[[fault]]
kind = "partition"
at = 10
who = "replica 0"
other = "ps 0"
one-way = true
[[fault]]
kind = "corrupt"
how = "shape"
[[fault]]
kind = "skew"
ahead = 1.5
rate = 1.01
)");
    REQUIRE(read);
    REQUIRE(read->fault_list.size() == 4);
    const auto& crash = read->fault_list[0];
    CHECK(crash.at == 3500ms);
    CHECK(crash.lasts == 20s);
    CHECK(crash.who
          == std::vector<std::string>{"replica 1", "replica 3", "replica 4", "replica 5"});
    CHECK(read->fault_list[1].kind == fault_kind::partition);
    CHECK(read->fault_list[1].one_way);
    CHECK(read->fault_list[2].how == corruption::wrong_shape);
    CHECK(read->fault_list[3].kind == fault_kind::skew);
    CHECK(read->fault_list[3].ahead == 1500ms);
    CHECK(read->fault_list[3].rate == 1.01);
    CHECK(faults_of(*read));
  }

  TEST_CASE("a key that a kind of fault does not know is refused, by its line") {
    auto refused = [](const std::string& kind, const std::string& entry) {
      return file_refusal(fmt::format("[[fault]]\nkind = \"{}\"\n{}", kind, entry));
    };
    CHECK(refused("crash", "factor = 3")
          == "s.toml:3: 'factor' has no meaning for a fault of the kind 'crash', but for 'slow'");
    CHECK(refused("corrupt", "for = 3")
          == "s.toml:3: 'for' has no meaning for a fault of the kind 'corrupt': it is about one "
             "gradient");
    for (const char* span : {"for = -1", "for = 0", "for = 1e-12"})
      CHECK(
        refused("freeze", span)
        == "s.toml:3: 'for' of a fault takes seconds above 0, such as 60; without it, it is for "
           "good");
    CHECK(refused("crash", "who = []").starts_with("s.toml:3: 'who' of a fault takes nodes"));
    CHECK(refused("partition", "one-way = \"yes\"")
          == "s.toml:3: 'one-way' of a fault takes true or false");
  }

  TEST_CASE("planned faults that make no sense are refused") {
    CHECK(file_refusal("[[fault]]\nat = 1").find("has no 'kind'") != std::string::npos);
    CHECK(file_refusal("[[fault]]\nkind = \"flood\"")
          == "s.toml:2: no fault 'flood'; there are crash, crash_with_token, freeze, partition, "
             "slow, messages, corrupt, skew, swizzle");
    CHECK(file_refusal("[[fault]]\nkind = \"crash\"\nwhom = 3").find("nearest known one is 'who'")
          != std::string::npos);
    CHECK(file_refusal("[[fault]]\nkind = \"crash\"\nat = -3").find("'at' of a fault")
          != std::string::npos);
    CHECK(file_refusal("fault = 3").find("faults are tables") != std::string::npos);
    auto far = scenario_file("replicas = 4\n[[fault]]\nkind = \"crash\"\nwho = \"replica 9\"");
    REQUIRE(far);
    CHECK(faults_of(*far).error().message.starts_with("fault 1 (crash): there is no node"));
    auto unheard = scenario_file("[[fault]]\nkind = \"messages\"\nmessage = \"Foo\"\nlost = 1");
    REQUIRE(unheard);
    CHECK(
      faults_of(*unheard).error().message
      == "fault 1 (messages): no messages of the kind 'Foo' can be lost, doubled or late; there "
         "are ReadVariable, ChangeVariable, VariableSnapshot, PushGradient, PushReply, TakeToken, "
         "Token");
    auto still = scenario_file("[[fault]]\nkind = \"skew\"\nrate = 1e-300");
    REQUIRE(still);
    CHECK(faults_of(*still).error().message == "fault 1 (skew): its rate goes from 0.001 to 1000");
    auto nowhere = scenario_file("[[fault]]\nkind = \"slow\"\nwho = \"replica 1\"");
    REQUIRE(nowhere);
    CHECK(faults_of(*nowhere).error().message
          == "a fault of the kind 'slow' changes nothing where messages take no time; say how long "
             "they take, as in --network 1ms");
    CHECK(file_refusal("scenario = \"other\"").find("'scenario';") != std::string::npos);
    CHECK(file_refusal("scenario = \"other\"").find("is 'scenario'") == std::string::npos);
  }
}

} // namespace sim_network_test
