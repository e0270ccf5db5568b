// SPDX-License-Identifier: Apache-2.0
// Goal: the newest whole checkpoint is found whatever lies beside it, and never removed. Method:
// scratch folders in which files are damaged by hand.
#include "actors/checkpoint/checkpoint_directory.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

TEST_SUITE("actors/checkpoint/checkpoint_directory") {
  using namespace troupe;

  checkpoint_directory opened(const std::filesystem::path& path) {
    auto directory = checkpoint_directory::open(path);
    REQUIRE(directory);
    return std::move(*directory);
  }

  void write_steps(checkpoint_directory & directory, std::initializer_list<uint64_t> steps) {
    for (auto step : steps)
      REQUIRE(directory.write(step, {}, {{"step", std::to_string(step)}}));
  }

  void damage(const std::filesystem::path& path) {
    auto bytes = test::content(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    test::write(path, bytes);
  }

  using step_list = std::vector<uint64_t>;

  TEST_CASE("makes its folder, and knows files by their steps") {
    test::scratch_folder folder;
    auto directory = opened(folder / "run/checkpoints");
    CHECK(directory.steps() == step_list{});
    write_steps(directory, {100, 20, 3});
    CHECK(directory.path_of(20) == folder / "run/checkpoints/checkpoint-20.safetensors");
    for (const char* other :
         {"checkpoint-007.safetensors", "checkpoint-.safetensors", "checkpoint-5.safetensors.old",
          "checkpoint--5.safetensors", "checkpoint-18446744073709551616.safetensors", "notes.txt"})
      test::write(folder / "run/checkpoints" / other, "");
    CHECK(directory.steps() == step_list{3, 20, 100});
  }

  TEST_CASE("a folder that is not ours is read, and left as it is") {
    test::scratch_folder folder;
    auto other = checkpoint_directory::look_at(folder / "none");
    CHECK(other.steps().error().code == errc::resource);
    CHECK_FALSE(std::filesystem::exists(folder / "none"));
    auto owner = opened(folder.path());
    write_steps(owner, {1});
    test::write(folder / ".checkpoint-2.safetensors.partial", "half");
    CHECK(checkpoint_directory::look_at(folder.path()).read(1)->step == 1);
    CHECK(std::filesystem::exists(folder / ".checkpoint-2.safetensors.partial"));
  }

  TEST_CASE("reads the checkpoint of one step, or says why not") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    write_steps(directory, {1, 2});
    damage(directory.path_of(2));
    CHECK(directory.read(1)->content.metadata.at("step") == "1");
    CHECK(directory.read(2).error().code == errc::malformed);
    CHECK(directory.read(3).error().code == errc::not_found);
  }

  TEST_CASE("finds the newest checkpoint") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    CHECK_FALSE(directory.newest_valid()->found);
    write_steps(directory, {9, 10});
    const auto newest = directory.newest_valid();
    REQUIRE(newest->found);
    CHECK(newest->found->step == 10);
    CHECK(newest->found->content.metadata.at("step") == "10");
    CHECK(newest->warnings.empty());
    CHECK(directory.newest_valid(10)->found->step == 9);
    CHECK_FALSE(directory.newest_valid(9)->found);
    write_steps(directory, {UINT64_MAX});
    CHECK(directory.newest_valid()->found->step == UINT64_MAX);
  }

  TEST_CASE("passes over damaged files with a warning for each") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    write_steps(directory, {1, 2, 3, 4});
    damage(directory.path_of(4));
    test::write(directory.path_of(3), std::string("\x02\0\0\0\0\0\0\0{}", 10));
    std::filesystem::resize_file(directory.path_of(2), 10);
    auto newest = directory.newest_valid();
    REQUIRE(newest->found);
    CHECK(newest->found->step == 1);
    REQUIRE(newest->warnings.size() == 3);
    CHECK(
      newest->warnings[0].starts_with("checkpoint passed over: " + directory.path_of(4).string()));
    CHECK(newest->warnings[1]
          == "checkpoint passed over: " + directory.path_of(3).string()
               + ": it has no checksum of ours");
    damage(directory.path_of(1));
    newest = directory.newest_valid();
    CHECK_FALSE(newest->found);
    CHECK(newest->warnings.size() == 4);
  }

  TEST_CASE("a checkpoint that cannot be read may be whole, so no older one is taken for it") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    write_steps(directory, {1});
    auto refusal = [&] { return directory.newest_valid().error(); };
    std::filesystem::create_symlink("checkpoint-2.safetensors", directory.path_of(2)); // a loop
    CHECK(refusal().code == errc::resource);
    CHECK(refusal().message
          == "cannot read " + directory.path_of(2).string()
               + ": Too many levels of symbolic links; no older checkpoint is taken in its place: "
                 "mend that, name another folder, or move it away");
    CHECK(directory.newest_valid(2)->found->step == 1);
    std::filesystem::create_directory(directory.path_of(3));
    CHECK(refusal().code == errc::invalid_argument);
    CHECK(refusal().message.starts_with(directory.path_of(3).string() + " is a folder"));
  }

  TEST_CASE("a checkpoint that is gone before it is read is passed over") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    write_steps(directory, {1});
    std::filesystem::create_symlink("nothing", directory.path_of(2));
    auto newest = directory.newest_valid();
    REQUIRE(newest);
    CHECK(newest->found->step == 1);
    CHECK(newest->warnings.size() == 1);
  }

  TEST_CASE("a folder that cannot be looked at is no folder that is missing") {
    test::scratch_folder folder;
    auto is_there = [&](std::string_view name) {
      return checkpoint_directory::look_at(folder / name).is_there();
    };
    CHECK(is_there(".").value());
    CHECK_FALSE(is_there("none/below").value());
    test::write(folder / "file", "");
    std::filesystem::create_symlink("loop", folder / "loop");
    for (const auto* name : {"file/below", "loop"}) {
      CAPTURE(name);
      CHECK(is_there(name).error().code == errc::resource);
      CHECK(is_there(name).error().message.starts_with("cannot look at " + (folder / name).string()
                                                       + ": "));
    }
  }

  TEST_CASE("keeps the newest") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    write_steps(directory, {1, 2, 3, 4});
    REQUIRE(directory.keep(5));
    CHECK(directory.steps() == step_list{1, 2, 3, 4});
    REQUIRE(directory.keep(2));
    CHECK(directory.steps() == step_list{3, 4});
  }

  TEST_CASE("a file that cannot be removed does not keep others from being removed") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    std::filesystem::create_directories(folder / "checkpoint-2.safetensors/of somebody else");
    write_steps(directory, {1, 3, 4});
    auto kept = directory.keep(1);
    REQUIRE_FALSE(kept);
    CHECK(kept.error().message.find("checkpoint-2.safetensors") != std::string::npos);
    CHECK(directory.steps() == step_list{2, 4});
  }

  TEST_CASE("never removes the last whole one") {
    test::scratch_folder folder;
    {
      auto earlier = opened(folder.path());
      write_steps(earlier, {1, 2, 3, 4});
    }
    auto directory = opened(folder.path());
    damage(directory.path_of(3));
    damage(directory.path_of(4));
    REQUIRE(directory.keep(1));
    CHECK(directory.steps() == step_list{2, 4});
    write_steps(directory, {5});
    REQUIRE(directory.keep(1));
    CHECK(directory.steps() == step_list{5});
  }

  TEST_CASE("never removes one that cannot be read while no newer one is whole") {
    test::scratch_folder folder;
    auto directory = opened(folder.path());
    test::write(directory.path_of(1), "damaged");
    std::filesystem::create_symlink("checkpoint-2.safetensors", directory.path_of(2)); // a loop
    test::write(directory.path_of(3), "damaged");
    REQUIRE(directory.keep(1));
    CHECK(directory.steps() == step_list{2, 3});
    write_steps(directory, {4});
    REQUIRE(directory.keep(1));
    CHECK(directory.steps() == step_list{4});
  }

  TEST_CASE("removes what an interrupted write left, and nothing else") {
    test::scratch_folder folder;
    test::write(folder / ".checkpoint-7.safetensors.partial", "half");
    test::write(folder / ".notes.partial", "");
    test::write(folder / ".partial", "");
    auto directory = opened(folder.path());
    CHECK_FALSE(std::filesystem::exists(folder / ".checkpoint-7.safetensors.partial"));
    CHECK(std::filesystem::exists(folder / ".notes.partial"));
    CHECK(std::filesystem::exists(folder / ".partial"));
  }

  TEST_CASE("tells what is no folder, and what cannot be read any more") {
    test::scratch_folder folder;
    test::write(folder / "file", "");
    CHECK_FALSE(checkpoint_directory::open(folder / "file"));
    CHECK_FALSE(checkpoint_directory::open(folder / "file/below"));
    auto directory = opened(folder / "gone");
    std::filesystem::remove(folder / "gone");
    CHECK(directory.newest_valid().error().code == errc::resource);
    CHECK(directory.keep(1).error().code == errc::resource);
  }
}
