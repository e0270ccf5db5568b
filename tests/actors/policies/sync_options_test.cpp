// SPDX-License-Identifier: Apache-2.0
// Goal: options that cannot work are refused before the job begins, in words that say what to do.
// Method: each refusal, its line, and the neighbouring options that are accepted.
#include "actors/policies/sync_options.hpp"
#include "tests/doctest.hpp"

#include <string>

namespace sync_options_test {

using namespace troupe;

namespace {

constexpr sync_policy all_policies[]
  = {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel};
constexpr sync_policy asynchronous_policies[]
  = {sync_policy::k_async, sync_policy::k_batch_async, sync_policy::ssp};

/// The line of the refusal; empty if the options are accepted.
std::string refusal(const sync_options& options) {
  auto valid = options.validate();
  if (valid) return {};
  CHECK(valid.error().code == errc::invalid_argument);
  return valid.error().message;
}

} // namespace

TEST_SUITE("actors/policies/sync_options") {
  TEST_CASE("a policy is found by the name that it prints") {
    for (auto policy : all_sync_policies) {
      auto parsed = parse_sync_policy(to_string(policy));
      REQUIRE(parsed);
      CHECK(*parsed == policy);
    }
  }

  TEST_CASE("a name that is no policy's is refused, with those there are") {
    for (auto name : {"", "TensorFlow", "tensorflow ", "async"}) {
      CAPTURE(name);
      auto parsed = parse_sync_policy(name);
      REQUIRE_FALSE(parsed);
      CHECK(parsed.error().code == errc::invalid_argument);
      CHECK(parsed.error().message
            == "no policy '" + std::string{name}
                 + "'; there are tensorflow, latest_token, cancel, k_async, k_batch_async and ssp");
    }
  }

  TEST_CASE("stale gradients count under the asynchronous policies") {
    for (auto policy : all_policies)
      CHECK_FALSE(traits_of(policy).is_asynchronous());
    for (auto policy : asynchronous_policies)
      CHECK(traits_of(policy).is_asynchronous());
  }

  TEST_CASE("slack belongs to ssp, where every gradient is an update") {
    sync_options options{1, 4, sync_policy::ssp};
    options.slack = 3;
    CHECK(refusal(options).empty());
    options.policy = sync_policy::k_async;
    CHECK(refusal(options)
          == "slack is 3, but under k_async no replica waits for a slower one's clock; leave it "
             "out, or choose the policy ssp");
    CHECK(refusal({2, 4, sync_policy::ssp})
          == "replicas_to_aggregate is 2, but under ssp every gradient is an update; set it to 1, "
             "or choose k_async or k_batch_async");
  }

  TEST_CASE("more gradients than replicas make an update only if a replica may give several") {
    CHECK(refusal({9, 4, sync_policy::k_batch_async}).empty());
    CHECK(refusal({5, 4, sync_policy::k_async}).find("replicas_to_aggregate is 5 with 4 replicas")
          == 0);
  }

  TEST_CASE("one gradient per replica is refused where none is dropped") {
    for (auto policy : asynchronous_policies) {
      sync_options options{1, 4, policy};
      options.one_gradient_per_replica = true;
      CHECK(refusal(options).find("one_gradient_per_replica drops a replica's second") == 0);
    }
  }

  TEST_CASE("the defaults are valid") {
    CHECK(refusal({}).empty());
  }

  TEST_CASE("as many gradients as replicas, or fewer, work under every policy") {
    for (auto policy : all_policies)
      for (uint32_t needed : {1U, 49U, 50U})
        CHECK(refusal({needed, 50, policy}).empty());
  }

  TEST_CASE("a step without gradients is refused") {
    for (auto policy : all_policies)
      CHECK(refusal({0, 4, policy})
            == "replicas_to_aggregate is 0; a step needs at least 1 gradient");
  }

  TEST_CASE("training without replicas is refused") {
    for (auto policy : all_policies)
      CHECK(refusal({1, 0, policy})
            == "total_num_replicas is 0; training needs at least 1 replica");
  }

  TEST_CASE("a negative number of tokens is refused, but for the -1 of the default") {
    CHECK(refusal({1, 1, sync_policy::tensorflow, -2})
          == "initial_tokens is -2; give 0 or more, or -1 for the default");
    CHECK(refusal({1, 1, sync_policy::tensorflow, int64_t{1} << 32})
          == "initial_tokens is 4294967296; 1000000 are the most");
    CHECK(refusal({1, 1, sync_policy::tensorflow, -1}).empty());
    CHECK(refusal({1, 1, sync_policy::tensorflow, 0}).empty());
  }

  TEST_CASE("more gradients than replicas need a policy with several from each") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      CHECK(refusal({5, 4, policy})
            == "replicas_to_aggregate is 5 with 4 replicas, but under "
                 + std::string{to_string(policy)}
                 + " each gives only one gradient to a step; lower it, or choose the policy "
                   "tensorflow");
    CHECK(refusal({5, 4, sync_policy::tensorflow}).empty());
  }

  TEST_CASE("more gradients than replicas need tokens to finish the first step") {
    CHECK(refusal({5, 2, sync_policy::tensorflow, 2})
          == "Too few tokens to finish the first step: 2 (given) vs 3 (needed)");
    CHECK(refusal({5, 2, sync_policy::tensorflow, 0})
          == "Too few tokens to finish the first step: 0 (given) vs 3 (needed)");
    CHECK(refusal({5, 2, sync_policy::tensorflow, 3}).empty());
    CHECK(refusal({5, 2, sync_policy::tensorflow, -1}).empty());
  }

  TEST_CASE("backups by the worth of gradients are chosen by means, not by sums") {
    sync_options options{.replicas_to_aggregate = 2,
                         .policy = sync_policy::latest_token,
                         .losses_are_sums = true,
                         .dynamic = dynamic_backups{}};
    CHECK(refusal(options)
          == "losses_are_sums does not go with dynamic backups by gain_model::measured, which "
             "compares means; let losses be means, or choose gain_model::power");
    options.dynamic->gain = gain_model::power;
    CHECK(refusal(options).empty());
  }

  TEST_CASE("an update makes as many tokens as replicas or gradients, whichever is more") {
    CHECK(sync_options{.replicas_to_aggregate = 3, .total_num_replicas = 5}.tokens_per_step() == 5);
    CHECK(sync_options{.replicas_to_aggregate = 5, .total_num_replicas = 3}.tokens_per_step() == 5);
  }

  TEST_CASE("the queue begins with as many tokens as a step needs gradients, or as was asked for") {
    CHECK(sync_options{3, 5}.first_tokens() == 3);
    CHECK(sync_options{3, 5, sync_policy::tensorflow, 0}.first_tokens() == 0);
    CHECK(sync_options{3, 5, sync_policy::tensorflow, 7}.first_tokens() == 7);
  }

  TEST_CASE("only tensorflow has use for tokens at the start") {
    CHECK(sync_options{3, 5, sync_policy::latest_token}.first_tokens() == 0);
    CHECK(sync_options{3, 5, sync_policy::cancel, 7}.first_tokens() == 0);
  }
}

} // namespace sync_options_test
