// SPDX-License-Identifier: Apache-2.0
// Goal: every process gets what a plain loop makes of all contributions, or is told which process
// is to blame that it does not. Method: groups in a virtual world, all kinds, sizes, lengths and
// types.
#include "kernels/tensor/elements.hpp"
#include "tests/actors/collective/collective_group.hpp"

#include <cmath>
#include <optional>

namespace communicator_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr dtype every_dtype[]
  = {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64};

// The contributions of the processes, `local` each.
std::vector<std::vector<tensor>> contributions(uint32_t size, uint32_t local, dtype type,
                                               const shape& extents) {
  std::vector<std::vector<tensor>> result(size);
  for (uint32_t i = 0; i < size * local; ++i)
    result[i / local].push_back(sample(type, extents, i));
  return result;
}

std::vector<tensor> flat(const std::vector<std::vector<tensor>>& values) {
  std::vector<tensor> result;
  for (const auto& some : values)
    result.insert(result.end(), some.begin(), some.end());
  return result;
}

collective_call sum_of(std::string name, std::vector<tensor> values) {
  return {.kind = collective_kind::all_reduce,
          .name = std::move(name),
          .contributions = std::move(values)};
}

tensor ones(int64_t count, dtype type = dtype::f32) {
  return filled(type, {count}, 1);
}

// Whether two tensors differ by roundings alone.
bool is_near(const tensor& a, const tensor& b) {
  auto bound = element_bytes(a.type()) == 2 ? 4.0 : 1e-3;
  auto far = [&]<class T>(T) {
    for (size_t i = 0; i < a.element_count(); ++i)
      if (std::abs(widen<double>(a.values<T>()[i]) - widen<double>(b.values<T>()[i])) > bound)
        return true;
    return false;
  };
  bool is_far = false;
  if (is_floating(a.type())) visit_floating(a.type(), [&](auto zero) { is_far = far(zero); });
  return !is_far;
}

} // namespace

TEST_SUITE("actors/collective/communicator") {
  TEST_CASE("an all_reduce is the left fold over all replicas, whatever their split") {
    for (auto type : every_dtype)
      for (auto [size, local] : {std::pair{1U, 4U}, {2U, 2U}, {4U, 1U}, {5U, 1U}, {3U, 3U}})
        for (int64_t length : {0, 1, 7, 1003}) {
          communicator_group group{size};
          auto values = contributions(size, local, type, {length});
          std::vector<answer<collective_result>> answers;
          for (uint32_t rank = 0; rank < size; ++rank)
            answers.push_back(group.call(rank, sum_of("a", values[rank])));
          auto wanted = folded(flat(values));
          for (const auto& one : answers)
            CHECK(is_same(one.value().value, wanted));
        }
  }

  TEST_CASE("every algorithm gives all processes the same sum") {
    using enum collective_algorithm;
    for (auto algorithm : {direct, chain, ring, halving_doubling, tree, all_to_all})
      for (auto type : every_dtype)
        for (uint32_t size = 1; size <= 5; ++size)
          for (auto [local, length] : {std::pair{1U, 1}, {2U, 77}, {1U, 300'001}}) {
            CAPTURE(static_cast<int>(algorithm));
            CAPTURE(to_string(type));
            CAPTURE(size);
            CAPTURE(length);
            if (length > 1000 && type != dtype::f32 && type != dtype::bf16) continue;
            auto keeps_order = algorithm == direct || algorithm == chain || algorithm == all_to_all;
            communicator_group group{size};
            auto values = contributions(size, local, type, {length});
            std::vector<answer<collective_result>> answers;
            for (uint32_t rank = 0; rank < size; ++rank) {
              auto call = sum_of("a", values[rank]);
              call.algorithm = algorithm;
              call.fixed_order = keeps_order;
              answers.push_back(group.call(rank, std::move(call)));
            }
            auto wanted = folded(flat(values));
            for (const auto& one : answers) {
              CHECK(is_same(one.value().value, answers[0].value().value));
              if (keeps_order || !is_floating(type)) CHECK(is_same(one.value().value, wanted));
              CHECK(is_near(one.value().value, wanted));
            }
          }
  }

  TEST_CASE("a sum in place has the same bits, and lies where the contribution lay") {
    using enum collective_algorithm;
    auto sums_of = [](uint32_t size, collective_call call, dtype type, const shape& extents) {
      communicator_group group{size};
      std::vector<answer<collective_result>> answers;
      std::vector<std::pair<const void*, tensor>> result; // where the contribution lay, and the sum
      for (uint32_t rank = 0; rank < size; ++rank) {
        call.contributions = {sample(type, extents, rank)};
        result.emplace_back(call.contributions[0].data(), tensor{});
        answers.push_back(group.call(rank, call));
      }
      for (uint32_t rank = 0; rank < size; ++rank)
        result[rank].second = answers[rank].value().value;
      return result;
    };
    for (auto algorithm : {direct, chain, ring, halving_doubling, tree, all_to_all})
      for (auto type : {dtype::f32, dtype::f16, dtype::i32})
        for (uint32_t size = 1; size <= 5; ++size)
          for (int64_t length : {0, 1, 77, 300'001}) {
            CAPTURE(static_cast<int>(algorithm));
            CAPTURE(size);
            CAPTURE(length);
            auto call = sum_of("a", {});
            call.algorithm = algorithm;
            call.fixed_order = algorithm == direct || algorithm == chain || algorithm == all_to_all;
            auto apart = sums_of(size, call, type, {length});
            call.in_place = true;
            auto in_place = sums_of(size, call, type, {length});
            for (uint32_t rank = 0; rank < size; ++rank) {
              auto& [memory, sum] = in_place[rank];
              CHECK(is_same(sum, apart[rank].second));
              auto goes_directly = algorithm == direct || size == 1 || length == 0;
              if (length > 0) CHECK((sum.data() == memory) != goes_directly);
            }
          }
  }

  TEST_CASE("results are expected in their places while a call is under way, and no longer") {
    communicator_group group{3};
    auto call = sum_of("a", {ones(300'000)});
    call.algorithm = collective_algorithm::all_to_all;
    auto expects = [&](uint32_t rank) { return group.arrays->expects(group.members[rank].id()); };
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK_FALSE(expects(rank));
    auto first = group.call(0, call);
    auto second = group.call(1, call);
    CHECK(expects(0));
    auto third = group.call(2, call);
    CHECK(first.value().value.values<float>()[299'999] == 3);
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK_FALSE(expects(rank));
    auto ended = group.call(0, call);
    auto failed = group.call(1, call);
    CHECK(expects(0));
    CHECK(expects(1));
    caf::anon_send_exit(group.members[0], caf::exit_reason::kill);
    group.settle();
    CHECK(failed.error().code == errc::unavailable);
    CHECK_FALSE(expects(0));
    CHECK_FALSE(expects(1));
  }

  TEST_CASE("sums in any order are the same everywhere, however many replicas there are") {
    for (auto type : {dtype::f32, dtype::f16})
      for (uint32_t size : {2U, 3U}) {
        communicator_group group{size};
        auto values = contributions(size, 3, type, {1003});
        std::vector<answer<collective_result>> answers;
        for (uint32_t rank = 0; rank < size; ++rank) {
          auto call = sum_of("a", values[rank]);
          call.fixed_order = false;
          answers.push_back(group.call(rank, std::move(call)));
        }
        for (const auto& one : answers)
          CHECK(is_same(one.value().value, answers[0].value().value));
      }
  }

  TEST_CASE("an algorithm that keeps no order refuses to keep it") {
    communicator_group group{2};
    auto call = sum_of("a", {ones(3)});
    call.algorithm = collective_algorithm::ring;
    auto a0 = group.call(0, call);
    auto a1 = group.call(1, call);
    CHECK(a0.error().code == errc::invalid_argument);
    CHECK(a0.error().message
          == "worker:0: all_reduce 'a' by ring in fixed order: it adds up in an order of its own; "
             "give fixed_order = false, or another algorithm");
    CHECK(a1.error() == a0.error());
  }

  TEST_CASE("an all_gather lays rows behind each other, as many as each process has") {
    communicator_group group{3};
    std::vector<answer<collective_result>> answers;
    std::vector<float> wanted;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      auto mine = sample(dtype::f32, {rank + 1, 2}, rank);
      auto other = sample(dtype::f32, {2, 2}, rank + 10);
      for (const auto& one : {mine, other})
        wanted.insert(wanted.end(), one.values<float>().begin(), one.values<float>().end());
      answers.push_back(group.call(
        rank,
        {.kind = collective_kind::all_gather, .name = "rows", .contributions = {mine, other}}));
    }
    for (const auto& one : answers)
      CHECK(is_same(one.value().value, make_tensor({12, 2}, wanted)));
  }

  TEST_CASE("a reduce_scatter gives each process its rows of the sum") {
    for (auto [size, rows] : {std::pair{1U, 3}, {2U, 5}, {3U, 2}, {4U, 1003}}) {
      communicator_group group{size};
      auto values = contributions(size, 2, dtype::f32, {rows, 3});
      std::vector<answer<collective_result>> answers;
      for (uint32_t rank = 0; rank < size; ++rank)
        answers.push_back(group.call(
          rank,
          {.kind = collective_kind::reduce_scatter, .name = "s", .contributions = values[rank]}));
      auto sum = folded(flat(values));
      for (uint32_t rank = 0; rank < size; ++rank) {
        auto mine = rows_of({rank, size}, static_cast<uint64_t>(rows));
        auto wanted = sum.slice(static_cast<int64_t>(mine.begin), static_cast<int64_t>(mine.end));
        CHECK(is_same(answers[rank].value().value, wanted.clone()));
      }
    }
  }

  TEST_CASE("a broadcast gives all what the root has") {
    communicator_group group{3};
    std::vector<answer<collective_result>> answers;
    for (uint32_t rank = 0; rank < 3; ++rank)
      answers.push_back(group.call(rank, {.kind = collective_kind::broadcast,
                                          .name = "w",
                                          .contributions = {sample(dtype::i64, {3, 5}, rank)},
                                          .root = 1}));
    for (const auto& one : answers)
      CHECK(is_same(one.value().value, sample(dtype::i64, {3, 5}, 1)));
  }

  TEST_CASE("no process leaves a barrier before all have come") {
    communicator_group group{3};
    auto first = group.call(0, {.name = "all there"});
    auto second = group.call(2, {.name = "all there"});
    CHECK_FALSE(first.has_come());
    CHECK_FALSE(second.has_come());
    auto third = group.call(1, {.name = "all there"});
    CHECK(first.value().value.element_count() == 0);
    CHECK(second.has_come());
    CHECK(third.has_come());
  }

  TEST_CASE("a process may be calls ahead of the others, and several are under way at a time") {
    communicator_group group{2};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    auto b0 = group.call(0, sum_of("b", {ones(2)}));
    auto a1 = group.call(1, sum_of("a", {ones(3)}));
    CHECK(a0.value().value.values<float>()[0] == 2);
    CHECK_FALSE(b0.has_come());
    auto b1 = group.call(1, sum_of("b", {ones(2)}));
    CHECK(b0.value().value.element_count() == 2);
    CHECK(a1.has_come());
    CHECK(b1.has_come());
  }

  TEST_CASE("calls that are made before the peers are known wait for them") {
    communicator_group group{2, false};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    group.meet(1);
    auto a1 = group.call(1, sum_of("a", {ones(3)}));
    CHECK_FALSE(a1.has_come());
    group.meet(0);
    CHECK(a0.value().value.values<float>()[0] == 2);
    CHECK(a1.value().value.values<float>()[0] == 2);
  }

  TEST_CASE("processes that do not call the same are named, with what they call") {
    communicator_group group{3};
    auto a0 = group.call(0, sum_of("b", {ones(4)}));
    auto a1 = group.call(1, sum_of("a", {ones(3)}));
    auto a2 = group.call(2, sum_of("b", {ones(4)}));
    for (const auto& one : {a0, a1, a2})
      CHECK(one.error().code == errc::invalid_argument);
    CHECK(a0.error().message
          == "worker:1 calls all_reduce 'a' of f32 [3], worker:0 all_reduce 'b' of f32 [4]; all "
             "processes must make the same calls in the same order");
    auto later = group.call(2, {.name = "later"});
    CHECK(later.error() == a2.error());
  }

  TEST_CASE("a process that is gone fails the calls that need it at once, and all later ones") {
    communicator_group group{3};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    auto a1 = group.call(1, sum_of("a", {ones(3)}));
    caf::anon_send_exit(group.members[2], caf::exit_reason::kill);
    group.settle();
    CHECK(a0.error().code == errc::unavailable);
    CHECK(a0.error().message == "worker:2 is gone: it was killed");
    CHECK(a1.error().code == errc::unavailable);
    CHECK(group.call(1, {.name = "later"}).error().code == errc::unavailable);
  }

  TEST_CASE("a process that has done its part may go before others have made the call") {
    for (auto how : {caf::exit_reason::kill, caf::exit_reason::user_shutdown}) {
      communicator_group group{3};
      auto broadcast = [&](uint32_t rank) {
        return group.call(rank, {.kind = collective_kind::broadcast,
                                 .name = "end",
                                 .contributions = {ones(3)},
                                 .root = 2});
      };
      auto a2 = broadcast(2);
      CHECK(a2.has_come());
      caf::anon_send_exit(group.members[2], how);
      group.settle();
      auto a0 = broadcast(0);
      auto a1 = broadcast(1);
      CHECK(a0.value().value.element_count() == 3);
      CHECK(a1.value().value.element_count() == 3);
      auto later = group.call(0, {.name = "later"});
      CHECK(later.error().code == errc::unavailable);
    }
  }

  TEST_CASE("a process that leaves with its part undone says so") {
    communicator_group group{3};
    auto a2 = group.call(2, {.name = "end"});
    auto a0 = group.call(0, {.name = "end"});
    caf::anon_send_exit(group.members[2], caf::exit_reason::user_shutdown);
    group.settle();
    for (const auto& one : {a2, a0, group.call(1, {.name = "end"})})
      CHECK(one.error() == error{errc::unavailable, "worker:2 has left the group"});
  }

  TEST_CASE("all name the process that does not make a call in time") {
    communicator_group group{3};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    auto a1 = group.call(1, sum_of("a", {ones(3)}));
    group.pass(61s);
    CHECK(a0.error().code == errc::deadline_exceeded);
    CHECK(a0.error().message.find("waited 60.0 s in all_reduce 'a' of f32 [3] for worker:2")
          != std::string::npos);
    CHECK(a1.error().code == errc::deadline_exceeded);
    CHECK(group.call(2, sum_of("a", {ones(3)})).error().code == errc::deadline_exceeded);
  }

  TEST_CASE("the silent one is named, not a neighbour that waits for it, too") {
    communicator_group group{4};
    std::vector<answer<collective_result>> answers;
    for (uint32_t rank = 1; rank < 4; ++rank) {
      auto call = sum_of("a", {ones(3)});
      call.algorithm = collective_algorithm::chain;
      call.timeout = 10s;
      answers.push_back(group.call(rank, std::move(call)));
    }
    group.pass(11s);
    for (const auto& one : answers) {
      CHECK(one.error().code == errc::deadline_exceeded);
      CHECK(
        one.error().message.ends_with("waited 10.0 s in all_reduce 'a' of f32 [3] for worker:0"));
    }
  }

  TEST_CASE("peers hear of a failure before the caller, which may leave at once") {
    communicator_group group{2, false};
    puppet both{group.world}; // the caller, and the only peer
    caf::anon_send(group.members[0], meet_peers{{nullptr, both.as<caf::strong_actor_ptr>()}});
    std::optional<size_t> heard_before;
    auto call = [&](caf::event_based_actor* self) {
      self->request(group.members[0], caf::infinite, sum_of("a", {ones(3)}))
        .then(
          [](const collective_result&) {},
          [&](const caf::error&) { heard_before = both.heard<wire::CollectiveFailed>().size(); });
    };
    caf::anon_send(both.as<caf::actor>(), script{call});
    group.pass(61s);
    CHECK(heard_before == 1);
  }

  TEST_CASE("a part of no member is passed over, one that fits no call fails it for all") {
    communicator_group group{2};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    collective_meaning meaning{
      .kind = collective_kind::all_reduce, .contributions = 1, .name = "a", .extents = {3}};
    puppet stranger{group.world};
    auto say = [&](collective_part part) {
      stranger.tell(group.members[0], make_collective_part(meaning, part));
      group.settle();
    };
    say({.rank = 2, .stage = collective_stage::own});
    say({.rank = UINT32_MAX, .stage = collective_stage::own});
    say({.rank = 0, .stage = collective_stage::own});
    CHECK_FALSE(a0.has_come());
    say({.rank = 1, .stage = collective_stage::result, .begin = 7});
    CHECK(a0.error()
          == error{errc::malformed, "worker:1 has sent worker:0 a part that no step waits for: "
                                    "elements from 7 on, stage 3, strand 0"});
    CHECK(group.call(1, sum_of("a", {ones(3)})).error() == a0.error());
  }

  TEST_CASE("a peer that is further ahead than calls are kept for is refused") {
    communicator_group group{2};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    puppet stranger{group.world};
    stranger.tell(group.members[0],
                  make_collective_part({}, {.call = early_calls_max + 1, .rank = 1}));
    group.settle();
    CHECK_FALSE(a0.has_come());
    CHECK(group.call(0, {.name = "later"}).error().code == errc::limit_exceeded);
  }

  TEST_CASE("a failure without a reason is none") {
    communicator_group group{2};
    auto a0 = group.call(0, sum_of("a", {ones(3)}));
    puppet stranger{group.world};
    stranger.tell(group.members[0], make_collective_failed({0, 1, {errc::none, ""}}));
    group.settle();
    CHECK_FALSE(a0.has_come());
    stranger.tell(group.members[0], make_collective_failed({0, 1, {errc::resource, "no memory"}}));
    group.settle();
    CHECK(a0.error() == error{errc::resource, "no memory"});
  }
}

} // namespace communicator_test
