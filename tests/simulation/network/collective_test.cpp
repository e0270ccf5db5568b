// SPDX-License-Identifier: Apache-2.0
// Goal: processes combine arrays over a simulated network as over any other, and each time alike;
// and if one is lost, no other waits for ever. Method: groups in a virtual world, with one seed
// twice, and with troubles drawn from many.
#include "actors/collective/collective_group.hpp"
#include "actors/world/ask.hpp"
#include "kernels/tensor/random.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/simulation/network/process_placement.hpp"
#include "tests/simulation/virtual_programs.hpp"

#include <array>
#include <optional>

namespace collective_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t group_size = 4;
constexpr uint32_t calls_of_each = 3;
constexpr job_time deadline = 10s;
constexpr job_time silence_timeout = 2s;

/// A fault of one member of a group amid its calls, drawn from a seed.
struct trouble {
  enum class kind : uint8_t { crash, cut_off, unheard, frozen, absent };

  explicit trouble(uint64_t seed) {
    random_stream draw{random_key{seed, "trouble", 0, 0}};
    what = static_cast<kind>(draw.below(5));
    who = static_cast<uint32_t>(draw.below(group_size));
    at = job_time{static_cast<int64_t>(8e7 * draw.uniform())};
    length = job_time{static_cast<int64_t>(5e9 * draw.uniform())};
    is_ring = draw.below(2) == 1;
  }

  // A process that comes back within the network's timeout is not given up.
  [[nodiscard]] bool passes() const {
    return what != kind::crash && what != kind::absent && length < silence_timeout;
  }

  kind what;
  uint32_t who;
  job_time at;
  job_time length;
  bool is_ring; ///< How the group adds.
};

/// A group that makes its calls, and what has come of them.
class troubled_group : deterministic_world {
public:
  explicit troubled_group(uint64_t seed)
    : deterministic_world{seed}, drawn{seed}, network_{world, group_size, options_of(seed)} {
    collective_group_options options{.size = group_size, .deadline = deadline};
    members_ = join_collective_group(world, network_.placement(), options).value();
    plan();
    for (uint32_t rank = 0; rank < group_size; ++rank) {
      auto stays_away = drawn.what == trouble::kind::absent && rank == drawn.who;
      make_calls(rank, stays_away ? 1 : calls_of_each);
    }
    pass(deadline + deadline / 4); // missing processes are looked for eight times in a deadline
  }

  ~troubled_group() {
    for (auto& member : members_)
      caf::anon_send_exit(member, caf::exit_reason::kill);
    settle();
  }

  // Whole numbers: their sum is the same in any order.
  static tensor contribution(uint32_t rank, uint32_t call) {
    auto result = zeros({5003});
    auto values = result.mutable_values<float>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 37 + size_t{rank} * 101 + call) % 1009);
    return result;
  }

  static tensor sum_of(uint32_t call) {
    std::vector<tensor> all;
    for (uint32_t rank = 0; rank < group_size; ++rank)
      all.push_back(contribution(rank, call));
    return folded(all);
  }

private:
  static network_options options_of(uint64_t seed) {
    return {.latency =
              [seed](const passage& one) {
                random_stream late{random_key{seed, "latency", one.end, one.count}};
                return job_time{static_cast<int64_t>(2e7 * late.uniform())};
              },
            .silence_timeout = silence_timeout,
            .seed = seed};
  }

  // By one actor, because calls are matched by counting.
  void make_calls(uint32_t rank, uint32_t count) {
    answers[rank].resize(count);
    spawn([this, rank, count](caf::event_based_actor* self) {
      for (uint32_t call = 0; call < count; ++call) {
        collective_call said{.kind = collective_kind::all_reduce,
                             .name = "sum",
                             .contributions = {contribution(rank, call)},
                             .fixed_order = !drawn.is_ring};
        if (drawn.is_ring) said.algorithm = collective_algorithm::ring;
        auto* answer = &answers[rank][call];
        self->request(members_[rank], caf::infinite, said)
          .then([answer](const collective_result& result) { answer->emplace(result.value); },
                [answer](const caf::error& why) {
                  answer->emplace(tl::unexpected<error>(from_caf(why)));
                });
      }
    });
  }

  void plan() {
    using kind = trouble::kind;
    auto node = network_.nodes().replica_node(drawn.who);
    auto is_it = [node](node_index one) { return one == node; };
    network_.events().at(drawn.at, [this, node, is_it] {
      if (drawn.what == kind::crash) network_.crash(node);
      if (drawn.what == kind::frozen) network_.freeze(node);
      if (drawn.what == kind::cut_off) cuts_.push_back(network_.sever({.from = {}, .to = is_it}));
      if (drawn.what == kind::cut_off || drawn.what == kind::unheard)
        cuts_.push_back(network_.sever({.from = is_it, .to = {}}));
    });
    network_.events().at(drawn.at + drawn.length, [this, node] {
      if (drawn.what == kind::frozen) network_.thaw(node);
      for (auto cut : cuts_)
        network_.heal(cut);
    });
  }

public:
  const trouble drawn;
  /// By rank and call, if it has come.
  std::array<std::vector<std::optional<expected<tensor>>>, group_size> answers;

private:
  simulated_network network_;
  std::vector<communicator_actor> members_;
  std::vector<uint64_t> cuts_;
};

// The fault of a member's answer; empty if it has none.
std::string complaint_about(const troubled_group& group, uint32_t rank, uint32_t call) {
  auto has_gone = group.drawn.what == trouble::kind::crash && rank == group.drawn.who;
  const auto& one = group.answers[rank][call];
  if (!one) return has_gone ? "" : "waits for ever"; // the caller goes with its process
  const auto& result = *one;
  if (result) return is_same(*result, troubled_group::sum_of(call)) ? "" : "has another sum";
  if (group.drawn.passes()) return "does not outlast what passes: " + result.error().message;
  if (rank == group.drawn.who) return {}; // knows only that others are not there
  auto culprit = fmt::format("worker:{}", group.drawn.who);
  return result.error().message.find(culprit) == std::string::npos
           ? fmt::format("does not name {}: {}", culprit, result.error().message)
           : "";
}

} // namespace

TEST_SUITE("simulation/network/collective") {
  TEST_CASE("a group agrees in a virtual world, over a simulated network, again and again alike") {
    auto play = [](uint64_t seed) {
      deterministic_world stage{seed};
      simulated_network network{
        stage.world, 4, {.latency = [](const passage& one) { return 1ms + one.count * 10us; }}};
      auto members = join_collective_group(stage.world, network.placement(), {.size = 4}).value();
      std::vector<puppet> callers;
      std::vector<answer<collective_result>> answers;
      std::vector<tensor> all;
      for (uint32_t rank = 0; rank < 4; ++rank) {
        callers.emplace_back(stage.world);
        all.push_back(sample(dtype::f32, {400'003}, rank));
        answers.push_back(callers[rank].ask<collective_result>(
          members[rank], collective_call{.kind = collective_kind::all_reduce,
                                         .name = "sum",
                                         .contributions = {all[rank]}}));
      }
      stage.pass(1s);
      for (const auto& one : answers)
        CHECK(is_same(one.value().value, folded(all)));
      for (auto& member : members)
        caf::anon_send_exit(member, caf::exit_reason::kill);
      stage.settle();
      return stage.world.event_count();
    };
    auto events = play(7);
    CHECK(play(7) == events);
  }

  TEST_CASE(
    "a process that leaves before it has met all is missed at once by those that have met it") {
    deterministic_world stage;
    simulated_network network{stage.world, 3, {.latency = [](const passage&) { return 1ms; }}};
    std::vector<error> reasons(3);
    virtual_programs programs{stage.world};
    auto add = [&](uint32_t rank, job_time late, job_time start_deadline) {
      programs.add(fmt::format("worker:{}", rank), [&, rank, late, start_deadline](world& own) {
        auto come = std::make_shared<std::promise<void>>();
        auto due = come->get_future();
        network.events().at(late, [come] { come->set_value(); });
        REQUIRE(own.run_until(due));
        process_placement here{
          own, network, {"worker:0", "worker:1", "worker:2"}, rank, start_deadline};
        auto members = join_collective_group(own, here, {.size = 3, .deadline = deadline});
        if (!members) return static_cast<void>(reasons[rank] = members.error());
        auto sum = ask<collective_result>(
          own, (*members)[rank],
          collective_call{.kind = collective_kind::barrier, .name = "all there"});
        REQUIRE(!sum);
        reasons[rank] = sum.error();
        CHECK(own.now() < 2100ms); // and not at the deadline
        caf::anon_send_exit((*members)[rank], caf::exit_reason::user_shutdown);
      });
    };
    add(0, 0s, 1s); // waits in vain, and is gone
    add(1, 500ms, 5s);
    add(2, 2s, 5s);
    programs.play();
    const std::string waited = "waited 1.0 s for 'communicator 2' at worker:2";
    CHECK(reasons[0] == error{errc::deadline_exceeded, waited});
    for (uint32_t rank : {1, 2})
      CHECK(reasons[rank] == error{errc::unavailable, "worker:0 is gone: " + waited});
  }

  TEST_CASE("if a process is lost amid collectives, all get the sum, or its name, in time") {
    uint32_t sums = 0;
    uint32_t errors = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      troubled_group group{seed};
      for (uint32_t rank = 0; rank < group_size; ++rank)
        for (uint32_t call = 0; call < group.answers[rank].size(); ++call) {
          auto complaint = complaint_about(group, rank, call);
          CHECK_MESSAGE(complaint.empty(),
                        fmt::format("seed {}, trouble {} of {}: call {} of worker:{} {}", seed,
                                    static_cast<int>(group.drawn.what), group.drawn.who, call, rank,
                                    complaint));
          auto& answer = group.answers[rank][call];
          answer&&* answer ? ++sums : ++errors;
        }
    }
    CHECK(sums > 60); // else nothing was tried
    CHECK(errors > 60);
  }
}

} // namespace collective_test
