// SPDX-License-Identifier: Apache-2.0
// Goal: what might have to be given again is kept, and nothing else. Method: plain values.
#include "actors/replication/resend_buffer.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

namespace resend_buffer_test {

using namespace troupe;

namespace {

arrival arrival_of(uint32_t replica, uint64_t iteration) {
  return {{.replica = replica, .iteration = iteration}, {}, 3};
}

msg<wire::PushGradient> gradient_of(uint32_t replica, uint64_t iteration) {
  return make_push_gradient({.replica = replica, .iteration = iteration}, {});
}

msg<wire::TakenGradient> report_of(const std::vector<arrival>& accepted,
                                   const std::vector<arrival>& stale) {
  return make_taken_gradient(3, accepted, stale);
}

} // namespace

TEST_SUITE("actors/replication/resend_buffer") {
  TEST_CASE("a gradient is kept until its step is over") {
    resend_buffer kept;
    kept.add(gradient_of(1, 0), 4);
    kept.add(gradient_of(1, 1), 4);
    kept.add(gradient_of(1, 2), 5);
    kept.forget_before(4);
    CHECK(kept.all().size() == 3);
    kept.forget_before(5);
    REQUIRE(kept.all().size() == 1);
    CHECK(kept.all()[0].reader().getOrigin().getIteration() == 2);
    kept.forget_before(6);
    CHECK(kept.all().empty());
  }

  TEST_CASE("one that was accepted twice is kept once") {
    resend_buffer kept;
    kept.add(gradient_of(1, 0), 4);
    kept.add(gradient_of(1, 0), 4);
    CHECK(kept.all().size() == 1);
  }

  TEST_CASE("the last answer to a gradient that is given again counts, and no step before it") {
    resend_buffer kept;
    kept.add(gradient_of(1, 0), 4);
    kept.add(gradient_of(1, 1), 5);
    CHECK(kept.give_again().size() == 2);
    kept.forget_before(9);
    CHECK(kept.all().size() == 2);
    kept.add(gradient_of(1, 1), 6);
    kept.add(gradient_of(1, 0), 7);
    kept.forget_before(7);
    REQUIRE(kept.all().size() == 1);
    CHECK(kept.all()[0].reader().getOrigin().getIteration() == 0);
  }

  TEST_CASE("one that is refused when it is given again is not kept") {
    resend_buffer kept;
    kept.add(gradient_of(1, 0), 4);
    kept.add(gradient_of(2, 0), 4);
    static_cast<void>(kept.give_again());
    kept.forget({.replica = 1, .iteration = 0});
    REQUIRE(kept.all().size() == 1);
    CHECK(kept.all()[0].reader().getOrigin().getReplica() == 2);
  }

  TEST_CASE("the last gradient that a variable has stands for all before it") {
    resend_buffer kept;
    for (uint64_t iteration : {3, 4, 5})
      kept.add(gradient_of(1, iteration), 9);
    kept.add(gradient_of(2, 0), 9);
    kept.forget_through(std::vector<gradient_id>{{0, 7}, {1, 4}});
    REQUIRE(kept.all().size() == 2);
    CHECK(kept.all()[0].reader().getOrigin().getIteration() == 5);
    CHECK(kept.all()[1].reader().getOrigin().getReplica() == 2);
  }

  TEST_CASE("a replica that gave a gradient that the variable has goes on when its step is over") {
    closed_step closed{.step = 3, .accepted = {arrival_of(0, 7)}, .latest = {{0, 7}, {1, 5}}};
    CHECK(step_with(closed, {.replica = 0, .iteration = 7}) == 4);
    CHECK(step_with(closed, {.replica = 0, .iteration = 6}) == 3);
    CHECK(step_with(closed, {.replica = 1, .iteration = 5}) == 3);
    CHECK_FALSE(step_with(closed, {.replica = 1, .iteration = 6}));
    CHECK_FALSE(step_with(closed, {.replica = 2, .iteration = 0}));
  }

  TEST_CASE("the last step says what became of its gradients, and nothing of others") {
    closed_step closed{.step = 3, .accepted = {arrival_of(0, 7)}, .stale = {arrival_of(1, 6)}};
    CHECK(verdict_of(closed, {.replica = 0, .iteration = 7}) == verdict::accepted);
    CHECK(verdict_of(closed, {.replica = 1, .iteration = 6}) == verdict::stale);
    CHECK_FALSE(verdict_of(closed, {.replica = 1, .iteration = 7}));
  }

  TEST_CASE("a second report of a step amends the first by what that did not have") {
    auto first = report_of({arrival_of(0, 7), arrival_of(1, 7)}, {arrival_of(2, 6)});
    CHECK(amendment(first, first).is_empty());
    auto second = report_of({arrival_of(1, 7), arrival_of(3, 7), arrival_of(0, 7)}, {});
    auto more = amendment(second, first);
    REQUIRE_FALSE(more.is_empty());
    CHECK(more.reader().getAmends());
    CHECK(more.reader().getStep() == 3);
    auto accepted = read_arrivals(more.reader().getAccepted());
    REQUIRE(accepted.size() == 1);
    CHECK(accepted[0].from.replica == 3);
    CHECK(more.reader().getStale().size() == 0);
    auto both = amended(first, more);
    CHECK_FALSE(both.reader().getAmends());
    CHECK(both.reader().getStep() == 3);
    CHECK(both.reader().getAccepted().size() == 3);
    CHECK(both.reader().getStale().size() == 1);
    CHECK(amendment(second, both).is_empty());
  }
}

} // namespace resend_buffer_test
