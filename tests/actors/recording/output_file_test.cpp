// SPDX-License-Identifier: Apache-2.0
// Goal: what is written arrives, and a disk that refuses is reported, once and for all. Method:
// scratch files, /dev/full for the full disk.
#include "actors/recording/output_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace output_file_test {

TEST_SUITE("actors/recording/output_file") {
  using namespace troupe;

  TEST_CASE("overwrites from any offset and cuts the end") {
    test::scratch_folder folder;
    auto file = output_file::create(folder / "file");
    REQUIRE(file);
    CHECK(file->write_at(0, "one two"));
    CHECK(file->write_at(4, "three"));
    CHECK(test::content(folder / "file") == "one three");
    file->truncate(3);
    CHECK(test::content(folder / "file") == "one");
  }

  TEST_CASE("moves to another path") {
    test::scratch_folder folder;
    auto file = output_file::create(folder / "a");
    REQUIRE(file);
    REQUIRE(file->rename(folder / "b"));
    CHECK(file->path() == folder / "b");
    CHECK(file->write_at(0, "text"));
    CHECK(test::content(folder / "b") == "text");
    const auto refused = file->rename(folder / "missing/c");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::resource);
  }

  TEST_CASE("brings a file and its name to the disk") {
    test::scratch_folder folder;
    auto file = output_file::create(folder / "file");
    REQUIRE(file);
    CHECK(file->write_at(0, "text"));
    CHECK(file->sync());
    CHECK(sync_folder(folder.path()));
    CHECK(sync_folder(folder / "missing").error().code == errc::resource);
    CHECK(sync_folder(folder / "file").error().code == errc::resource);
  }

  TEST_CASE("names the path that cannot be created") {
    test::scratch_folder folder;
    const auto file = output_file::create(folder / "missing/metrics.csv");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
    CHECK(file.error().message
          == "cannot create " + (folder / "missing/metrics.csv").string()
               + ": No such file or directory");
  }

  TEST_CASE("gathers records until asked") {
    test::scratch_folder folder;
    auto lines = record_writer::create(folder / "lines");
    REQUIRE(lines);
    CHECK(lines->append("one\n"));
    CHECK(test::content(folder / "lines").empty());
    CHECK(lines->flush());
    CHECK(test::content(folder / "lines") == "one\n");
    CHECK(lines->append("two\n"));
    CHECK(lines->flush());
    CHECK(lines->flush());
    CHECK(test::content(folder / "lines") == "one\ntwo\n");
  }

  TEST_CASE("writes by itself when much is waiting") {
    test::scratch_folder folder;
    auto lines = record_writer::create(folder / "lines");
    REQUIRE(lines);
    const std::string record(record_writer::pending_bytes_max - 1, 'x');
    CHECK(lines->append(record));
    CHECK(test::content(folder / "lines").empty());
    CHECK(lines->append("\n"));
    CHECK(test::content(folder / "lines") == record + "\n");
  }

  TEST_CASE("writes the rest when it goes, also after a move") {
    test::scratch_folder folder;
    {
      auto lines = record_writer::create(folder / "lines");
      REQUIRE(lines);
      CHECK(lines->append("one\n"));
      record_writer moved{std::move(*lines)};
      CHECK(moved.append("two\n"));
    }
    CHECK(test::content(folder / "lines") == "one\ntwo\n");
  }

  TEST_CASE("reports a full disk, and goes on refusing") {
    auto lines = record_writer::create("/dev/full");
    REQUIRE(lines);
    CHECK(lines->append("one\n"));
    const auto refused = lines->flush();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::resource);
    CHECK(refused.error().message == "cannot write /dev/full: No space left on device");
    CHECK(lines->append("two\n").error() == refused.error());
    CHECK(lines->flush().error() == refused.error());
  }

  TEST_CASE("a file is replaced as a whole, also behind a link") {
    test::scratch_folder folder;
    CHECK(replace_file(folder / "file", "one"));
    std::filesystem::create_symlink("file", folder / "link");
    CHECK(replace_file(folder / "link", "two"));
    CHECK(std::filesystem::is_symlink(folder / "link"));
    CHECK(test::content(folder / "file") == "two");
    std::filesystem::create_symlink("new", folder / "to nothing");
    CHECK(replace_file(folder / "to nothing", "three"));
    CHECK(test::content(folder / "new") == "three");
    CHECK_FALSE(std::filesystem::exists(folder / "file.new"));
  }

  TEST_CASE("a new file takes the place of no other") {
    test::scratch_folder folder;
    CHECK(create_file(folder / "file", "one"));
    CHECK(test::content(folder / "file") == "one");
    const auto refused = create_file(folder / "file", "two");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::failed_precondition);
    CHECK(refused.error().message
          == "cannot create " + (folder / "file").string() + ": File exists");
    CHECK(test::content(folder / "file") == "one");
    CHECK_FALSE(std::filesystem::exists(folder / "file.new"));
    std::filesystem::create_symlink("nowhere", folder / "link");
    CHECK(create_file(folder / "link", "two").error().code == errc::failed_precondition);
    CHECK_FALSE(std::filesystem::exists(folder / "nowhere"));
    CHECK(create_file(folder / "missing/file", "two").error().code == errc::resource);
  }

  TEST_CASE("a new file that another process is writing is left to it") {
    test::scratch_folder folder;
    test::write(folder / "file.new", "of another");
    CHECK(create_file(folder / "file", "one").error().code == errc::failed_precondition);
    CHECK(test::content(folder / "file.new") == "of another");
    CHECK_FALSE(std::filesystem::exists(folder / "file"));
  }

  TEST_CASE("several threads that create one file leave it to one of them") {
    test::scratch_folder folder;
    for (int round = 0; round < 20; ++round) {
      const auto path = folder / std::to_string(round);
      std::atomic<int> created = 0;
      {
        std::vector<std::jthread> threads;
        for (const auto* text : {"one", "two", "six"})
          threads.emplace_back([&, text] { created += create_file(path, text) ? 1 : 0; });
      }
      CHECK(created == 1);
      CHECK(test::content(path).size() == 3);
    }
  }

  TEST_CASE("a device is not replaced") {
    const auto refused = replace_file("/dev/full", "one");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "cannot write /dev/full: No space left on device");
    CHECK(replace_file("/dev/null", "one"));
    CHECK(std::filesystem::is_character_file("/dev/null"));
  }
}

} // namespace output_file_test
