// SPDX-License-Identifier: Apache-2.0
// Goal: a file comes back whole, or a line says why not. Method: scratch files and the system's odd
// ones.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/system/file_content.hpp"

namespace file_content_test {

TEST_SUITE("tools/system/file_content") {
  using namespace troupe;

  TEST_CASE("reads every byte") {
    test::scratch_folder folder;
    std::string text(200'000, 'a');
    text[0] = '\0';
    text += "\xff\r\n";
    test::write(folder / "file", text);
    const auto read = file_content((folder / "file").string(), 1 << 20);
    REQUIRE(read);
    CHECK(*read == text);
  }

  TEST_CASE("reads an empty file") {
    const auto read = file_content("/dev/null", 10);
    REQUIRE(read);
    CHECK(read->empty());
  }

  TEST_CASE("names a file that is missing, a folder, or too long") {
    test::scratch_folder folder;
    const auto missing = file_content((folder / "none").string(), 10);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == errc::not_found);
    const auto a_folder = file_content(folder.path().string(), 10);
    REQUIRE_FALSE(a_folder);
    CHECK(a_folder.error().code == errc::invalid_argument);
    const auto endless = file_content("/dev/zero", 100'000);
    REQUIRE_FALSE(endless);
    CHECK(endless.error() == error{errc::limit_exceeded, "/dev/zero is longer than 100000 bytes"});
  }
}

} // namespace file_content_test
