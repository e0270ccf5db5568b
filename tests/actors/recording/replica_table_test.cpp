// SPDX-License-Identifier: Apache-2.0
// Goal: the totals stand in the right columns. Method: whole files compared as text.
#include "actors/recording/replica_table.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

namespace replica_table_test {

TEST_SUITE("actors/recording/replica_table") {
  using namespace troupe;

  TEST_CASE("has a line for each replica, and replaces the file that was there") {
    test::scratch_folder folder;
    test::write(folder / "replicas.csv", std::string(10'000, 'x'));
    summary run;
    run.add(test::step_with_a_straggler());
    REQUIRE(write_replica_table(folder / "replicas.csv", run));
    CHECK(test::content(folder / "replicas.csv")
          == "replica,accepted,stale,cancelled,worst_staleness,used_seconds,wasted_seconds,"
             "waiting_seconds,held_up_seconds\n"
             "0,1,0,0,0,0.1,0,0.02,0\n"
             "1,1,0,0,0,0.1,0,0.02,0.6\n"
             "2,1,0,0,0,0.1,0,0.02,0\n"
             "3,0,1,0,2,0,0.1,0.02,0\n");
  }

  TEST_CASE("reports a full disk") {
    const auto refused = write_replica_table("/dev/full", summary{});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::resource);
  }
}

} // namespace replica_table_test
