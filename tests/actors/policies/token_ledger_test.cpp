// SPDX-License-Identifier: Apache-2.0
// Goal: tokens go where the policy says, and none is lost or made. Method: waiters are numbers, the
// ledger is asked and told by hand.
#include "actors/policies/token_ledger.hpp"
#include "tests/doctest.hpp"

namespace token_ledger_test {

using namespace troupe;

namespace {

using ledger = token_ledger<int>;
using waiters = std::vector<int>;

waiters waiting(const ledger& tokens) {
  return {tokens.waiting().begin(), tokens.waiting().end()};
}

using served_waiter = std::pair<int, uint64_t>;

/// The waiters that were served, each with its token.
std::vector<served_waiter> put(ledger& tokens, uint64_t step, uint32_t count) {
  std::vector<served_waiter> result;
  for (const auto& [waiter, of_step] : tokens.put(step, count))
    result.emplace_back(waiter, of_step);
  return result;
}

/// The waiters that were served with a token of that very step.
waiters served(ledger& tokens, uint64_t step, uint32_t count) {
  waiters result;
  for (auto [waiter, of_step] : put(tokens, step, count)) {
    CHECK(of_step == step);
    result.push_back(waiter);
  }
  return result;
}

/// Takes the tokens that are there, as many as `count`.
std::vector<uint64_t> take_all(ledger& tokens, size_t count, uint64_t local_step = 0) {
  std::vector<uint64_t> steps;
  for (size_t i = 0; i < count; ++i)
    if (auto step = tokens.take(static_cast<int>(i), local_step)) steps.push_back(*step);
  return steps;
}

} // namespace

TEST_SUITE("actors/policies/token_ledger") {
  TEST_CASE("tensorflow hands tokens out in the order in which they were made") {
    ledger tokens{sync_policy::tensorflow};
    CHECK(tokens.put(1, 2).empty());
    CHECK(tokens.put(2, 1).empty());
    CHECK(tokens.tokens().size() == 3);
    CHECK(tokens.tokens().front() == 1);
    CHECK(take_all(tokens, 3) == std::vector<uint64_t>{1, 1, 2});
    CHECK(tokens.tokens().size() == 0);
  }

  TEST_CASE("tensorflow serves waiters in the order in which they asked") {
    ledger tokens{sync_policy::tensorflow};
    for (int who : {7, 3, 5})
      CHECK_FALSE(tokens.take(who, 0));
    CHECK(waiting(tokens) == waiters{7, 3, 5});
    CHECK(served(tokens, 1, 2) == waiters{7, 3});
    CHECK(waiting(tokens) == waiters{5});
    CHECK(tokens.tokens().size() == 0);
    CHECK(served(tokens, 2, 2) == waiters{5});
    CHECK(tokens.tokens().size() == 1);
    CHECK(tokens.tokens().front() == 2);
  }

  TEST_CASE("tensorflow gives a stale token to a replica that knows a newer step") {
    ledger tokens{sync_policy::tensorflow};
    CHECK(tokens.put(1, 1).empty());
    CHECK(tokens.put(9, 1).empty());
    CHECK(tokens.take(0, 8) == 1);
  }

  TEST_CASE(
    "tensorflow lets a replica wait for the next step, and gives it the oldest token then") {
    ledger tokens{sync_policy::tensorflow};
    CHECK(tokens.put(0, 3).empty());
    CHECK_FALSE(tokens.take(7, 0, 1));
    CHECK_FALSE(tokens.take(5, 0, 1));
    CHECK(tokens.take(3, 0) == 0); // a replica need not wait after a gradient that came too late
    CHECK(put(tokens, 1, 2) == std::vector<served_waiter>{{7, 0}, {5, 0}});
    CHECK(take_all(tokens, 3, 1) == std::vector<uint64_t>{1, 1});
    CHECK(waiting(tokens) == waiters{2});
  }

  TEST_CASE("where training is asynchronous a replica gets the newest step it needs") {
    for (auto policy : {sync_policy::k_async, sync_policy::k_batch_async, sync_policy::ssp}) {
      ledger tokens{policy, 5};
      CHECK(tokens.take(1, 3, 4) == 5);
      CHECK(tokens.take(2, 5, 5) == 5);
      CHECK_FALSE(tokens.take(3, 5, 7));
      CHECK_FALSE(tokens.take(4, 5, 6));
      CHECK(waiting(tokens) == waiters{3, 4});
      CHECK(served(tokens, 6, 1) == waiters{4});
      CHECK(waiting(tokens) == waiters{3});
      CHECK(served(tokens, 9, 1) == waiters{3});
      CHECK(tokens.tokens().empty());
    }
  }

  TEST_CASE("a replica that waits under an asynchronous policy leaves when no more tokens come") {
    ledger tokens{sync_policy::k_async};
    CHECK_FALSE(tokens.take(3, 0, 1));
    CHECK(tokens.close() == std::deque{3});
    CHECK(tokens.put(1, 1).empty());
  }

  TEST_CASE("no tokens are no tokens") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      ledger tokens{policy};
      CHECK(tokens.put(0, 0).empty());
      CHECK(tokens.tokens().size() == 0);
    }
  }

  TEST_CASE("under the other policies a replica that is behind gets the newest step at once") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      ledger tokens{policy};
      CHECK(tokens.put(1, 4).empty());
      CHECK(tokens.put(2, 4).empty());
      CHECK(tokens.take(0, 0) == 2);
      CHECK(tokens.take(1, 1) == 2);
      CHECK_FALSE(tokens.take(2, 2));
    }
  }

  TEST_CASE("under the other policies an update lets all replicas go, and leaves no token behind") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      ledger tokens{policy};
      for (int who : {2, 0, 1})
        CHECK_FALSE(tokens.take(who, 0));
      CHECK(served(tokens, 1, 1) == waiters{2, 0, 1});
      CHECK(tokens.tokens().size() == 0);
      CHECK(waiting(tokens).empty());
      CHECK_FALSE(tokens.take(0, 1));
    }
  }

  TEST_CASE("a job that begins later makes the replicas wait that work on its first step") {
    ledger tokens{sync_policy::latest_token, 10};
    CHECK_FALSE(tokens.take(0, 10));
    CHECK(tokens.take(1, 9) == 10);
    CHECK(served(tokens, 11, 1) == waiters{0});
  }

  TEST_CASE("closing sends all waiting replicas away, in the order of asking") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      ledger tokens{policy};
      for (int who : {4, 2})
        CHECK_FALSE(tokens.take(who, 0));
      CHECK(tokens.close() == std::deque{4, 2});
      CHECK(waiting(tokens).empty());
      CHECK(tokens.close().empty());
    }
  }

  TEST_CASE("a waiter need not be copyable") {
    token_ledger<std::unique_ptr<int>> tokens{sync_policy::tensorflow};
    CHECK_FALSE(tokens.take(std::make_unique<int>(3), 0));
    auto served = tokens.put(1, 1);
    REQUIRE(served.size() == 1);
    CHECK(*served[0].waiter == 3);
  }
}

} // namespace token_ledger_test
