// SPDX-License-Identifier: Apache-2.0
// Goal: a step of a job of collectives takes as long as its slowest replica and the rounds of its
// plan. Method: closed forms of rounds, bytes and order statistics.
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "simulation/collective_job.hpp"
#include "tests/simulation/harmonic.hpp"
#include "tests/simulation/target.hpp"

namespace collective_job_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::array algorithms{
  collective_algorithm::ring,       collective_algorithm::halving_doubling,
  collective_algorithm::all_to_all, collective_algorithm::direct,
  collective_algorithm::chain,      collective_algorithm::tree};

scenario job_of(uint32_t replicas, collective_algorithm algorithm) {
  scenario what{.sync = {replicas, replicas, sync_policy::latest_token},
                .steps = 4,
                .compute = constant_time(1s)};
  what.collective = algorithm;
  return what;
}

network_options constant_latency(job_time latency) {
  return {.latency = [latency](const passage&) { return latency; }};
}

// Cards that move a megabyte a millisecond.
network_options cards(uint64_t gradient_bytes) {
  return {.bytes_per_second = 1e9, .gradient_bytes = gradient_bytes};
}

job_time step_of(const scenario& what) {
  auto report = simulate(what);
  REQUIRE(report.step_times.size() == what.steps);
  CHECK(report.step_times.front() == report.step_times.back());
  return report.step_times.front() - 1s;
}

// All begin it together; later ones may begin while a slow link is still busy with the one before.
job_time first_step_of(const scenario& what) {
  return simulate(what).step_times.front() - 1s;
}

job_time in_rounds_of(uint32_t replicas, collective_algorithm algorithm) {
  auto what = job_of(replicas, algorithm);
  what.network = constant_latency(1ms);
  return step_of(what);
}

} // namespace

TEST_SUITE("simulation/collective_job") {
  TEST_CASE("a step takes the latency of as many rounds as the plan has") {
    CHECK(in_rounds_of(8, collective_algorithm::direct) == 1ms);
    CHECK(in_rounds_of(8, collective_algorithm::all_to_all) == 2ms);
    CHECK(in_rounds_of(8, collective_algorithm::tree) == 6ms);
    auto wide = job_of(8, collective_algorithm::ring);
    wide.network = constant_latency(1ms);
    wide.network->gradient_bytes = 4096; // each rank has a slice
    CHECK(step_of(wide) == 14ms);
    wide.collective = collective_algorithm::halving_doubling;
    CHECK(step_of(wide) == 6ms);
  }

  TEST_CASE("bytes take the time that a card needs for those of the plan") {
    constexpr uint64_t bytes = 1 << 20;
    constexpr job_time once{1'048'576}; // one pass of all bytes through a card
    auto what = job_of(8, collective_algorithm::ring);
    what.network = cards(bytes);
    CHECK(step_of(what) == 2 * 7 * once / 8);
    what.collective = collective_algorithm::halving_doubling;
    CHECK(step_of(what) == 2 * 7 * once / 8);
    what.collective = collective_algorithm::all_to_all;
    CHECK(step_of(what) == 2 * 7 * once / 8);
    what.collective = collective_algorithm::direct;
    CHECK(step_of(what) == 7 * once);
  }

  TEST_CASE("a step of exponential times takes the mean of the largest, whatever the algorithm") {
    for (auto algorithm : algorithms) {
      auto what = job_of(16, algorithm);
      what.steps = 4000;
      what.compute = distribution::parse("exponential(1)").value().times(3);
      auto seconds = mapped(simulate(what).step_times,
                            [](auto time) { return std::chrono::duration<double>(time).count(); });
      check_mean(estimate_of(seconds), harmonic(16));
    }
  }

  TEST_CASE("one slow link holds up every round that passes it") {
    auto what = job_of(8, collective_algorithm::ring);
    what.network
      = network_options{.latency = [](const passage& goes) { return goes.end == 3 ? 10ms : 1ms; },
                        .gradient_bytes = 4096};
    // Four of the 14 hops of some slice go to the slow replica or come from it.
    CHECK(simulate(what).step_times.front() - 1s == 10 * 1ms + 4 * 10ms);
    what.collective = collective_algorithm::direct;
    CHECK(step_of(what) == 10ms);
  }

  TEST_CASE("a slow link bounds every round of a ring that passes its bytes") {
    constexpr uint64_t bytes = 1 << 20;
    constexpr job_time slice{(1 << 20) / 8};
    auto what = job_of(8, collective_algorithm::ring);
    what.network = cards(bytes);
    what.network->slowed = slow_link{.one = 3, .other = 4, .factor = 5};
    CHECK(first_step_of(what) == 2 * 7 * 5 * slice);
    what.network->slowed
      = slow_link{.one = 0, .other = 7, .factor = 5}; // the way back to the first
    CHECK(first_step_of(what) == 2 * 7 * 5 * slice);
    what.network->slowed = slow_link{.one = 2, .other = 5, .factor = 5}; // no round passes it
    CHECK(first_step_of(what) == 2 * 7 * slice);
  }

  TEST_CASE("a slow link adds its latency where a slice passes it") {
    auto what = job_of(8, collective_algorithm::ring);
    what.network = constant_latency(1ms);
    what.network->gradient_bytes = 4096;
    what.network->slowed = slow_link{.one = 4, .other = 3, .factor = 10};
    // Some slice passes it in both of its rounds; each round has seven hops.
    CHECK(first_step_of(what) == 12 * 1ms + 2 * 10ms);
  }

  TEST_CASE("hosts add up first, and make a ring of as many rounds as they need") {
    constexpr uint64_t bytes = 1 << 20;
    constexpr job_time once{1 << 20};
    auto what = job_of(32, collective_algorithm::ring);
    what.replicas_per_host = 4;
    what.network = cards(bytes);
    CHECK(step_of(what) == 2 * 7 * once / 8);
    what.replicas_per_host = 32; // all in one process
    CHECK(step_of(what) == 0s);
  }

  TEST_CASE("two levels take the time of a loop over hosts and rounds") {
    constexpr uint32_t replicas = 12;
    constexpr uint32_t of_host = 3;
    constexpr uint32_t hosts = replicas / of_host;
    constexpr job_time latency = 50ms;
    auto what = job_of(replicas, collective_algorithm::ring);
    what.replicas_per_host = of_host;
    what.steps = 40;
    what.compute = distribution::parse("exponential(1)").value().times(3);
    what.network = constant_latency(latency);
    what.network->gradient_bytes = 4096;
    auto report = simulate(what);
    std::vector<job_time> ready(hosts, 0s);
    job_time ended{0};
    for (uint32_t step = 0; step < what.steps; ++step) {
      std::vector<job_time> summed(hosts, 0s);
      for (uint32_t replica = 0; replica < replicas; ++replica) {
        auto& host = summed[replica / of_host];
        host = std::max(host, ready[replica / of_host] + what.compute(replica, step));
      }
      for (uint32_t round = 0; round < 2 * (hosts - 1); ++round) {
        auto before = summed;
        for (uint32_t host = 0; host < hosts; ++host)
          summed[host] = std::max(before[host], before[(host + hosts - 1) % hosts] + latency);
      }
      ready = summed;
      auto end = std::ranges::max(ready);
      CHECK(report.step_times[step] == end - ended);
      ended = end;
    }
  }

  TEST_CASE("a slow replica holds up all, and its record says so") {
    auto what = job_of(4, collective_algorithm::ring);
    what.compute = [](uint32_t replica, uint64_t) { return replica == 2 ? 3s : 1s; };
    std::vector<step_record> steps;
    what.on_step = [&](const step_record& step) { steps.push_back(step); };
    auto report = simulate(what);
    CHECK(report.step_times == std::vector<job_time>(4, 3s));
    CHECK(report.accepted == 16);
    CHECK(report.stale + report.cancelled == 0);
    CHECK(steps[1].accepted.back().replica == 2);
    CHECK(steps[1].accepted.front().waited == 2s);
    CHECK(steps[1].accepted.back().waited == 0s);
    CHECK(steps[1].began == 3s);
  }

  TEST_CASE("a replica alone waits for none") {
    for (auto algorithm : algorithms)
      CHECK(step_of(job_of(1, algorithm)) == 0s);
  }

  TEST_CASE("the same job comes out the same again, over a network of drawn latencies") {
    auto what = job_of(9, collective_algorithm::halving_doubling);
    auto times = distribution::parse("exponential(0.01)").value().times(5);
    what.network = cards(1'000'000);
    what.network->latency = [times](const passage& goes) { return times(goes.end, goes.count); };
    CHECK(simulate(what).log_hash == simulate(what).log_hash);
  }

  TEST_CASE("refuses what a job of collectives has not") {
    auto refusal_of = [](const scenario& what) {
      try {
        static_cast<void>(simulate(what));
      } catch (const failure& refused) {
        return refused.reason().message;
      }
      return std::string{"none"};
    };
    auto what = job_of(4, collective_algorithm::ring);
    CHECK(refusal_of(what) == "none");
    auto endless = job_of(20, collective_algorithm::ring);
    endless.network = constant_latency(std::chrono::seconds{1'000'000'000});
    CHECK(refusal_of(endless).find("step 1 ended after 146 virtual years") == 0);
    auto slow = what;
    slow.compute = constant_time(job_time::max());
    CHECK(refusal_of(slow).find("step 1 ended after 146 virtual years") == 0);
    auto reading = what;
    reading.network = cards(8);
    reading.network->model_bytes = 8;
    CHECK(refusal_of(reading) == "a job of collectives is simulated without a model to be read");
    auto late = what;
    late.late_starts[1] = 1s;
    CHECK(refusal_of(late) == "a job of collectives is simulated without late starts");
    late.deadline = 1s;
    CHECK(refusal_of(late) == "a job of collectives is simulated without a deadline");
    late.replicate_owners = 2;
    CHECK(refusal_of(late) == "a job of collectives is simulated without owners with mirrors");
    auto uneven = what;
    uneven.replicas_per_host = 3;
    CHECK(refusal_of(uneven) == "4 replicas do not stand on hosts of 3 each; give a divisor");
    auto elsewhere = what;
    elsewhere.network = cards(8);
    elsewhere.network->slowed = slow_link{.one = 1, .other = 4, .factor = 2};
    CHECK(refusal_of(elsewhere) == "no link between 1 and 4: there are 4 hosts, from 0 on");
    elsewhere.collective.reset();
    CHECK(refusal_of(elsewhere)
          == "a single slow link is simulated in collectives only; leave it out, or name the "
             "collective");
    what.dead_replicas = {1};
    CHECK(refusal_of(what) == "a job of collectives is simulated without dead replicas");
    what.sync.replicas_to_aggregate = 3;
    CHECK(refusal_of(what) == "a job of collectives is simulated without backups");
    CHECK(parse_collective_algorithm("ring") == collective_algorithm::ring);
    CHECK(parse_collective_algorithm("star").error().message
          == "no collective 'star'; there are ring, halving_doubling, all_to_all, direct, chain, "
             "tree");
  }
}

} // namespace collective_job_test
