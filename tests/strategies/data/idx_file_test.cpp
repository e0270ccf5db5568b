// SPDX-License-Identifier: Apache-2.0
// Goal: arrays of every IDX type come out as numbers, and no header is believed. Method: files put
// together by hand from the description of the format.
#include "messages/errors/failure.hpp"
#include "strategies/data/idx_file.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/memory_file.hpp"

namespace idx_file_test {

TEST_SUITE("strategies/data/idx_file") {
  using namespace troupe;
  using test::complaint_about;
  using test::in_memory;
  using test::values;
  using test::whole;

  // A file of one type and dimensions below 256, with these bytes behind its header.
  std::string idx(char type, std::initializer_list<char> dims, std::string_view numbers) {
    std::string file{'\0', '\0', type, static_cast<char>(dims.size())};
    for (char dim : dims)
      file.append({'\0', '\0', '\0', dim});
    return file.append(numbers);
  }

  TEST_CASE("reads images and labels") {
    const auto images = idx(8, {2, 2, 3}, std::string_view{"\0\1\2\3\4\5\6\7\x80\xff\1\0", 12});
    const auto pixels = whole(idx_dataset(in_memory(images)));
    CHECK(pixels.type() == dtype::i32);
    CHECK(pixels.extents() == shape{2, 2, 3});
    CHECK(values<int32_t>(pixels) == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 128, 255, 1, 0});
    CHECK(values<float>(whole(idx_dataset(in_memory(images), dtype::f32)))[9] == 255);
    const auto labels = idx(8, {3}, "\7\2\1");
    CHECK(values<int64_t>(whole(idx_dataset(in_memory(labels), dtype::i64)))
          == std::vector<int64_t>{7, 2, 1});
  }

  TEST_CASE("reads every type, the highest byte first") {
    CHECK(values<int32_t>(whole(idx_dataset(in_memory(idx(9, {2}, "\x80\x7f")))))
          == std::vector<int32_t>{-128, 127});
    CHECK(values<int32_t>(whole(idx_dataset(in_memory(idx(11, {2}, "\xff\xfe\1\2")))))
          == std::vector<int32_t>{-2, 258});
    CHECK(values<int32_t>(whole(idx_dataset(in_memory(idx(12, {1}, "\x80\1\2\3")))))
          == std::vector<int32_t>{-0x7ffefdfd});
    CHECK(values<float>(
            whole(idx_dataset(in_memory(idx(13, {1}, std::string_view{"\x3f\xc0\0\0", 4})))))
          == std::vector<float>{1.5F});
    CHECK(values<double>(
            whole(idx_dataset(in_memory(idx(14, {1}, "\x3f\xb9\x99\x99\x99\x99\x99\x9a")))))
          == std::vector<double>{0.1});
  }

  TEST_CASE("refuses numbers that do not fit the type asked for") {
    const auto doubles = idx(14, {1}, "12345678");
    CHECK(idx_dataset(in_memory(doubles), dtype::i64).error()
          == error{errc::type_mismatch, "file: its numbers need f64 and do not fit into i64"});
  }

  TEST_CASE("names what is wrong with a header") {
    CHECK(complaint_about(idx_dataset(in_memory("\x1f\x8b\x08_")))
          == "file: byte 0: the file is compressed: unpack it with gunzip first");
    CHECK(complaint_about(idx_dataset(in_memory(idx(7, {1}, "1"))))
          == "file: byte 0: this does not begin an IDX file");
    CHECK(complaint_about(idx_dataset(in_memory("IDX3")))
          == "file: byte 0: this does not begin an IDX file");
    CHECK(complaint_about(idx_dataset(in_memory("")))
          == "file: byte 0: the file ends here, too early");
    CHECK(complaint_about(idx_dataset(in_memory(idx(8, {}, "1"))))
          == "file: byte 0: an array of 0 dimensions: 1 to 32 can be read row by row");
    CHECK(complaint_about(idx_dataset(in_memory(idx(8, {2, 3}, "12345"))))
          == "file: byte 12: 5 bytes follow, where an array of [2, 3] needs 6");
    CHECK(complaint_about(idx_dataset(in_memory(idx(8, {2}, "123"))))
          == "file: byte 8: 3 bytes follow, where an array of [2] needs 2");
  }

  TEST_CASE("notices sizes that overflow, empty arrays among them") {
    auto file = std::string{"\0\0\x0e\3", 4} + std::string(8, '\xff') + std::string(4, '\xff');
    CHECK(
      complaint_about(idx_dataset(in_memory(file)))
      == "file: byte 16: 0 bytes follow, where an array of [4294967295, 4294967295, 4294967295] "
         "needs more than 63 bits count");
    file.replace(4, 4, 4, '\0');
    CHECK_FALSE(idx_dataset(in_memory(file)));
    CHECK(idx_dataset(in_memory(idx(8, {0, 5}, "")))->size() == 0);
    CHECK(idx_dataset(in_memory(idx(8, {5, 0}, "")))->size() == 5);
  }

  TEST_CASE("opens files") {
    test::scratch_folder folder;
    test::write(folder / "labels", idx(8, {3}, "\7\2\1"));
    CHECK(idx_file(folder / "labels", dtype::f32).size() == 3);
    CHECK_THROWS_AS((void)idx_file(folder / "missing"), failure);
  }

  TEST_CASE("survives every damage") {
    test::try_all_damages(idx(11, {2, 3}, "123456789012"),
                          [](const input_file& file) { return idx_dataset(file, dtype::i64); });
  }
}

} // namespace idx_file_test
