// SPDX-License-Identifier: Apache-2.0
// Goal: what is written comes back bit for bit, damage anywhere is noticed, and a failed write
// leaves nothing. Method: scratch files, every cut and every flipped bit of a small file, and a
// file that the Python package `safetensors` 0.4.5 made.
#include "actors/checkpoint/safetensors_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <cstring>

TEST_SUITE("actors/checkpoint/safetensors_file") {
  using namespace troupe;

  template <class T>
  tensor tensor_of(shape extents, const std::vector<T>& values) {
    tensor result{dtype_of<T>, std::move(extents)};
    std::ranges::copy(values, result.mutable_values<T>().begin());
    return result;
  }

  std::vector<named_tensor> all_kinds() {
    return {{"f16", tensor_of<float16>({3}, {{0x3c00}, {0x7e01}, {0x0001}})},
            {"empty", zeros({0, 5}, dtype::f64)},
            {"f32", tensor_of<float>({2, 2}, {1.5F, -0.0F, 3e38F, 1e-45F})},
            {"scalar", tensor_of<int64_t>({}, {-9'000'000'000})},
            {"bf16", tensor_of<bfloat16>({1, 1}, {{0x3fc0}})},
            {"i32", tensor_of<int32_t>({2}, {-1, 7})},
            {"f64", tensor_of<double>({1}, {0.1})}};
  }

  void check_equal(const std::vector<named_tensor>& read,
                   const std::vector<named_tensor>& written) {
    REQUIRE(read.size() == written.size());
    for (size_t i = 0; i < read.size(); ++i) {
      CAPTURE(written[i].name);
      CHECK(read[i].name == written[i].name);
      CHECK(read[i].value.type() == written[i].value.type());
      REQUIRE(read[i].value.extents() == written[i].value.extents());
      const auto expected = written[i].value.contiguous();
      CHECK((expected.bytes() == 0
             || std::memcmp(read[i].value.data(), expected.data(), expected.bytes()) == 0));
    }
  }

  expected<safetensors_content> read(std::string_view bytes) {
    return read_safetensors(input_file::in_memory("file", std::as_bytes(std::span{bytes})));
  }

  TEST_CASE("brings tensors of every kind back, in order and bit for bit") {
    test::scratch_folder folder;
    const safetensors_metadata metadata{{"step", "1200"}, {"text", "two\nlines"}};
    REQUIRE(write_safetensors(folder / "a.safetensors", all_kinds(), metadata));
    auto content = read_safetensors(folder / "a.safetensors");
    REQUIRE(content);
    CHECK(content->metadata == metadata);
    CHECK(content->has_checksum);
    check_equal(content->tensors, all_kinds());
  }

  TEST_CASE("aligns each tensor in the file for its type") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", all_kinds()));
    auto file = input_file::open(folder / "a");
    REQUIRE(file);
    auto header = read_safetensors_header(*file);
    REQUIRE(header);
    CHECK(header->bytes.size() % 64 == 0);
    for (const auto& entry : header->entries)
      CHECK(entry.begin % element_bytes(entry.type) == 0);
  }

  TEST_CASE("writes views row by row, and tensors of more than a block") {
    test::scratch_folder folder;
    tensor large{dtype::i32, {1000, 700}};
    auto values = large.mutable_values<int32_t>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int32_t>(i);
    const std::vector<named_tensor> tensors{{"rows", large}, {"columns", large.transpose()}};
    REQUIRE(write_safetensors(folder / "a", tensors));
    auto content = read_safetensors(folder / "a");
    REQUIRE(content);
    check_equal(content->tensors, tensors);
  }

  TEST_CASE("writes a file without tensors") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", {}));
    auto content = read_safetensors(folder / "a");
    REQUIRE(content);
    CHECK(content->tensors.empty());
    CHECK(content->metadata.empty());
  }

  TEST_CASE("replaces a file, and leaves nothing beside it") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", {}, {{"which", "first"}}));
    REQUIRE(write_safetensors(folder / "a", {}, {{"which", "second"}}));
    CHECK(read_safetensors(folder / "a")->metadata.at("which") == "second");
    const std::filesystem::directory_iterator files{folder.path()};
    CHECK(std::distance(begin(files), end(files)) == 1);
  }

  TEST_CASE("a write that fails says why and leaves the old file alone") {
    test::scratch_folder folder;
    const auto missing = write_safetensors(folder / "missing/a", {});
    CHECK(missing.error().code == errc::resource);
    CHECK(missing.error().message
          == "cannot create " + (folder / "missing/.a.partial").string()
               + ": No such file or directory");
    std::filesystem::create_directory(folder / "taken");
    CHECK(write_safetensors(folder / "taken", {}).error().code == errc::resource);
    CHECK_FALSE(std::filesystem::exists(folder / ".taken.partial"));
    const std::vector<named_tensor> twins{{"a", zeros({1})}, {"a", zeros({1})}};
    CHECK(
      write_safetensors(folder / "a", twins).error()
      == error{errc::invalid_argument, (folder / "a").string() + ": two tensors are named \"a\""});
  }

  TEST_CASE("a full disk is told, and leaves nothing behind") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", {}, {{"which", "old"}}));
    // Whatever is written under this name meets a full disk.
    std::filesystem::create_symlink("/dev/full", folder / ".a.partial");
    const std::vector<named_tensor> tensors{{"w", zeros({4})}};
    const auto refused = write_safetensors(folder / "a", tensors);
    REQUIRE_FALSE(refused);
    CHECK(refused.error()
          == error{errc::resource, "cannot write " + (folder / ".a.partial").string()
                                     + ": No space left on device"});
    CHECK_FALSE(std::filesystem::is_symlink(folder / ".a.partial"));
    CHECK(read_safetensors(folder / "a")->metadata.at("which") == "old");
  }

  TEST_CASE("refuses every cut of a file") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", all_kinds()));
    const auto whole = test::content(folder / "a");
    for (size_t length = 0; length < whole.size(); ++length) {
      const auto cut = read(std::string_view{whole}.substr(0, length));
      REQUIRE_FALSE(cut);
      CHECK(cut.error().code == errc::malformed);
      CHECK(cut.error().message.find('\n') == std::string::npos);
    }
    CHECK_FALSE(read(whole + "x"));
  }

  TEST_CASE("notices every flipped bit, or it changes no tensor and no metadata") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", all_kinds(), {{"step", "7"}}));
    const auto whole = test::content(folder / "a");
    size_t unnoticed = 0;
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      auto damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const auto content = read(damaged);
      if (!content) {
        CHECK(content.error().code == errc::malformed);
        continue;
      }
      // The name of the checksum itself was hit: the file looks like one of another tool.
      ++unnoticed;
      CHECK_FALSE(content->has_checksum);
      check_equal(content->tensors, all_kinds());
      CHECK(content->metadata.at("step") == "7");
    }
    CHECK(unnoticed <= 8 * std::string_view{"troupe.crc32c"}.size());
  }

  TEST_CASE("says which checksum it wanted") {
    test::scratch_folder folder;
    REQUIRE(write_safetensors(folder / "a", all_kinds()));
    auto bytes = test::content(folder / "a");
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    const auto damaged = read(bytes);
    REQUIRE_FALSE(damaged);
    const auto digits = bytes.substr(safetensors_checksum_offset, 8);
    CHECK(damaged.error().message.ends_with("but " + digits + " was written: damaged"));
  }

  // The file that the Python package's `safetensors.serialize` made of seven NumPy arrays.
  std::string file_of_python() {
    std::string file{"\xd0\x01\0\0\0\0\0\0", 8};
    file += R"({"__metadata__":{"format":"pt","made":"by safetensors 0.4.5"},)"
            R"("i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
            R"("scalar":{"dtype":"F64","shape":[],"data_offsets":[8,16]},)"
            R"("empty":{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]},)"
            R"("w32":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]},)"
            R"("j":{"dtype":"I32","shape":[2],"data_offsets":[32,40]},)"
            R"("wb":{"dtype":"BF16","shape":[2],"data_offsets":[40,44]},)"
            R"("w16":{"dtype":"F16","shape":[3],"data_offsets":[44,50]}}  )";
    const uint8_t payload[]
      = {0x00, 0xe6, 0x8e, 0xe7, 0xfd, 0xff, 0xff, 0xff, 0x9a, 0x99, 0x99, 0x99, 0x99,
         0x99, 0xb9, 0x3f, 0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00,
         0x40, 0x40, 0x00, 0x00, 0x88, 0x40, 0xfb, 0xff, 0xff, 0xff, 0x06, 0x00, 0x00,
         0x00, 0xc0, 0x3f, 0x62, 0xff, 0x00, 0x3e, 0x00, 0xc0, 0xff, 0x7b};
    return file.append(std::begin(payload), std::end(payload));
  }

  TEST_CASE("reads what the Python package writes") {
    const auto content = read(file_of_python());
    REQUIRE(content);
    CHECK_FALSE(content->has_checksum);
    CHECK(content->metadata
          == safetensors_metadata{{"format", "pt"}, {"made", "by safetensors 0.4.5"}});
    check_equal(
      content->tensors,
      {{"i", tensor_of<int64_t>({1}, {-9'000'000'000})},
       {"scalar", tensor_of<double>({}, {0.1})},
       {"empty", zeros({0, 3})},
       {"w32", make_tensor({2, 2}, {1, 2, 3, 4.25F})},
       {"j", tensor_of<int32_t>({2}, {-5, 6})},
       {"wb", tensor_of<bfloat16>({2}, {to_bfloat16(1.5F), to_bfloat16(-3e38F)})},
       {"w16", tensor_of<float16>({3}, {to_float16(1.5F), to_float16(-2), to_float16(65504)})}});
  }

  TEST_CASE("tells what cannot be opened") {
    test::scratch_folder folder;
    CHECK(read_safetensors(folder / "missing").error().code == errc::not_found);
    CHECK(read_safetensors(folder.path()).error().code == errc::invalid_argument);
  }
}
