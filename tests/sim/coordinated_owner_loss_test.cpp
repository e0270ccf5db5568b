// SPDX-License-Identifier: Apache-2.0
// Goal: where owners are replicated, a coordinator's job loses nothing with one of them, and makes
// nothing twice. Method: jobs in the virtual world over a simulated network; parameter servers
// crash at each delivery of a message, come back, or lose each other; each call changes variables
// in all ways there are, and every change has to be there once.
#include "kernels/tensor/random.hpp"
#include "simulation/network/simulated_network.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace coordinated_owner_loss_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr int64_t calls = 20; // an array of so many is more than an owner remembers to answer alike

network_options options_of(uint64_t seed, uint32_t owners) {
  network_options options{.owners = owners, .silence_timeout = 2s, .seed = seed};
  options.detection = std::chrono::milliseconds{seed % 3 * 100};
  options.latency = [seed](const passage& one) {
    random_stream late{random_key{seed, "latency", one.end, one.count}};
    return job_time{static_cast<int64_t>(5e7 * late.uniform())};
  };
  return options;
}

numbers one_at(int64_t which) {
  numbers result(calls);
  result[static_cast<size_t>(which)] = 1;
  return result;
}

/// The course of a job.
struct course {
  std::vector<numbers> values;   ///< By variable: each call changes its own element by 1, once.
  std::vector<double> tickets;   ///< By call: the ticket that it was given.
  double given_out = 0;          ///< Tickets, as the variable says.
  bool has_forgotten = false;    ///< A change was read, and later not.
  std::vector<std::string> told; ///< Lines for the program that schedules.
  uint64_t deliveries = 0;
  std::optional<error> failure;
};

/// A job of three workers, and whatever happens to the owners of its variables.
class coordinated_job {
public:
  explicit coordinated_job(uint64_t seed, uint32_t owners = 2)
    : world_(world::virtual_time({.seed = seed})), network(world_, 1, options_of(seed, owners)),
      strategy_(world_, {.replicas = 3, .placement = &network.placement(), .replicate_owners = 2}),
      added_(strategy_.make_variable("added 0", zeros({calls}))),
      scattered_(strategy_.make_variable("scattered 1", zeros({calls, 1}))),
      trained_(strategy_.make_variable("trained 2", zeros({calls}))),
      tickets_(strategy_.make_variable("tickets 3", zeros({}))) {}

  course run() {
    network.transport().on_delivery = [this](const delivery&) {
      if (on_delivery) on_delivery(seen_.deliveries);
      ++seen_.deliveries;
    };
    {
      cluster_coordinator coordinator{
        strategy_, {.on_warning = [this](const auto& line) { seen_.told.push_back(line); }}};
      try {
        schedule_all(coordinator);
      } catch (const failure& failed) {
        seen_.failure = failed.reason();
      }
    }
    network.transport().on_delivery = {};
    return seen_;
  }

private:
  void schedule_all(cluster_coordinator& coordinator) {
    auto function
      = coordinator.make_function("change", [this](closure_context& context, int64_t which) {
          return change_all(*this, context, which);
        });
    std::vector<remote_value<double>> tickets;
    for (int64_t which = 0; which < calls; ++which)
      tickets.push_back(coordinator.schedule(function, which));
    coordinator.join(10min);
    seen_.tickets = coordinator.fetch(tickets);
    for (const auto& one : {added_, scattered_, trained_})
      seen_.values.push_back(numbers_of(strategy_.read(one)));
    seen_.given_out = numbers_of(strategy_.read(tickets_)).front();
  }

  static task<double> change_all(coordinated_job& job, closure_context& context, int64_t which) {
    random_stream draw{context.random("rest")};
    auto resting = context.host().rest(job_time{static_cast<int64_t>(2e8 * draw.uniform())});
    co_await resting;
    auto reading = context.read(job.added_);
    auto before = co_await reading;
    job.look_at(numbers_of(before));
    auto taking = context.assign_add(job.tickets_, 1);
    auto ticket = co_await taking;
    auto adding = context.assign_add(job.added_, array({calls}, one_at(which)));
    auto after = co_await adding;
    job.look_at(numbers_of(after));
    auto rows = rows_of({which}, {1}, calls);
    auto scattering = context.scatter_add(job.scattered_, rows);
    co_await scattering;
    std::vector<gradient_and_variable> gradients{{array({calls}, one_at(which)), job.trained_}};
    auto applying = job.sgd_.apply_gradients(context, std::move(gradients));
    co_await applying;
    co_return ticket.values<float>()[0];
  }

  // Values of one moment are seen in any order: each is compared with those of earlier moments.
  void look_at(const numbers& value) {
    if (auto now = world_.now(); now > looked_) {
      looked_ = now;
      before_ = newest_;
    }
    for (size_t i = 0; i < value.size(); ++i) {
      seen_.has_forgotten = seen_.has_forgotten || value[i] < before_[i];
      newest_[i] = std::max(newest_[i], value[i]);
    }
  }

  world world_;

public:
  simulated_network network;
  std::function<void(uint64_t count)> on_delivery;

private:
  parameter_server_strategy strategy_;
  variable added_;
  variable scattered_;
  variable trained_;
  variable tickets_;
  optimizer sgd_{rules::sgd{.learning_rate = 1}};
  job_time looked_{0};
  numbers before_ = numbers(calls); ///< By element: the largest value seen before `looked_`.
  numbers newest_ = numbers(calls);
  course seen_;
};

// ---- what must hold ----

std::string complaint_about(const course& seen) {
  if (seen.failure) return "the job has failed: " + seen.failure->message;
  for (size_t which = 0; which < seen.values.size(); ++which)
    for (auto value : seen.values[which])
      if (value != (which == 2 ? -1 : 1)) // a gradient goes down
        return fmt::format("a change of variable {} counts {} times", which, value);
  auto tickets = seen.tickets;
  std::ranges::sort(tickets);
  for (size_t i = 0; i < tickets.size(); ++i)
    if (tickets[i] != static_cast<double>(i + 1))
      return fmt::format("ticket {} was given out as the {}th", tickets[i], i + 1);
  if (seen.given_out != calls) return fmt::format("{} tickets were given out", seen.given_out);
  if (seen.has_forgotten) return "a change was read, and later not";
  return {};
}

bool has_told(const course& seen, std::string_view what) {
  return std::ranges::any_of(
    seen.told, [what](const auto& line) { return line.find(what) != std::string::npos; });
}

} // namespace

TEST_SUITE("sim/coordinated_owner_loss") {
  TEST_CASE("nothing is lost or made twice, at whatever message an owner or mirror is lost") {
    auto undisturbed = coordinated_job{0}.run();
    REQUIRE(complaint_about(undisturbed) == "");
    CHECK(undisturbed.told.empty());
    uint32_t jobs = 0;
    for (uint64_t moment = 0; moment < undisturbed.deliveries; moment += 2) {
      auto seed = moment % 5;
      coordinated_job job{seed};
      auto lost = job.network.nodes().owner_node(static_cast<uint32_t>(moment / 2 % 2));
      job.on_delivery = [&](uint64_t count) {
        if (count == moment)
          job.network.events().at(job.network.events().now(), [&] { job.network.crash(lost); });
      };
      auto seen = job.run();
      CHECK_MESSAGE(complaint_about(seen).empty(),
                    fmt::format("ps {} lost at {}: {}", lost - 1, moment, complaint_about(seen)));
      CHECK(seen.told.size() <= 1);
      ++jobs;
    }
    CHECK(jobs > 100);
  }

  TEST_CASE("the scheduler is told in one line of the loss, and of the return") {
    coordinated_job job{1};
    job.network.events().at(500ms, [&] { job.network.crash(job.network.nodes().owner_node(0)); });
    job.network.events().at(700ms, [&] { job.network.restart(job.network.nodes().owner_node(0)); });
    auto seen = job.run();
    CHECK(complaint_about(seen) == "");
    REQUIRE(seen.told.size() == 2);
    CHECK(seen.told[0].find("held by mirrors now; held once from now on: ") != std::string::npos);
    CHECK(seen.told[0].ends_with("; the job goes on"));
    CHECK(seen.told[1].starts_with("held twice again: "));
    for (const auto* name : {"'added 0'", "'scattered 1'", "'trained 2'", "'tickets 3'"})
      for (const auto& line : seen.told)
        CHECK(line.find(name) != std::string::npos);
  }

  TEST_CASE("a server that has come back may hold all when the other one is lost, and so on") {
    uint32_t lost_twice = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      coordinated_job job{seed, seed % 2 == 0 ? 2U : 3U};
      random_stream draw{random_key{seed, "losses", 0, 0}};
      auto at = job_time{static_cast<int64_t>(1e9 * draw.uniform())};
      for (uint32_t turn = 0; turn < 3; ++turn) {
        auto lost = job.network.nodes().owner_node(turn % job.network.nodes().owner_count());
        job.network.events().at(at, [&job, lost] { job.network.crash(lost); });
        job.network.events().at(at + 300ms, [&job, lost] { job.network.restart(lost); });
        at += 1s + job_time{static_cast<int64_t>(1e9 * draw.uniform())};
      }
      auto seen = job.run();
      CHECK_MESSAGE(complaint_about(seen).empty(),
                    fmt::format("seed {}: {}", seed, complaint_about(seen)));
      lost_twice += has_told(seen, "held twice again") && seen.told.size() > 2 ? 1 : 0;
    }
    CHECK(lost_twice > 10); // else nothing was tried
  }

  TEST_CASE("one of two servers that lose each other is given up, and no change is lost") {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      coordinated_job job{seed};
      job.network.events().at(std::chrono::milliseconds{100 + 60 * seed}, [&job] {
        auto is = [](node_index which) { return [which](node_index one) { return one == which; }; };
        auto first = is(job.network.nodes().owner_node(0));
        auto second = is(job.network.nodes().owner_node(1));
        job.network.sever({.from = first, .to = second});
        job.network.sever({.from = second, .to = first});
      });
      auto seen = job.run();
      CHECK_MESSAGE(complaint_about(seen).empty(),
                    fmt::format("seed {}: {}", seed, complaint_about(seen)));
    }
  }

  TEST_CASE("when both are lost, waiting calls are told so, naming one") {
    coordinated_job job{2};
    for (uint32_t i = 0; i < 2; ++i)
      job.network.events().at(500ms,
                              [&job, i] { job.network.crash(job.network.nodes().owner_node(i)); });
    auto seen = job.run();
    REQUIRE(seen.failure);
    CHECK(seen.failure->code == errc::unavailable);
    CHECK(seen.failure->message.find("'change' failed at worker") != std::string::npos);
    CHECK(seen.failure->message.find("ps ") != std::string::npos);
  }

  TEST_CASE("a seed is a course") {
    auto run = [] {
      coordinated_job job{7};
      job.network.events().at(400ms, [&] { job.network.crash(job.network.nodes().owner_node(1)); });
      return job.run();
    };
    auto one = run();
    auto other = run();
    CHECK(one.tickets == other.tickets);
    CHECK(one.deliveries == other.deliveries);
  }
}

} // namespace coordinated_owner_loss_test
