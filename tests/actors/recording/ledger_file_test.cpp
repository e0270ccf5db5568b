// SPDX-License-Identifier: Apache-2.0
// Goal: every gradient has one line that says what became of it. Method: whole files compared as
// text.
#include "actors/recording/ledger_file.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <cmath>

namespace ledger_file_test {

TEST_SUITE("actors/recording/ledger_file") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("tells which gradients were accepted or late, and which replica waited for which") {
    test::scratch_folder folder;
    auto file = ledger_file::create(folder / "ledger.csv");
    REQUIRE(file);
    auto step = test::step_with_a_straggler();
    step.cancelled = {test::gradient(4, 7, 1500ms)};
    CHECK(file->append(step));
    CHECK(file->flush());
    CHECK(test::content(folder / "ledger.csv")
          == std::string{ledger_file::header}                      //
               + "8,0,accepted,7,0,1.1,0.1,0.02,1,0.35,0.4,2,32\n" //
               + "8,2,accepted,7,0,1.2,0.1,0.02,1,0.25,0.3,4,32\n" //
               + "8,1,accepted,7,0,1.45,0.1,0.02,,,0.05,3,32\n"    //
               + "8,3,stale,5,2,1.3,0.1,0.02,,,,5,32\n"            //
               + "8,4,cancelled,7,0,1.5,0.1,0.02,,,,6,32\n");
  }

  TEST_CASE("reads a line back, and nothing out of a line that is none") {
    auto line = read_ledger_line("8,2,accepted,7,0,1.2,0.1,0.02,1,0.25,0.3,4,32");
    REQUIRE(line);
    CHECK(line->step == 8);
    CHECK(line->verdict == gradient_verdict::accepted);
    CHECK(line->gradient.replica == 2);
    CHECK(line->gradient.local_step == 7);
    CHECK(line->gradient.arrived == 1200ms);
    CHECK(line->gradient.compute == 100ms);
    CHECK(line->gradient.waited == 20ms);
    CHECK(line->gradient.loss == 4);
    CHECK(line->gradient.examples == 32);
    CHECK(line->idle == 300ms);
    line = read_ledger_line("8,3,stale,5,2,1.3,0.1,0.02,,,,,32");
    REQUIRE(line);
    CHECK(line->verdict == gradient_verdict::stale);
    CHECK(line->gradient.staleness == 2);
    CHECK(std::isnan(line->gradient.loss));
    for (const char* wrong :
         {"", "8,2,accepted,7,0,1.2,0.1,0.02,1,0.25,0.3,4,32,",
          "8,2,accepted,8,0,1.2,0.1,0.02,,,0,4,32", "8,2,accepted,7,0,1.2,0.1,0.02,,,,4,32",
          "8,2,accepted,7,0,1.2,0.1,0.02,,,-1,4,32", "8,2,used,7,0,1.2,0.1,0.02,,,0,4,32",
          "8,2,stale,7,0,1e300,0.1,0.02,,,,4,32", "8,2000000,stale,7,0,1.2,0.1,0.02,,,,4,32",
          "8,2,stale,7,0,1.2,0.1,0.02,,,,x,32"})
      CHECK_FALSE_MESSAGE(read_ledger_line(wrong), wrong);
  }

  TEST_CASE("has no line for a step without gradients") {
    test::scratch_folder folder;
    auto file = ledger_file::create(folder / "ledger.csv");
    REQUIRE(file);
    CHECK(file->append(step_record{}));
    CHECK(file->flush());
    CHECK(test::content(folder / "ledger.csv") == ledger_file::header);
  }

  TEST_CASE("ends with the last step for which there is room") {
    test::scratch_folder folder;
    auto bytes = [&](uint64_t most) {
      auto file = ledger_file::create(folder / "ledger.csv", most);
      REQUIRE(file);
      expected<void> done;
      for (uint64_t step = 1; step <= 3; ++step) {
        auto record = test::step_with_a_straggler();
        record.step = step;
        if (step == 3) record.stale.clear(); // it alone would fit
        done = file->append(record);
      }
      CHECK(file->flush());
      return std::pair{test::content(folder / "ledger.csv").size(), done};
    };
    auto whole = bytes(UINT64_MAX);
    CHECK(whole.second);
    auto of_one = (whole.first - ledger_file::header.size()) / 3;
    auto cut = bytes(ledger_file::header.size() + of_one * 2);
    REQUIRE_FALSE(cut.second);
    CHECK(cut.second.error().code == errc::limit_exceeded);
    CHECK(cut.second.error().message == "ledger.csv ends with step 1: it is as large as it may be");
    CHECK(cut.first <= ledger_file::header.size() + of_one * 2);
  }

  TEST_CASE("reports a folder that is not there") {
    test::scratch_folder folder;
    const auto file = ledger_file::create(folder / "missing/ledger.csv");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
  }
}

} // namespace ledger_file_test
