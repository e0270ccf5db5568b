// SPDX-License-Identifier: Apache-2.0
// Goal: many files are one dataset, in one order or in another in each pass. Method: files in
// memory, and the project's own text files.
#include "strategies/data/file_list.hpp"
#include "strategies/data/text_file.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <set>

namespace file_list_test {

TEST_SUITE("strategies/data/file_list") {
  using namespace troupe;
  using test::line_of;
  using test::range;

  dataset three_files(std::optional<uint64_t> seed = {}) {
    return files_in_turn({range(2), range(0), range(3, 10), range(1, 20)}, seed);
  }

  TEST_CASE("gives the records of one file after the other") {
    CHECK(three_files().size() == 6);
    CHECK(line_of(three_files()) == "0 1 10 11 12 20");
    CHECK(line_of(three_files().repeat(2).skip(4).take(4)) == "12 20 0 1");
    CHECK(files_in_turn({}).size() == 0);
    CHECK(line_of(files_in_turn({})).empty());
  }

  TEST_CASE("shuffles files as wholes, in every pass anew, and finds any record") {
    const auto passes = three_files(5).repeat(8);
    auto iterator = passes.iterate();
    const auto all = test::drain(iterator);
    std::set<std::string> orders;
    for (size_t begin = 0; begin < all.size(); begin += 6) {
      auto pass = fmt::format("{}", fmt::join(all.begin() + begin, all.begin() + begin + 6, " "));
      CHECK(pass.find("0 1") != std::string::npos);
      CHECK(pass.find("10 11 12") != std::string::npos);
      orders.insert(pass);
    }
    CHECK(orders.size() > 2);
    auto again = passes.iterate();
    REQUIRE(again.restore(test::place(20, 48)));
    CHECK(test::drain(again) == std::vector(all.begin() + 20, all.end()));
  }

  TEST_CASE("opens each path with the function that is given") {
    std::vector<std::string> opened;
    const auto both = read_files({"a", "bc"}, [&](const std::filesystem::path& path) {
      opened.push_back(path.string());
      return range(static_cast<int64_t>(path.string().size()));
    });
    CHECK(opened == std::vector<std::string>{"a", "bc"});
    CHECK(line_of(both) == "0 0 1");
  }

  TEST_CASE("refuses no files, files without end, and files that are not there") {
    CHECK(test::refusal([] { return read_files({}, text_file); })
          == "invalid_argument: read_files: there is no file");
    CHECK(test::refusal([] { return read_files({"a"}, nullptr); })
          == "invalid_argument: read_files: the function that opens is empty");
    CHECK(test::refusal([] { return files_in_turn({range(2).repeat()}); })
          == "invalid_argument: read_files: nothing comes after a file without end: repeat all of "
             "them");
    CHECK(test::refusal([] {
            return read_files({"/no/such/file"}, text_file);
          }).starts_with("not_found: "));
  }
}

} // namespace file_list_test
