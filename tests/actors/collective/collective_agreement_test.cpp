// SPDX-License-Identifier: Apache-2.0
// Goal: a call means the same to all, and what is wrong with it is said in one line. Method: tables
// of calls.
#include "actors/collective/collective_agreement.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/checks/limits.hpp"
#include "tests/doctest.hpp"

#include <algorithm>

namespace collective_agreement_test {

using namespace troupe;

namespace {

tensor ones(std::vector<int64_t> extents, dtype type = dtype::f32) {
  return filled(type, shape{std::move(extents)}, 1);
}

error refusal(const collective_call& call, group_place place = {0, 2}) {
  auto meaning = meaning_of(call, place);
  REQUIRE_FALSE(meaning);
  return meaning.error();
}

collective_algorithm chosen(uint32_t size, int64_t elements, size_t replicas = 1,
                            bool fixed_order = true) {
  collective_call call{.kind = collective_kind::all_reduce,
                       .name = "a",
                       .contributions = std::vector(replicas, ones({elements})),
                       .fixed_order = fixed_order};
  return meaning_of(call, {0, size}).value().algorithm;
}

// How many processes add up a slice of an all_reduce of f32.
size_t adding_processes(uint32_t size, int64_t elements) {
  collective_call call{.kind = collective_kind::all_reduce,
                       .name = "a",
                       .contributions = {ones({elements})},
                       .algorithm = collective_algorithm::all_to_all};
  size_t adding = 0;
  for (uint32_t rank = 0; rank < size; ++rank) {
    group_place place{rank, size};
    auto plan = plan_of(meaning_of(call, place).value(), place);
    adding += std::ranges::any_of(plan.strands.at(0), [](const plan_step& step) {
      return step.action == step_action::sum_kept;
    });
  }
  return adding;
}

} // namespace

TEST_SUITE("actors/collective/collective_agreement") {
  TEST_CASE("a call that cannot be meant is refused, and says why") {
    CHECK(refusal({.kind = collective_kind::all_reduce, .name = "a"})
          == error{errc::invalid_argument, "all_reduce 'a' with 0 contributions; a barrier takes "
                                           "none, all others one for each replica"});
    CHECK(refusal({.name = "b", .contributions = {ones({3})}}).code == errc::invalid_argument);
    CHECK(
      refusal(
        {.kind = collective_kind::all_reduce, .name = "a", .contributions = {ones({3}), ones({4})}})
      == error{errc::invalid_argument,
               "all_reduce 'a': replica 1 gives f32 [4], replica 0 f32 [3]; all give the same"});
    CHECK(refusal({.kind = collective_kind::all_gather,
                   .name = "a",
                   .contributions = {ones({3, 2}), ones({4, 3})}})
            .code
          == errc::invalid_argument);
    CHECK(refusal({.kind = collective_kind::all_reduce,
                   .name = "a",
                   .contributions = {ones({3}), ones({3}, dtype::f64)}})
            .code
          == errc::invalid_argument);
    CHECK(
      refusal(
        {.kind = collective_kind::broadcast, .name = "w", .contributions = {ones({3})}, .root = 2})
      == error{errc::invalid_argument, "broadcast 'w' from rank 2; there are 2"});
    CHECK(
      refusal({.kind = collective_kind::reduce_scatter, .name = "s", .contributions = {ones({})}})
      == error{errc::invalid_argument,
               "reduce_scatter 's' of scalars has no axis 0; give tensors of rank 1 or more"});
    CHECK(
      refusal({.kind = collective_kind::all_gather,
               .name = "a",
               .contributions = {ones(std::vector<int64_t>(33, 1))}})
      == error{errc::limit_exceeded, "all_gather 'a' of 33 dimensions; at most 32 are possible"});
    CHECK(refusal({.kind = collective_kind::all_reduce,
                   .name = "a",
                   .contributions = std::vector(257, ones({1}))})
          == error{errc::limit_exceeded,
                   "all_reduce 'a' with 257 contributions; a process gives at most 256"});
    CHECK(refusal({.name = std::string(limits::text_bytes_max + 1, 'x')}).code
          == errc::limit_exceeded);
  }

  TEST_CASE("what differs between two calls is said of both") {
    collective_meaning a{.kind = collective_kind::broadcast,
                         .contributions = 1,
                         .root = 0,
                         .name = "w",
                         .extents = {2}};
    auto b = a;
    b.root = 1;
    b.contributions = 2;
    b.algorithm = collective_algorithm::tree;
    CHECK(describe(a, a) == "broadcast 'w' of f32 [2]");
    CHECK(describe(a, b) == "broadcast 'w' of f32 [2] from 1 replica from rank 0 by direct");
    CHECK(describe(b, a) == "broadcast 'w' of f32 [2] from 2 replicas from rank 1 by tree");
    auto c = a;
    c.fixed_order = false;
    CHECK(describe(c, a) == "broadcast 'w' of f32 [2] in any order");
    CHECK(describe(a, c) == "broadcast 'w' of f32 [2] in fixed order");
    CHECK(describe({.name = "b"}, {.name = "b"}) == "barrier 'b'");
  }

  TEST_CASE("the algorithm follows from processes, bytes and order") {
    using enum collective_algorithm;
    CHECK(chosen(1, 1 << 24) == direct);
    CHECK(chosen(2, 1 << 20) == direct);
    CHECK(chosen(2, 1 << 24) == all_to_all);
    CHECK(chosen(3, 43'690) == direct);
    CHECK(chosen(3, 43'691) == all_to_all);
    CHECK(chosen(3, 1, 2) == direct);
    CHECK(chosen(4, 1) == all_to_all);
    CHECK(chosen(4, 16'384, 2) == all_to_all);
    CHECK(chosen(4, 16'385, 2) == chain);
    CHECK(chosen(2, 1 << 24, 4) == chain);
    CHECK(chosen(2, 1 << 20, 4, false) == direct);
    CHECK(chosen(4, 1 << 24, 4, false) == all_to_all);
    CHECK(chosen(4, 0) == direct);
  }

  TEST_CASE("as many processes add up as take in 128 KiB each, and at least one") {
    CHECK(adding_processes(4, 1) == 1);
    CHECK(adding_processes(4, 21'845) == 1);
    CHECK(adding_processes(4, 21'846) == 2);
    CHECK(adding_processes(4, 1 << 24) == 4);
    CHECK(adding_processes(32, 20'480) == 19);
  }

  TEST_CASE("processes meet, though they have nothing to send") {
    for (auto kind : {collective_kind::all_reduce, collective_kind::all_gather,
                      collective_kind::reduce_scatter, collective_kind::broadcast})
      for (uint32_t rank = 1; rank < 5; ++rank) {
        CAPTURE(static_cast<int>(kind));
        collective_call call{.kind = kind, .name = "a", .contributions = {ones({0, 3})}};
        group_place place{rank, 5};
        auto plan = plan_of(meaning_of(call, place).value(), place);
        CHECK(std::ranges::any_of(plan.strands.at(0),
                                  [](const plan_step& step) { return is_receiving(step.action); }));
      }
  }
}

} // namespace collective_agreement_test
