// SPDX-License-Identifier: Apache-2.0
// Goal: Slurm's short forms mean what Slurm means. Method: a table.
#include "strategies/cluster/host_list.hpp"
#include "tests/doctest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace host_list_test {

namespace {

using namespace troupe;

std::string hosts(std::string_view text) {
  auto list = expand_hostlist(text);
  return list ? fmt::format("{}", fmt::join(*list, " ")) : list.error().message;
}

std::string counts(std::string_view text) {
  auto list = expand_tasks_per_node(text);
  return list ? fmt::format("{}", fmt::join(*list, " ")) : list.error().message;
}

} // namespace

TEST_SUITE("strategies/cluster/host_list") {
  TEST_CASE("expands ranges in the order in which they stand") {
    CHECK(hosts("n1") == "n1");
    CHECK(hosts("n1,n3,n2") == "n1 n3 n2");
    CHECK(hosts("n[1-2],m5,o[3-4,6,7-9]") == "n1 n2 m5 o3 o4 o6 o7 o8 o9");
    CHECK(hosts("n[9-11]") == "n9 n10 n11");
    CHECK(hosts("n[2,1,2]") == "n2 n1 n2");
    CHECK(hosts("").empty());
  }

  TEST_CASE("keeps the zeros of the lower bound") {
    CHECK(hosts("n[08-10]") == "n08 n09 n10");
    CHECK(hosts("n[008,9]") == "n008 n9");
    CHECK(hosts("n[1-03]") == "n1 n2 n3");
  }

  TEST_CASE("expands several brackets, the last one fastest") {
    CHECK(hosts("rack[1-2]n[3-4]-ib") == "rack1n3-ib rack1n4-ib rack2n3-ib rack2n4-ib");
  }

  TEST_CASE("names what is malformed") {
    CHECK(hosts("n[1-2") == "malformed host list 'n[1-2': a bracket is missing");
    CHECK(hosts("n1]") == "malformed host list 'n1]': a bracket is missing");
    CHECK(hosts("n[a-b]")
          == "malformed host list 'a-b': brackets hold numbers and ranges, as in [1-3,7]");
    for (const auto* text : {"n[3-1]", "n[1-2-3]", "n[]", "n[-1]", "n[1,,2]", "n[[1-2]]"})
      CHECK(hosts(text).starts_with("malformed host list"));
  }

  TEST_CASE("names a comma that has nothing beside it") {
    CHECK(hosts("n1,,n2") == "malformed host list 'n1,,n2': a host is missing beside a comma");
    CHECK(hosts("n1,") == "malformed host list 'n1,': a host is missing beside a comma");
    CHECK(hosts(",n2").starts_with("malformed"));
    CHECK(hosts("n[1,]") == "malformed host list '[1,]': a number is missing");
    CHECK(hosts("n[,1]").starts_with("malformed"));
    CHECK(counts("2,") == "malformed tasks per node '2,': it must be as in 2(x3),1");
    CHECK(counts("2,,1").starts_with("malformed"));
    CHECK(counts(",2").starts_with("malformed"));
  }

  TEST_CASE("refuses more hosts than there can be") {
    CHECK(hosts("n[0-999999999]").ends_with("so many hosts there are not"));
    CHECK(hosts("n[0-999][0-999]").ends_with("so many hosts there are not"));
    CHECK(hosts("n[0-60000,0-60000]").ends_with("so many hosts there are not"));
  }

  TEST_CASE("refuses more brackets than names have") {
    CHECK(hosts("n[1][2][3][4][5][6][7][8]") == "n12345678");
    CHECK(hosts("n[1][2][3][4][5][6][7][8][9]").ends_with("a name has at most 8 brackets"));
  }

  TEST_CASE("expands tasks per node") {
    CHECK(counts("3") == "3");
    CHECK(counts("3,2,1") == "3 2 1");
    CHECK(counts("2(x3),1") == "2 2 2 1");
    CHECK(counts("3(x1),2(x2)") == "3 2 2");
    for (const auto* text : {"", "a", "2x3", "2(x3", "2(x)", "(x3)", "2(3)", "2(x999999999)"})
      CHECK(counts(text).starts_with("malformed tasks per node"));
    CHECK(counts("100001") == "tasks per node '100001': these are more than 100000 tasks");
    CHECK(counts("1,50000(x2)") == "tasks per node '50000(x2)': these are more than 100000 tasks");
  }
}

} // namespace host_list_test
