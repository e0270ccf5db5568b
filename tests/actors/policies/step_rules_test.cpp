// SPDX-License-Identifier: Apache-2.0
// Goal: what the chief decides about a step needs no actor. Method: each rule asked by itself.
#include "actors/policies/step_rules.hpp"
#include "tests/doctest.hpp"

namespace step_rules_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr dynamic_backups by_power{.gain = gain_model::power, .power = 1};

} // namespace

TEST_SUITE("actors/policies/step_rules") {
  TEST_CASE("the first step waits for what the options say, or for the replicas that are left") {
    backup_choice choice{by_power};
    CHECK(choose_needed(choice, 3, {.expected = {0, 1, 2, 3}, .left = 4}, 0s) == 3);
    CHECK(choose_needed(choice, 3, {.expected = {0}, .left = 2}, 0s) == 2);
    CHECK(choose_needed(choice, 3, {.expected = {}, .left = 0}, 0s) == 1);
  }

  TEST_CASE("a step after one that is known waits for what is chosen, if replicas are there") {
    backup_choice choice{by_power};
    choice.add({.step = 1, .accepted = {{.replica = 0, .arrived = 1s}}}, {});
    CHECK(choose_needed(choice, 3, {.expected = {0, 1, 2, 3}, .left = 4}, 1s) == 4);
    CHECK(choose_needed(choice, 3, {.expected = {0, 1, 2, 3}, .left = 4}, 9s) == 1);
    CHECK(choose_needed(choice, 3, {.expected = {}, .left = 2}, 1s) == 2);
  }

  TEST_CASE("live replicas whose gradients a step did not take are told to stop") {
    step_record step{.step = 5, .ended = 9s, .accepted = {{.replica = 4}, {.replica = 1}}};
    std::vector<uint32_t> live{0, 1, 3};
    auto cancelled = cancelled_by(step, live);
    REQUIRE(cancelled.size() == 2);
    CHECK(cancelled[0].replica == 0);
    CHECK(cancelled[1].replica == 3);
    CHECK(cancelled[0].local_step == 4);
    CHECK(cancelled[0].arrived == 9s);
    CHECK(cancelled_by(step, {}).empty());
  }

  TEST_CASE("a job may begin with as many replicas as a step needs, where none leaves tokens") {
    CHECK(fewest_replicas({3, 4, sync_policy::latest_token}) == 3);
    CHECK(fewest_replicas({3, 4, sync_policy::k_batch_async}) == 1);
    CHECK(check_min_replicas(3, {3, 4, sync_policy::latest_token}));
    CHECK(check_min_replicas(1, {1, 4, sync_policy::ssp}));
    auto why = [](uint32_t least, sync_policy policy) {
      return check_min_replicas(least, {3, 4, policy}).error().message;
    };
    CHECK(why(2, sync_policy::cancel)
          == "min_replicas is 2, but a step needs the gradients of 3 replicas; choose at least as "
             "many");
    CHECK(why(5, sync_policy::cancel)
          == "min_replicas is 5, but there are 4 replicas; choose at most as many");
    CHECK(why(3, sync_policy::tensorflow).find("policy tensorflow puts tokens")
          != std::string::npos);
  }

  TEST_CASE("a stall says what the step lacks, and why no replica gives it") {
    stalled_step stalled{.step = 3, .needed = 4, .live = 2, .replicas = 5, .tokens = 0};
    CHECK(to_error(stalled).code == errc::stalled);
    CHECK(to_error(stalled).message
          == "step 3 cannot end: it needs 4 gradients, 2 of 5 replicas are live, all of them wait "
             "for a token, and no token is left");
    stalled.tokens = 1;
    CHECK(to_error(stalled).message
          == "step 3 cannot end: it needs 4 gradients, 2 of 5 replicas are live, and all of them "
             "have given the one that counts");
    stalled.live = 0;
    CHECK(to_error(stalled).message
          == "step 3 cannot end: it needs 4 gradients, 0 of 5 replicas are live");
    stalled.lacking = {"'b'", "'c'"};
    CHECK(to_error(stalled).message
          == "step 3 cannot end: it needs 4 gradients, 0 of 5 replicas are live; too few gradients "
             "came for 'b', 'c'");
  }
}

} // namespace step_rules_test
