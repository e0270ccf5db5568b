// SPDX-License-Identifier: Apache-2.0
// Goal: whatever becomes of a coordinator's workers, every call that was scheduled has one end, and
// a caller that waits for all of them is told so. Method: jobs in the virtual world over a
// simulated network; workers crash, freeze and are cut off at moments drawn from a seed; checkers
// judge the course.
#include "actors/coordinator/closure_worker.hpp"
#include "actors/coordinator/coordinator.hpp"
#include "actors/training/variable_owner.hpp"
#include "kernels/tensor/change.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "simulation/network/simulated_network.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <span>

namespace closures_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t seeds = 60;
constexpr int64_t rounds = 2;
constexpr int64_t calls_of_round = 24;
constexpr int64_t calls = rounds * calls_of_round;

/// Where a call fails on purpose, if at all.
constexpr int64_t nowhere = -1;

/// The course of a job, as its checkers need it.
struct course {
  uint64_t seed = 0;
  int64_t fails = nowhere;
  std::vector<std::vector<expected<int64_t>>> ends{calls}; ///< By call: what it was settled with.
  std::vector<expected<bool>> joins;                       ///< Results of waiting, in order.
  std::vector<int64_t> open_at_join;                       ///< Calls without an end at that time.
  std::vector<uint32_t> begun = std::vector<uint32_t>(calls); ///< By call: starts on all workers.
  std::vector<float> ballot;                                  ///< By call: how often it counted.
  uint32_t losses = 0;                                        ///< Told by the coordinator.
  uint32_t lost_calls = 0;                                    ///< Calls rerun by another worker.
  uint32_t bystanders_left = 0;                               ///< Processes not told of the end.
  bool has_ended = false;
};

tensor one_at(int64_t call) {
  auto result = zeros({calls});
  result.mutable_values<float>()[static_cast<size_t>(call)] = 1;
  return result;
}

/// A coordinator with workers on nodes of their own, and a variable in which each call leaves a
/// one.
class closure_job : deterministic_world {
public:
  explicit closure_job(uint64_t seed)
    : deterministic_world{seed}, draw_{random_key{seed, "closures", 0, 0}},
      worker_count_(2 + static_cast<uint32_t>(draw_.below(4))), network_{world, worker_count_,
                                                                         options_of(seed)} {
    seen_.seed = seed;
    if (draw_.below(3) == 0) seen_.fails = static_cast<int64_t>(draw_.below(calls));
    auto begins = zeros({calls});
    owner_
      = spawn(variable_owner,
              variable_owner_config{{"ballot", begins.type(), begins.extents()}, begins, &world});
    world.introduce(owner_.id(), "owner 0");
    network_.placement().put("owner 0", owner_);
    coordinator_config config{.workers = worker_count_, .bystanders = worker_count_};
    config.on_warning = [this](const std::string& line) {
      if (line.find(" is gone (") != std::string::npos) ++seen_.losses;
      if (line.ends_with("another one runs what it ran")) ++seen_.lost_calls;
    };
    coordinator_ = spawn(coordinator, std::move(config));
    world.introduce(coordinator_.id(), "coordinator");
    network_.placement().put("coordinator", coordinator_);
    bystanders_.resize(worker_count_);
    released_.resize(worker_count_);
    for (uint32_t i = 0; i < worker_count_; ++i)
      begin_life(i);
    network_.placement().on_return([this](uint32_t worker) { begin_life(worker); });
  }

  ~closure_job() {
    for (uint32_t i = 0; i < worker_count_; ++i)
      network_.crash(network_.nodes().replica_node(i));
    caf::anon_send_exit(owner_, caf::exit_reason::kill);
    caf::anon_send_exit(coordinator_, caf::exit_reason::kill);
    settle();
  }

  course run() {
    plan_faults();
    for (int64_t round = 0; round < rounds; ++round) {
      for (int64_t i = 0; i < calls_of_round; ++i)
        schedule(scheduled_++);
      wait_for_all();
      if (!seen_.joins.empty() && !seen_.joins.back()) wait_for_all(); // it has taken the error
    }
    pass(1min); // all faults are over
    read_ballot();
    caf::anon_send(coordinator_, end_service{[this] { seen_.has_ended = true; }});
    pass(1min);
    for (const auto& answer : released_)
      if (!answer.has_come()) ++seen_.bystanders_left;
    return seen_;
  }

  /// Amid its calls the coordinator's node crashes, freezes or is cut off. @returns By worker: the
  /// error that its process has heard one second after the silence timeout.
  std::vector<error> lose_coordinator() {
    for (int64_t i = 0; i < calls_of_round; ++i)
      schedule(scheduled_++);
    pass(job_time{static_cast<int64_t>(3e9 * draw_.uniform())});
    auto chief = network_.nodes().chief_node();
    switch (draw_.below(3)) {
    case 0:
      network_.crash(chief);
      break;
    case 1:
      network_.freeze(chief);
      break;
    default:
      cut_off(chief);
    }
    pass(network_.options().silence_timeout + 1s);
    return mapped(released_, [](const auto& answer) { return answer.error(); });
  }

private:
  static network_options options_of(uint64_t seed) {
    random_stream draw{random_key{seed, "network", 0, 0}};
    auto detection = std::chrono::milliseconds{draw.below(2) * 300};
    return {.latency =
              [seed](const passage& one) {
                random_stream late{random_key{seed, "latency", one.end, one.count}};
                return job_time{static_cast<int64_t>(2e7 * late.uniform())};
              },
            .detection = detection,
            .silence_timeout = 2s,
            .seed = seed};
  }

  // ---- workers ----

  [[nodiscard]] static std::string name_of(uint32_t worker) {
    return fmt::format("replica {}", worker); // as the simulated network calls its nodes
  }

  void begin_life(uint32_t worker) {
    auto seen_from_there = name_of(worker);
    auto coordinator
      = network_.placement().find<coordinator_actor>(seen_from_there, "coordinator").value();
    auto owner
      = network_.placement().find<variable_owner_actor>(seen_from_there, "owner 0").value();
    closure_worker_config config{.index = worker, .coordinator = coordinator, .world = &world};
    config.call = [this, owner](activity& activity, msg<wire::RunClosure> message) {
      return call(*this, activity, owner, std::move(message));
    };
    auto actor = spawn(closure_worker, std::move(config));
    world.introduce(actor.id(), fmt::format("worker {} of life {}", worker, ++lives_));
    network_.placement().stand_beside(seen_from_there,
                                      caf::actor_cast<caf::strong_actor_ptr>(actor));
    auto& bystander = bystanders_[worker].emplace(world);
    network_.placement().stand_beside(seen_from_there, bystander.as<caf::strong_actor_ptr>());
    released_[worker]
      = bystander.ask<msg<wire::ServiceEnded>>(coordinator, make_await_service_end(worker));
  }

  static task<std::vector<closure_value>> call(closure_job& job, activity& activity,
                                               variable_owner_actor owner,
                                               msg<wire::RunClosure> message) {
    auto arguments = read_arguments(message);
    auto which = std::get<int64_t>(arguments.at(0));
    auto attempt = job.seen_.begun.at(static_cast<size_t>(which))++;
    random_stream draw{
      random_key{job.seen_.seed, "computing", static_cast<uint32_t>(which), attempt}};
    auto resting = activity.rest(job_time{static_cast<int64_t>(1e9 * draw.uniform())});
    co_await resting;
    if (which == job.seen_.fails) throw failure{{errc::out_of_range, "fails on purpose"}};
    auto change = make_change_variable(static_cast<uint8_t>(troupe::change::add), one_at(which));
    auto asking = activity.request<msg<wire::VariableSnapshot>>(owner, change);
    auto changed = co_await asking;
    value_or_throw(std::move(changed));
    co_return std::vector<closure_value>{which * which};
  }

  // ---- what goes wrong ----

  void plan_faults() {
    auto count = 1 + draw_.below(6);
    for (uint64_t i = 0; i < count; ++i) {
      auto worker = static_cast<uint32_t>(draw_.below(worker_count_));
      auto at = job_time{static_cast<int64_t>(8e9 * draw_.uniform())};
      auto length = job_time{static_cast<int64_t>(4e9 * draw_.uniform())}; // the timeout is 2 s
      switch (draw_.below(3)) {
      case 0:
        plan_crash(worker, at, length);
        break;
      case 1:
        network_.events().at(
          at, [this, worker] { network_.freeze(network_.nodes().replica_node(worker)); });
        network_.events().at(
          at + length, [this, worker] { network_.thaw(network_.nodes().replica_node(worker)); });
        break;
      default:
        plan_cut(worker, at, length);
      }
    }
    // A worker that was given up meanwhile has to be started again, as over sockets.
    for (uint32_t worker = 0; worker < worker_count_; ++worker)
      plan_crash(worker, 13s + worker * 100ms, 200ms);
  }

  void plan_crash(uint32_t worker, job_time at, job_time length) {
    auto node = network_.nodes().replica_node(worker);
    network_.events().at(at, [this, node] { network_.crash(node); });
    network_.events().at(at + length, [this, node] { network_.restart(node); });
  }

  void plan_cut(uint32_t worker, job_time at, job_time length) {
    auto node = network_.nodes().replica_node(worker);
    network_.events().at(at, [this, node, length] {
      auto cuts = cut_off(node);
      network_.events().at(network_.events().now() + length, [this, cuts] {
        for (auto one : cuts)
          network_.heal(one);
      });
    });
  }

  std::array<uint64_t, 2> cut_off(node_index node) {
    auto is_it = [node](node_index one) { return one == node; };
    return {network_.sever({.from = {}, .to = is_it}), network_.sever({.from = is_it, .to = {}})};
  }

  // ---- the program that schedules ----

  void schedule(int64_t which) {
    schedule_closure closure{.function = "square",
                             .arguments = {std::vector<closure_value>{which}}};
    closure.settle = [this, which](expected<std::vector<closure_value>> result) {
      seen_.ends[static_cast<size_t>(which)].push_back(
        result.map([](const auto& values) { return std::get<int64_t>(values.at(0)); }));
    };
    caf::anon_send(coordinator_, std::move(closure));
  }

  // Waits so long that an answer that ever comes has come.
  void wait_for_all() {
    auto told = std::make_shared<bool>(false);
    caf::anon_send(coordinator_, await_closures{true, [this, told](expected<bool> how) {
                                                  *told = true;
                                                  seen_.joins.push_back(std::move(how));
                                                  seen_.open_at_join.push_back(open_calls());
                                                  return true;
                                                }});
    for (int i = 0; i < 3000 && !*told; ++i)
      pass(100ms);
  }

  [[nodiscard]] int64_t open_calls() const {
    return std::ranges::count_if(std::span{seen_.ends}.first(static_cast<size_t>(scheduled_)),
                                 [](const auto& end) { return end.empty(); });
  }

  void read_ballot() {
    puppet reader{world};
    auto answer = reader.ask<msg<wire::VariableSnapshot>>(owner_, make_read_variable());
    settle();
    const auto& snapshot = answer.value();
    auto value = read_tensor(snapshot.reader().getValue(), snapshot.owner());
    auto numbers = value.values<float>();
    seen_.ballot.assign(numbers.begin(), numbers.end());
  }

  course seen_;
  random_stream draw_;
  uint32_t worker_count_;
  simulated_network network_;
  variable_owner_actor owner_;
  coordinator_actor coordinator_;
  uint64_t lives_ = 0;
  std::vector<std::optional<puppet>> bystanders_;
  std::vector<answer<msg<wire::ServiceEnded>>> released_;
  int64_t scheduled_ = 0;
};

// ---- what must hold ----

bool is_in_round_of(int64_t call, int64_t other) {
  return other != nowhere && call / calls_of_round == other / calls_of_round;
}

std::string complaint_about(const course& seen, int64_t call) {
  auto at = static_cast<size_t>(call);
  if (seen.ends[at].size() != 1)
    return fmt::format("call {} has {} ends", call, seen.ends[at].size());
  const auto& end = seen.ends[at].front();
  if (seen.ballot[at] > static_cast<float>(seen.begun[at]))
    return fmt::format("call {} counts {} times, and was begun {} times", call, seen.ballot[at],
                       seen.begun[at]);
  if (!end) {
    auto expected_code = call == seen.fails ? errc::out_of_range : errc::cancelled;
    if (is_in_round_of(call, seen.fails) && end.error().code == expected_code) return {};
    return fmt::format("call {} failed: {}", call, end.error().message);
  }
  if (call == seen.fails) return fmt::format("call {} did not fail", call);
  if (*end != call * call) return fmt::format("call {} returned {}", call, *end);
  if (seen.ballot[at] < 1) return fmt::format("call {} returned, and changed nothing", call);
  return {};
}

std::string judge(const course& seen) {
  for (int64_t call = 0; call < calls; ++call)
    if (auto complaint = complaint_about(seen, call); !complaint.empty()) return complaint;
  auto failed = std::ranges::count_if(seen.joins, [](const auto& join) { return !join; });
  auto expected_failures = seen.fails == nowhere ? 0 : 1;
  if (failed != expected_failures
      || seen.joins.size() != static_cast<size_t>(rounds + expected_failures))
    return fmt::format("{} joins ended, {} of them failed", seen.joins.size(), failed);
  if (!std::ranges::all_of(seen.open_at_join, [](auto open) { return open == 0; }))
    return "a join ended before its calls";
  auto begun = std::accumulate(seen.begun.begin(), seen.begun.end(), uint32_t{0});
  if (begun > calls + seen.lost_calls)
    return fmt::format("{} calls were begun, and {} lost", begun, seen.lost_calls);
  if (!seen.has_ended) return "the coordinator did not end";
  if (seen.bystanders_left > 0)
    return fmt::format("{} processes wait for the end", seen.bystanders_left);
  return {};
}

bool are_alike(const course& one, const course& other) {
  return one.begun == other.begun && one.ballot == other.ballot && one.losses == other.losses
         && one.ends == other.ends;
}

} // namespace

TEST_SUITE("sim/closures") {
  TEST_CASE("every call has one end, whatever becomes of workers, and no join hangs") {
    uint32_t lost_calls = 0;
    uint32_t repeated = 0;
    uint32_t failures = 0;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      auto seen = closure_job{seed}.run();
      CHECK_MESSAGE(judge(seen).empty(), fmt::format("seed {}: {}", seed, judge(seen)));
      lost_calls += seen.lost_calls;
      repeated += static_cast<uint32_t>(
        std::ranges::count_if(seen.ballot, [](auto times) { return times > 1; }));
      failures += seen.fails == nowhere ? 0 : 1;
    }
    CHECK(lost_calls > seeds / 2); // else nothing was tried
    CHECK(repeated > 0);           // made twice: the first worker was lost on its way to say so
    CHECK(failures > 0);
  }

  TEST_CASE("all workers of a coordinator are told of its loss, however it is lost") {
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      INFO("seed ", seed);
      for (const auto& reason : closure_job{seed}.lose_coordinator()) {
        CHECK(reason.code == errc::unavailable);
        CHECK(reason.message.find("chief") != std::string::npos);
      }
    }
  }

  TEST_CASE("a seed is a course") {
    for (uint64_t seed : {3, 17})
      CHECK(are_alike(closure_job{seed}.run(), closure_job{seed}.run()));
  }
}

} // namespace closures_test
