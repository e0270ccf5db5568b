// SPDX-License-Identifier: Apache-2.0
// Goal: bytes come from files and from memory alike, and whatever cannot be read is named. Method:
// scratch files, one of which shrinks.
#include "actors/recording/input_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <sys/stat.h>

namespace input_file_test {

TEST_SUITE("actors/recording/input_file") {
  using namespace troupe;

  expected<std::string> read(const input_file& file, uint64_t offset, size_t count) {
    std::string text(count, '\0');
    auto done = file.read_at(offset, std::as_writable_bytes(std::span{text}));
    if (!done) return tl::unexpected(done.error());
    return text;
  }

  TEST_CASE("reads at any offset, from a file as from memory") {
    test::scratch_folder folder;
    const std::string text = "one two three";
    test::write(folder / "file", text);
    auto opened = input_file::open(folder / "file");
    REQUIRE(opened);
    for (const auto& file :
         {*opened, input_file::in_memory("memory", std::as_bytes(std::span{text}))}) {
      CHECK(file.bytes() == text.size());
      CHECK(read(file, 0, text.size()) == text);
      CHECK(read(file, 4, 3) == "two");
      CHECK(file.text() == text);
      CHECK(file.text(8) == "three");
      CHECK(file.text(text.size()) == "");
      CHECK(read(file, text.size(), 0) == "");
      CHECK(read(file, 4, 10).error().code == errc::malformed);
      CHECK(read(file, 14, 0).error().code == errc::malformed);
      CHECK(read(file, ~uint64_t{0}, 2).error().message
            == file.name() + ": byte 13: the file ends here, too early");
    }
  }

  TEST_CASE("tells what is no file") {
    test::scratch_folder folder;
    const auto missing = input_file::open(folder / "missing");
    CHECK(missing.error().code == errc::not_found);
    CHECK(missing.error().message
          == "cannot read " + (folder / "missing").string() + ": No such file or directory");
    CHECK(input_file::open(folder.path()).error().message
          == folder.path().string() + " is a folder, not a file");
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK(input_file::open(folder / "pipe").error().code == errc::invalid_argument);
    CHECK(input_file::open("/dev/zero").error().code == errc::invalid_argument);
  }

  TEST_CASE("notices that a file shrinks while it is read") {
    test::scratch_folder folder;
    test::write(folder / "file", "one two three");
    auto file = input_file::open(folder / "file");
    REQUIRE(file);
    test::write(folder / "file", "one");
    CHECK(read(*file, 0, 3) == "one");
    CHECK(read(*file, 0, 13).error().message
          == file->name() + ": byte 3: the file has become shorter while it was read");
  }

  TEST_CASE("names the byte that a reader complains about") {
    const auto file = input_file::in_memory("memory", {});
    CHECK(file.malformed(12, "no number").value()
          == error{errc::malformed, "memory: byte 12: no number"});
  }

  TEST_CASE("quotes what a file holds on one line") {
    CHECK(excerpt("name") == "\"name\"");
    CHECK(excerpt(std::string_view{"a\n\0\x7f\xc3\xa4", 6}) == "\"a\\x0a\\x00\\x7f\xc3\xa4\"");
    CHECK(excerpt("123456", 5) == "\"12345...\"");
  }
}

} // namespace input_file_test
