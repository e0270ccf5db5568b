// SPDX-License-Identifier: Apache-2.0
// Goal: a header says exactly what it may say; whatever else it says is refused in one line with
// the culprit. Method: texts written by hand, read from memory.
#include "actors/checkpoint/safetensors_header.hpp"
#include "tests/doctest.hpp"

#include <cstring>

TEST_SUITE("actors/checkpoint/safetensors_header") {
  using namespace troupe;

  // A file with this header text and so many bytes behind it.
  std::string file_of(std::string_view text, size_t payload_bytes) {
    std::string file(8, '\0');
    const uint64_t length = text.size();
    std::memcpy(file.data(), &length, sizeof length);
    return file.append(text).append(payload_bytes, 'x');
  }

  expected<safetensors_header> read(const std::string& file) {
    return read_safetensors_header(input_file::in_memory("file", std::as_bytes(std::span{file})));
  }

  // The complaint about a header text, without the name of the file.
  std::string complaint(std::string_view text, size_t payload_bytes = 0) {
    auto header = read(file_of(text, payload_bytes));
    REQUIRE_FALSE(header);
    CHECK(header.error().code == errc::malformed);
    CHECK(header.error().message.starts_with("file: "));
    return header.error().message.substr(6);
  }

  // A header of one tensor "w", of so many bytes.
  std::string one_tensor(std::string_view fields, size_t payload_bytes = 0) {
    return complaint(R"({"w":{)" + std::string{fields} + "}}", payload_bytes);
  }

  TEST_CASE("reads what another program may write") {
    auto header = read(file_of(R"( {"b":{"data_offsets":[0,4],"shape":[2],"dtype":"BF16"},
      "__metadata__":{"format":"pt"}, "e":{"dtype":"I64","shape":[3,0],"data_offsets":[4,4]},
      "a":{"dtype":"F64","shape":[],"data_offsets":[4,12]}}   )",
                               12));
    REQUIRE(header);
    REQUIRE(header->entries.size() == 3);
    CHECK(header->entries[0].name == "b");
    CHECK(header->entries[0].type == dtype::bf16);
    CHECK(header->entries[0].extents == shape{2});
    CHECK(header->entries[1].extents == shape{3, 0});
    CHECK(header->entries[2].extents == shape{});
    CHECK(header->entries[2].begin == 4);
    CHECK(header->entries[2].end == 12);
    CHECK(header->metadata == safetensors_metadata{{"format", "pt"}});
    CHECK(header->checksum.empty());
    CHECK(in_payload_order(header->entries)[1]->name == "e");
  }

  TEST_CASE("knows the six element types by the names that others use") {
    const std::pair<const char*, dtype> names[]
      = {{"F32", dtype::f32},   {"F64", dtype::f64}, {"F16", dtype::f16},
         {"BF16", dtype::bf16}, {"I32", dtype::i32}, {"I64", dtype::i64}};
    for (const auto& [name, type] : names) {
      const auto text
        = std::string{R"({"w":{"dtype":")"} + name + R"(","shape":[0],"data_offsets":[0,0]}})";
      auto header = read(file_of(text, 0));
      REQUIRE(header);
      CHECK(header->entries[0].type == type);
    }
  }

  TEST_CASE("refuses a length that the file cannot hold") {
    CHECK(read("").error().message == "file: byte 0: the file ends here, too early");
    CHECK(read("1234567").error().code == errc::malformed);
    CHECK(read(std::string("\x01\0\0\0\0\0\0\0", 8)).error().message
          == "file: byte 0: a header of 1 bytes: more than the file holds, or more than 100000000");
    CHECK(read(std::string(8, '\xff') + "{}").error().code == errc::malformed);
  }

  TEST_CASE("refuses what is no JSON, or nested where nothing may be") {
    CHECK(complaint("") == "byte 8: the header is no JSON from here on");
    CHECK(complaint(R"({"w")") == "byte 12: the header is no JSON from here on");
    CHECK(complaint("{} x") == "byte 11: the header is no JSON from here on");
    CHECK(complaint("{\"\xff\":{}}") == "byte 10: the header is no JSON from here on");
    CHECK(complaint("[]") == "the header is a list, no object");
    CHECK(complaint("7") == "the header is a number, no object");
    CHECK(complaint(R"({"w":[)") == "\"w\" is a list");
    CHECK(complaint(R"({"w":{"shape":{)") == "\"w\": \"shape\" holds an object");
    CHECK(complaint(R"({"w":{"shape":[[)") == "\"w\": \"shape\" holds a list");
    CHECK(complaint(R"({"__metadata__":{"a":{)") == "\"__metadata__\": \"a\" holds an object");
    CHECK(complaint(R"({"__metadata__":{"a":1)") == "\"__metadata__\": \"a\" holds a number");
    CHECK(complaint(std::string(1'000'000, '[')) == "the header is a list, no object");
  }

  TEST_CASE("refuses names that are there twice") {
    const std::string empty = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    CHECK(complaint(R"({"w":)" + empty + R"(,"w":)" + empty + "}") == "\"w\" is there twice");
    CHECK(complaint(R"({"__metadata__":{},"__metadata__":{}})")
          == "\"__metadata__\" is there twice");
    CHECK(complaint(R"({"__metadata__":{"a":"","a":""}})")
          == "\"__metadata__\": \"a\" is there twice");
    CHECK(one_tensor(R"("dtype":"F32","dtype":"F32")") == "\"w\": \"dtype\" is there twice");
    CHECK(one_tensor(R"("shape":[],"shape":[])") == "\"w\": \"shape\" is there twice");
  }

  TEST_CASE("refuses fields that are missing, unknown or of another kind") {
    CHECK(one_tensor(R"("dtype":"F32","shape":[0])")
          == "tensor \"w\" lacks dtype, shape or data_offsets");
    CHECK(one_tensor(R"("dtype":"U8")")
          == "tensor \"w\": dtype \"U8\" is none of F32, F64, F16, BF16, I32, I64");
    CHECK(one_tensor(R"("dtype":32)") == "\"w\": \"dtype\" holds a number");
    CHECK(one_tensor(R"("color":"red")") == "\"w\": \"color\" holds a text");
    CHECK(one_tensor(R"("shape":[-1])") == "\"w\": \"shape\" holds a negative number");
    CHECK(one_tensor(R"("shape":[1.5])")
          == "\"w\": \"shape\" holds a number with a fraction, or one of more than 64 bits");
    CHECK(one_tensor(R"("shape":[18446744073709551616])")
          == "\"w\": \"shape\" holds a number with a fraction, or one of more than 64 bits");
    CHECK(one_tensor(R"("shape":[null])") == "\"w\": \"shape\" holds null");
    CHECK(one_tensor(R"("shape":true)") == "\"w\": \"shape\" holds a truth value");
  }

  TEST_CASE("refuses offsets that do not fit the shape") {
    CHECK(one_tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4)
          == "tensor \"w\": data_offsets [0, 4] hold 4 bytes, its shape needs 8");
    CHECK(one_tensor(R"("dtype":"F32","shape":[0],"data_offsets":[4,0])", 4)
          == "tensor \"w\": data_offsets is not a begin and an end");
    CHECK(one_tensor(R"("dtype":"F32","shape":[0],"data_offsets":[0])")
          == "tensor \"w\": data_offsets is not a begin and an end");
    CHECK(one_tensor(R"("dtype":"F32","shape":[0],"data_offsets":[0,0,0])")
          == "tensor \"w\": data_offsets is not a begin and an end");
  }

  TEST_CASE("refuses shapes whose size passes 63 bits, empty ones too") {
    const std::string offsets = R"(],"data_offsets":[0,0])";
    CHECK(one_tensor(R"("dtype":"F32","shape":[4611686018427387904)" + offsets)
          == "tensor \"w\": its shape is beyond 63 bits");
    CHECK(one_tensor(R"("dtype":"F32","shape":[4294967296,4294967296)" + offsets)
          == "tensor \"w\": its shape is beyond 63 bits");
    CHECK(one_tensor(R"("dtype":"F32","shape":[0,9223372036854775807,3)" + offsets)
          == "tensor \"w\": its shape is beyond 63 bits");
    std::string ones = "1";
    for (int i = 0; i < 32; ++i)
      ones += ",1";
    CHECK(one_tensor(R"("dtype":"F32","shape":[)" + ones + offsets)
          == "tensor \"w\": shape has more than 32 numbers");
  }

  TEST_CASE("refuses a payload that its tensors do not cover exactly") {
    const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
    CHECK(complaint("{" + a + "}", 5) == "1 bytes after the last tensor belong to none");
    CHECK(complaint("{" + a + "}", 3)
          == "tensor \"a\": ends at byte 4 of the payload, which has 3: the file is cut");
    CHECK(complaint("{" + a + R"(,"b":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})", 4)
          == "tensor \"b\": begins at byte 2 of the payload, within another, which ends at byte 4");
    CHECK(complaint("{" + a + R"(,"b":{"dtype":"F16","shape":[1],"data_offsets":[6,8]}})", 8)
          == "tensor \"b\": begins at byte 6 of the payload, leaving a gap from byte 4");
    CHECK(complaint("{}", 1) == "1 bytes after the last tensor belong to none");
    CHECK(read(file_of("{}", 0)));
  }

  TEST_CASE("refuses a checksum that does not stand where it is written") {
    CHECK(complaint(R"({"__metadata__":{"a":"", "troupe.crc32c":"00000000"}})")
            .starts_with("troupe.crc32c does not stand at byte 42: damaged, or rewritten"));
    CHECK(complaint(R"({"__metadata__":{"troupe.crc32c":""}})").starts_with("troupe.crc32c does"));
  }

  TEST_CASE("shows a strange name as one line of ordinary letters") {
    CHECK(complaint("{\"a\\nb\":1}") == "\"a\\x0ab\" is a number");
    CHECK(complaint("{\"" + std::string(5000, 'n') + "\":1}").size() < 120);
  }

  TEST_CASE("writes what it reads, with the payload at a multiple of 64") {
    const std::vector<safetensors_entry> entries{{"w \"1\"", dtype::f32, shape{2, 3}, 8, 32},
                                                 {"\xc3\xa4", dtype::i64, shape{}, 0, 8}};
    const safetensors_metadata metadata{{"", "x\n"}, {"step", "7"}};
    auto bytes = format_safetensors_header(entries, metadata);
    REQUIRE(bytes);
    CHECK(bytes->size() % 64 == 0);
    CHECK(bytes->substr(safetensors_checksum_offset, 9) == "00000000\"");
    auto header = read(*bytes + std::string(32, 'x'));
    REQUIRE(header);
    CHECK(header->metadata == metadata);
    CHECK(header->checksum == "00000000");
    CHECK(header->bytes == *bytes);
    REQUIRE(header->entries.size() == 2);
    CHECK(header->entries[0].name == entries[0].name);
    CHECK(header->entries[0].extents == entries[0].extents);
    CHECK(header->entries[0].begin == 8);
    CHECK(header->entries[1].name == entries[1].name);
    CHECK(header->entries[1].type == dtype::i64);
  }

  TEST_CASE("writes no name that it could not read again") {
    const auto code_for
      = [](const char* first, const char* second, const safetensors_metadata& metadata = {}) {
          const std::vector<safetensors_entry> entries{{first, dtype::f32, shape{0}, 0, 0},
                                                       {second, dtype::f32, shape{0}, 0, 0}};
          auto bytes = format_safetensors_header(entries, metadata);
          return bytes ? errc::none : bytes.error().code;
        };
    CHECK(code_for("a", "b") == errc::none);
    CHECK(code_for("a", "a") == errc::invalid_argument);
    CHECK(code_for("__metadata__", "b") == errc::invalid_argument);
    CHECK(code_for("a", "\xff") == errc::invalid_argument);
    CHECK(code_for("a", "b", {{"troupe.crc32c", ""}}) == errc::invalid_argument);
    CHECK(code_for("a", "b", {{"key", "\xff"}}) == errc::invalid_argument);
  }
}
