// SPDX-License-Identifier: Apache-2.0
// Goal: a replica of asynchronous training waits for its own update, and only where it has to.
// Method: the step that each of a row of gradients goes on with.
#include "actors/policies/asynchronous_rule.hpp"
#include "tests/doctest.hpp"

#include <vector>

namespace asynchronous_rule_test {

using namespace troupe;

namespace {

/// The steps that the first `count` gradients for step 10 go on with.
std::vector<uint64_t> next_steps(const asynchronous_rule& rule, uint64_t count) {
  std::vector<uint64_t> steps;
  for (uint64_t position = 1; position <= count; ++position)
    steps.push_back(rule.next_step(10, position));
  return steps;
}

} // namespace

TEST_SUITE("actors/policies/asynchronous_rule") {
  TEST_CASE("under k_async each replica waits for the update that has its gradient") {
    CHECK(next_steps({sync_policy::k_async, 3}, 7)
          == std::vector<uint64_t>{11, 11, 11, 12, 12, 12, 13});
  }

  TEST_CASE("under k_batch_async only the replica that completes an update waits for it") {
    CHECK(next_steps({sync_policy::k_batch_async, 3}, 7)
          == std::vector<uint64_t>{10, 10, 11, 11, 11, 12, 12});
  }

  TEST_CASE("the replica that gave the only gradient of an update waits for it") {
    for (auto policy : {sync_policy::k_async, sync_policy::k_batch_async, sync_policy::ssp})
      CHECK(next_steps({policy, 1}, 3) == std::vector<uint64_t>{11, 12, 13});
  }

  TEST_CASE("from what a replica was told follows which step its gradient is part of at last") {
    std::vector<asynchronous_rule> rules{{sync_policy::ssp, 1}};
    for (auto policy : {sync_policy::k_async, sync_policy::k_batch_async})
      for (uint32_t gradients : {1, 3})
        rules.push_back({policy, gradients});
    for (const auto& rule : rules)
      for (uint64_t position = 1; position <= 7; ++position) {
        auto last = rule.last_step(rule.next_step(10, position));
        auto part_of = 10 + (position - 1) / rule.gradients;
        CHECK(last >= part_of);
        auto is_exact = rule.policy != sync_policy::k_batch_async || rule.gradients == 1;
        CHECK(last <= part_of + (is_exact ? 0 : 1));
      }
  }

  TEST_CASE("the first of several variables lets a k_async replica go on, else the last does") {
    const std::vector<uint64_t> steps{12, 11, 13};
    CHECK(asynchronous_rule::join(sync_policy::k_async, steps) == 11);
    CHECK(asynchronous_rule::join(sync_policy::k_batch_async, steps) == 13);
    CHECK(asynchronous_rule::join(sync_policy::ssp, steps) == 13);
    CHECK(asynchronous_rule::join(sync_policy::k_async, {}) == 0);
  }

  TEST_CASE("under k_async enough replicas go on in every order of gradients") {
    // Three variables have left out another replica's gradient each: of four, three give an update.
    asynchronous_rule rule{sync_policy::k_async, 3};
    uint32_t go_on = 0;
    for (uint32_t replica = 0; replica < 4; ++replica) {
      std::vector<uint64_t> steps;
      for (uint32_t left_out = 0; left_out < 3; ++left_out)
        steps.push_back(rule.next_step(0, replica == left_out ? 4 : 1));
      go_on += asynchronous_rule::join(rule.policy, steps) <= 1 ? 1 : 0;
    }
    CHECK(go_on == 4);
  }

  TEST_CASE("synchronous options have no such rule") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel})
      CHECK_FALSE(asynchronous_rule::of({2, 3, policy}));
    auto rule = asynchronous_rule::of({2, 3, sync_policy::k_async});
    REQUIRE(rule);
    CHECK(rule->policy == sync_policy::k_async);
    CHECK(rule->gradients == 2);
  }
}

} // namespace asynchronous_rule_test
