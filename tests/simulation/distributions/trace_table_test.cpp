// SPDX-License-Identifier: Apache-2.0
// Goal: measured times are read in all shapes, and a slip in a file is named by its line.
// Method: small texts.
#include "simulation/distributions/trace_table.hpp"
#include "tests/doctest.hpp"

namespace trace_table_test {

using troupe::read_trace_table;

namespace {

using matrix = std::vector<std::vector<double>>;

matrix read(std::string_view text) {
  auto table = read_trace_table(text, "times.csv");
  REQUIRE(table);
  return table->seconds;
}

std::string refusal(std::string_view text) {
  auto table = read_trace_table(text, "times.csv");
  return table ? "accepted" : table.error().message;
}

} // namespace

TEST_SUITE("simulation/distributions/trace_table") {
  TEST_CASE("reads a matrix of steps and replicas") {
    CHECK(read("1, 2.5\n# a comment\n\n3,4\r\n") == matrix{{1, 3}, {2.5, 4}});
    CHECK(read("7") == matrix{{7}});
  }

  TEST_CASE("reads one gradient a line, in any order and with further columns") {
    CHECK(read("step,replica,seconds\n1,0,4\n0,1,2\n0,0,3\n") == matrix{{3, 4}, {2}});
    CHECK(read("replica,host,start,duration\n0,a,5.5,1\n0,b,0.5,2\n") == matrix{{2, 1}});
  }

  TEST_CASE("reads what pandas writes, with and without an index, and what a spreadsheet does") {
    CHECK(read(",0,1\n0,1.5,2\n1,3,4\n") == matrix{{1.5, 3}, {2, 4}});
    CHECK(read("0,1,2\n1,2,3\n") == matrix{{1}, {2}, {3}});
    CHECK(read("rank 0,rank 1\n1,2\n3,4\n") == matrix{{1, 3}, {2, 4}});
    CHECK(read("step,a,b\n17,1,2\n18,3,4\n") == matrix{{1, 3}, {2, 4}});
    CHECK(read("\"index\",\"a\"\n2026-11-20 10:00,1\n\"2026-11-20 10:01\",\"3\"\n")
          == matrix{{1, 3}});
    CHECK(read(",step,replica,seconds\n0,1,0,4\n1,0,0,3\n") == matrix{{3, 4}});
    CHECK(read("Step,Worker,Time\n1,0,4\n0,0,3\n") == matrix{{3, 4}});
    CHECK(read("0,1.2,1.3\n1,2.2,2.3\n2,3.2,3.3\n") == matrix{{1.2, 2.2, 3.2}, {1.3, 2.3, 3.3}});
    CHECK(read("0\n1.5\n1.6\n") == matrix{{1.5, 1.6}});
    CHECK(read("\xef\xbb\xbf"
               "a,b\r\n1,2\r\n")
          == matrix{{1}, {2}});
  }

  TEST_CASE("counts what was measured") {
    troupe::trace_table table{{{1, 2, 3}, {4}}};
    CHECK(table.mean() == 2.5);
    CHECK(table.draw_count() == 1);
    CHECK(table.time_count(1) == 3);
    CHECK(table.time_count(9) == 4);
    CHECK(table.repeats(6, 1) == 2);
    CHECK(table.repeats(6, 2) == 3); // of the second, which has one time
    CHECK(table.repeats(36, 9) == 18);
  }

  TEST_CASE("refuses what is no table of times, naming the line") {
    CHECK(refusal("") == "times.csv: no times");
    CHECK(refusal("step,replica,seconds\n") == "times.csv: no times");
    CHECK(refusal("1,2\n3\n") == "times.csv:2: 1 fields, but the lines above have 2");
    CHECK(refusal("1,2\n\n3,x\n").find("times.csv:3: ") == 0);
    CHECK(refusal("1,-2\n").find("times.csv:1: ") == 0);
    CHECK(refusal("-1,2\n3,4\n").find("times.csv:1: ") == 0);
    CHECK(refusal("nan,2\n3,4\n").find("times.csv:1: ") == 0);
    CHECK(refusal("1,nan\n").find("times.csv:1: ") == 0);
    CHECK(refusal("step,replica,secs\n0,0,1\n").find("times.csv:1: begin with numbers, with a name")
          == 0);
    CHECK(refusal("a,b\n") == "times.csv: no times");
    CHECK(refusal("a,b\n1\n") == "times.csv:2: 1 fields, but the lines above have 2");
    CHECK(refusal(",a\n0,1,2\n") == "times.csv:2: 3 fields, but the lines above have 2");
    CHECK(refusal("step\n0\n") == "times.csv:1: there is no column of a replica");
    CHECK(refusal("step,replica,seconds\n0,1,2\n") == "times.csv: no line of replica 0");
    CHECK(refusal("step,replica,seconds\n0,0.5,2\n") == "times.csv:2: '0.5' is no replica");
    CHECK(refusal("step,replica,seconds\n0,0\n") == "times.csv:2: too few fields");
  }

  TEST_CASE("refuses a file that is not there") {
    auto table = troupe::load_trace_table("no/such/file.csv");
    REQUIRE_FALSE(table);
    CHECK(table.error().code == troupe::errc::not_found);
  }
}

} // namespace trace_table_test
