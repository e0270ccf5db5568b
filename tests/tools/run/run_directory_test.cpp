// SPDX-License-Identifier: Apache-2.0
// Goal: a run gets a folder of its own or a clear refusal, and a refusal leaves nothing behind.
// Method: scratch folders in every state. Permissions are not tested for root, which may do all.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/run/run_directory.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace run_directory_test {

namespace {

using namespace troupe;
namespace fs = std::filesystem;

error refusal(const fs::path& path) {
  const auto checked = run_directory::check(path);
  const auto created = run_directory::create(path, "seed = 1\n");
  REQUIRE_FALSE(checked);
  REQUIRE_FALSE(created);
  CHECK(checked.error() == created.error());
  CHECK(checked.error().message.find("--run-dir: " + path.string() + " ") == 0);
  return checked.error();
}

// A path so long that the folder can be made, but no config.toml in it.
fs::path too_deep(fs::path path) {
  const size_t bytes_max = PATH_MAX - std::string_view{"/config.toml"}.size();
  while (path.native().size() < bytes_max) {
    const auto left = bytes_max - path.native().size();
    path /= std::string(std::clamp<size_t>(left - 1, 1, NAME_MAX), 'x');
  }
  return path;
}

} // namespace

TEST_SUITE("tools/run/run_directory") {
  TEST_CASE("makes the folder and all above it, with the configuration inside") {
    test::scratch_folder folder;
    const auto path = folder / "a/b/c";
    REQUIRE(run_directory::check(path));
    CHECK_FALSE(fs::exists(folder / "a"));
    const auto directory = run_directory::create(path, "seed = 1\n");
    REQUIRE(directory);
    CHECK(directory->path() == path);
    CHECK(test::content(directory->config()) == "seed = 1\n");
    CHECK(directory->metrics() == path / "metrics.csv");
    CHECK(directory->ledger() == path / "ledger.csv");
    CHECK(directory->replicas() == path / "replicas.csv");
    CHECK(directory->timeline() == path / "timeline.json");
    CHECK(std::distance(fs::directory_iterator{path}, fs::directory_iterator{}) == 1);
  }

  TEST_CASE("takes an empty folder that is there") {
    test::scratch_folder folder;
    REQUIRE(run_directory::create(folder.path(), "seed = 1\n"));
    CHECK(fs::exists(folder / "config.toml"));
  }

  TEST_CASE("takes back what a run leaves that never began, but not a folder of others") {
    test::scratch_folder folder;
    for (auto path : {folder / "there", folder / "new"}) {
      if (path.filename() == "there") fs::create_directory(path);
      const auto directory = run_directory::create(path, "seed = 1\n");
      REQUIRE(directory);
      test::write(directory->metrics(), "step\n");
      fs::create_directory(directory->checkpoints());
      directory->take_back();
      CHECK(fs::exists(path) == (path.filename() == "there"));
      CHECK(run_directory::check(path));
    }
  }

  TEST_CASE("refuses a folder that holds something") {
    test::scratch_folder folder;
    test::write(folder / "metrics.csv", "precious");
    const auto refused = refusal(folder.path());
    CHECK(refused.code == errc::failed_precondition);
    CHECK(refused.message.find("already holds something") != std::string::npos);
    CHECK(test::content(folder / "metrics.csv") == "precious");
    CHECK_FALSE(fs::exists(folder / "config.toml"));
  }

  TEST_CASE("refuses a file in the place of the folder, or on the way to it") {
    test::scratch_folder folder;
    test::write(folder / "file", "text");
    CHECK(refusal(folder / "file").message.find("is not a folder") != std::string::npos);
    CHECK(refusal(folder / "file/run").message.find("is not a folder") != std::string::npos);
    CHECK(refusal(folder / "file/run/deeper").code == errc::failed_precondition);
  }

  TEST_CASE("refuses a link to nothing in the place of the folder, or on the way to it") {
    test::scratch_folder folder;
    const auto link = folder / "link";
    fs::create_symlink("nowhere", link);
    const auto refused = refusal(link);
    CHECK(refused.code == errc::invalid_argument);
    CHECK(refused.message
          == "--run-dir: " + link.string()
               + " is a link to nothing; make the folder that it leads to, or pass the name of a "
                 "new one");
    const auto reason = "cannot be made: " + link.string() + " is a link to nothing";
    CHECK(refusal(link / "run/deeper").message.ends_with(reason));
    const auto dated = run_directory::create_dated(link, {}, "");
    REQUIRE_FALSE(dated);
    CHECK(dated.error().code == errc::invalid_argument);
    CHECK(dated.error().message.ends_with(reason));
    fs::create_directory(folder / "nowhere");
    CHECK(run_directory::create(link, "seed = 1\n"));
    CHECK(fs::exists(folder / "nowhere/config.toml"));
  }

  TEST_CASE("refuses a folder that cannot be written") {
    if (::geteuid() == 0) return;
    test::scratch_folder folder;
    fs::create_directory(folder / "locked");
    ::chmod((folder / "locked").c_str(), 0555);
    CHECK(refusal(folder / "locked").code == errc::invalid_argument);
    CHECK(refusal(folder / "locked/run").code == errc::invalid_argument);
  }

  TEST_CASE("a run that cannot write its configuration leaves no folder") {
    test::scratch_folder folder;
    const auto created = run_directory::create(too_deep(folder / "jobs"), "seed = 1\n");
    REQUIRE_FALSE(created);
    CHECK(created.error().code == errc::resource);
    CHECK(fs::is_empty(folder.path()));
  }

  TEST_CASE("a run that cannot begin leaves the folder of another beside its own") {
    test::scratch_folder folder;
    for (int round = 0; round < 5; ++round) {
      const auto jobs = folder / std::to_string(round);
      std::atomic<bool> has_failed = false;
      std::jthread failing{[&] {
        CHECK_FALSE(run_directory::create(too_deep(jobs), "seed = 1\n"));
        has_failed = true;
      }};
      while (!fs::exists(jobs) && !has_failed)
        std::this_thread::yield();
      auto other = run_directory::create(jobs / "other", "seed = 1\n");
      if (!other) // its parent folder was taken back before it was in it
        other = run_directory::create(jobs / "other", "seed = 1\n");
      failing.join();
      REQUIRE(other);
      CHECK(test::content(other->config()) == "seed = 1\n");
    }
  }

  TEST_CASE("several runs that ask for one folder at once leave it to one of them") {
    test::scratch_folder folder;
    for (int round = 0; round < 20; ++round) {
      const auto path = folder / std::to_string(round);
      std::mutex mutex;
      std::vector<std::string> winners;
      auto begin = [&](const char* config) {
        const auto created = run_directory::create(path, config);
        std::lock_guard guard{mutex};
        if (created)
          winners.emplace_back(config);
        else
          CHECK(created.error().message.find(" already holds something") != std::string::npos);
      };
      {
        std::vector<std::jthread> runs;
        for (const auto* config : {"seed = 1\n", "seed = 2\n", "seed = 3\n"})
          runs.emplace_back(begin, config);
      }
      REQUIRE(winners.size() == 1);
      CHECK(test::content(path / "config.toml") == winners.front());
    }
  }

  TEST_CASE("what a run takes back is not the claim of another") {
    test::scratch_folder folder;
    const auto directory = run_directory::create(folder / "run", "seed = 1\n");
    REQUIRE(directory);
    test::write(folder / "run/config.toml.new", "seed = 2\n");
    directory->take_back();
    CHECK(test::content(folder / "run/config.toml.new") == "seed = 2\n");
    CHECK_FALSE(fs::exists(directory->config()));
  }

  TEST_CASE("refuses where the system makes no folders, and leaves nothing") {
    const auto created = run_directory::create("/proc/troupe-run", "seed = 1\n");
    REQUIRE_FALSE(created);
    CHECK(created.error().code == errc::resource);
    CHECK_FALSE(fs::exists("/proc/troupe-run"));
  }

  TEST_CASE("a run counts as begun unless its configuration does not exist") {
    test::scratch_folder folder;
    const auto config = run_directory::at(folder.path()).config();
    CHECK_FALSE(run_directory::is_begun(folder.path()));
    CHECK_FALSE(run_directory::is_begun(folder / "missing"));
    test::write(config, "seed = 1\n");
    CHECK(run_directory::is_begun(folder.path()));
    fs::remove(config);
    fs::create_symlink(config, config); // not even root can look at it
    CHECK(run_directory::is_begun(folder.path()));
  }

  TEST_CASE("names a new folder after the time") {
    test::scratch_folder folder;
    const std::chrono::system_clock::time_point now{std::chrono::seconds{1'767'225'723}};
    const auto first = run_directory::create_dated(folder / "runs", now, "seed = 1\n");
    const auto second = run_directory::create_dated(folder / "runs", now, "seed = 2\n");
    REQUIRE(first);
    REQUIRE(second);
    CHECK(first->path() == folder / "runs/2026-01-01-000203");
    CHECK(second->path() == folder / "runs/2026-01-01-000203-2");
    CHECK(test::content(first->config()) == "seed = 1\n");
    CHECK(test::content(second->config()) == "seed = 2\n");
  }

  TEST_CASE("takes a configuration in UTF-8, and names the option that is not") {
    for (const auto* text : {"", "seed = 1\n", "text = \"f\xc3\xbcr\"\n", "a = \"\xe2\x82\xac\"",
                             "a = \"\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"\n"})
      CHECK(run_directory::check_config(text));
    for (const auto* name :
         {"\xff", "\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xe2\x82", "\xe0\x9f\xbf", "\xed\xa0\x80",
          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
      const auto refused
        = run_directory::check_config(std::string{"seed = 1\ntext = \""} + name + "\"\n");
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::invalid_argument);
      CHECK(refused.error().message
            == "--text is not UTF-8, in which config.toml is written: give the file or folder "
               "another name");
    }
  }

  TEST_CASE("names the file that an option comes from, if the name of that is not UTF-8") {
    const auto refused = run_directory::check_config("seed = 1    # r\xff/config.toml:3\n");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.starts_with("r?/config.toml:3 is not UTF-8"));
  }

  TEST_CASE("makes no folder for a configuration that cannot be read back") {
    test::scratch_folder folder;
    const auto* config = "text = \"\xff\"\n";
    CHECK_FALSE(run_directory::create(folder / "run", config));
    CHECK_FALSE(run_directory::create_dated(folder / "runs", {}, config));
    CHECK(fs::is_empty(folder.path()));
  }

  TEST_CASE("refuses to put dated folders into a file") {
    test::scratch_folder folder;
    test::write(folder / "runs", "text");
    const auto refused
      = run_directory::create_dated(folder / "runs", std::chrono::system_clock::time_point{}, "");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("--run-dir: ") == 0);
  }
}

} // namespace run_directory_test
