// SPDX-License-Identifier: Apache-2.0
// Goal: a function that makes the input of a pipeline learns its share, and impossible shares and
// options are refused. Method: a table.
#include "strategies/data/input_context.hpp"
#include "strategies/data/input_options.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/refusal.hpp"

namespace input_context_test {

TEST_SUITE("strategies/data/input_context") {
  using namespace troupe;
  using test::refusal;

  TEST_CASE("is one pipeline of one replica if not said otherwise") {
    CHECK(input_context{} == input_context{1, 0, 1});
  }

  TEST_CASE("divides the global batch by replicas, not by pipelines") {
    const input_context context{2, 1, 6};
    CHECK(context.get_per_replica_batch_size(12) == 2);
    CHECK(refusal([&] { return context.get_per_replica_batch_size(13); })
          == "invalid_argument: get_per_replica_batch_size: a global batch of 13 cannot be divided "
             "evenly by 6 replicas");
    CHECK(refusal([] {
            return input_context{1, 0, 0}.get_per_replica_batch_size(4);
          })
          == "invalid_argument: get_per_replica_batch_size: there is no replica");
  }

  TEST_CASE("tells which pipeline it is") {
    CHECK(to_string(input_context{2, 1, 6}) == "input_context(input pipeline id 1, total: 2)");
  }

  template <class Settings>
  std::string checked(const Settings& settings) {
    return refusal([&] {
      check(settings);
      return 0;
    });
  }

  TEST_CASE("refuses pipelines that replicas cannot share evenly") {
    CHECK(checked(input_context{2, 1, 6}) == "accepted");
    CHECK(checked(input_context{3, 2, 1}) == "accepted");
    CHECK(
      checked(input_context{2, 0, 3})
      == "invalid_argument: distribute: every pipeline feeds as many replicas as the others, but "
         "3 replicas cannot be divided by 2 pipelines");
    CHECK(checked(input_context{2, 2, 2})
          == "invalid_argument: distribute: there is no pipeline 2 of 2, they count from 0");
    CHECK(checked(input_context{0, 0, 2})
          == "invalid_argument: distribute: 2 replicas cannot read through 0 pipelines");
  }

  TEST_CASE("refuses options that contradict each other") {
    using enum input_replication_mode;
    CHECK(checked(input_options{}) == "accepted");
    CHECK(checked(input_options{.replication_mode = per_replica}) == "accepted");
    CHECK(checked(input_options{.place_dataset_on_device = true})
          == "invalid_argument: input_options: place_dataset_on_device needs the replication mode "
             "per_replica");
    CHECK(
      checked(input_options{.replication_mode = per_replica, .place_dataset_on_device = true})
      == "invalid_argument: input_options: place_dataset_on_device leaves nothing to fetch: set "
         "fetch_to_device to false");
    CHECK(checked(input_options{.fetch_to_device = false,
                                .replication_mode = per_replica,
                                .place_dataset_on_device = true})
          == "accepted");
  }
}

} // namespace input_context_test
