// SPDX-License-Identifier: Apache-2.0
// Goal: arrays come out as NumPy put them in; what cannot be read is refused by name. Method: files
// that numpy.lib.format.write_array of NumPy 2.4 made.
#include "kernels/tensor/dtype.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/data/npy_file.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/memory_file.hpp"

namespace npy_file_test {

TEST_SUITE("strategies/data/npy_file") {
  using namespace troupe;
  using test::in_memory;
  using test::values;

  // A file of version 1 with this dictionary, filled up as NumPy does, and these bytes behind it.
  std::string npy(std::string dictionary, std::string_view numbers) {
    dictionary.resize(117, ' ');
    return std::string{"\x93NUMPY\1\0v\0", 10} + dictionary + "\n" + std::string{numbers};
  }

  std::string npy(std::string_view descr, std::string_view dims, std::string_view numbers) {
    return npy(
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims),
      numbers);
  }

  // All rows as one tensor.
  tensor whole(const std::string& file, std::optional<dtype> type = {}) {
    return test::whole(npy_dataset(in_memory(file), type));
  }

  TEST_CASE("reads what NumPy writes, to the bit") {
    // np.array([[1.5, -2, 3], [4, 5, 6e-30]], '<f4')
    const auto floats = whole(npy("<f4", "2, 3",
                                  std::string_view{"\0\0\xc0?\0\0\0\xc0\0\0@@\0\0\x80@\0\0\xa0@"
                                                   "\x90"
                                                   "c\xf3\x0e",
                                                   24}));
    CHECK(floats.extents() == shape{2, 3});
    CHECK(values<float>(floats) == std::vector<float>{1.5F, -2, 3, 4, 5, 6e-30F});
    // np.array([1, -2, 300], '>i2')
    CHECK(values<int32_t>(whole(npy(">i2", "3,", std::string_view{"\0\1\xff\xfe\1,", 6})))
          == std::vector<int32_t>{1, -2, 300});
    // np.array([True, False])
    CHECK(values<float>(whole(npy("|b1", "2,", std::string_view{"\1\0", 2}), dtype::f32))
          == std::vector<float>{1, 0});
    // np.array([1.5, 65504], '<f2')
    CHECK(values<float16>(whole(npy("<f2", "2,", std::string_view{"\0>\xff{", 4})))
          == std::vector<float16>{to_float16(1.5F), to_float16(65504)});
    // np.array([0.1, -1e300], '>f8')
    const auto doubles = npy(">f8", "2,",
                             std::string_view{"?\xb9\x99\x99\x99\x99\x99\x9a\xfe"
                                              "7\xe4<\x88\0u\x9c",
                                              16});
    CHECK(values<double>(whole(doubles)) == std::vector<double>{0.1, -1e300});
    CHECK(values<float>(whole(doubles, dtype::f32))[0] == 0.1F);
  }

  TEST_CASE("reads versions 2 and 3") {
    // np.arange(4, dtype='u1').reshape(2, 2), version (2, 0)
    const std::string version_2 = std::string{"\x93NUMPY\2\0t\0\0\0", 12}
                                  + "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }"
                                    "                                                        \n"
                                  + std::string{"\0\1\2\3", 4};
    CHECK(values<int32_t>(whole(version_2)) == std::vector<int32_t>{0, 1, 2, 3});
    auto version_3 = version_2;
    version_3[6] = 3;
    CHECK(values<int32_t>(whole(version_3)) == std::vector<int32_t>{0, 1, 2, 3});
  }

  TEST_CASE("makes of integers what holds them") {
    CHECK(whole(npy("<u4", "1,", "\xff\xff\xff\xff")).values<int64_t>()[0] == 4294967295);
    CHECK(whole(npy("<i8", "1,", "\xff\xff\xff\xff\xff\xff\xff\x7f")).values<int64_t>()[0]
          == INT64_MAX);
    CHECK(whole(npy("|i1", "1,", "\x80"), dtype::i64).values<int64_t>()[0] == -128);
    // 2^60 + 2^36 + 1: above the middle of two f32, and in it after a way through f64.
    CHECK(whole(npy("<i8", "1,", std::string{"\x01\0\0\0\x10\0\0\x10", 8}), dtype::f32)
            .values<float>()[0]
          == 1152921642045800448.0F);
    CHECK(whole(npy("<u2", "1,", "\xff\xff"), dtype::bf16).values<bfloat16>()[0]
          == to_bfloat16(65535));
    CHECK(npy_dataset(in_memory(npy("<i8", "1,", "12345678")), dtype::i32).error().code
          == errc::type_mismatch);
    CHECK(npy_dataset(in_memory(npy("<f2", "1,", "12")), dtype::i64).error().code
          == errc::type_mismatch);
  }

  TEST_CASE("reads arrays without rows and rows without numbers") {
    CHECK(npy_dataset(in_memory(npy("<f4", "0, 3", "")))->size() == 0);
    CHECK(whole(npy("<f4", "3, 0", "")).extents() == shape{3, 0});
  }

  TEST_CASE("refuses what it cannot read, and says what to do") {
    const auto refusal = [](const std::string& file) {
      const auto source = npy_dataset(in_memory(file));
      REQUIRE_FALSE(source);
      CHECK(source.error().code == errc::unimplemented);
      return source.error().message;
    };
    CHECK(refusal(
            npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 2), }", std::string(16, 'x')))
          == "file: the array is in Fortran order: save numpy.ascontiguousarray(a)");
    CHECK(refusal(npy("<U2", "1,", "a\0\0\0b\0\0\0"))
          == "file: an array of \"<U2\" holds no numbers that can be read");
    CHECK(refusal(npy("<u8", "1,", "12345678"))
          == "file: numbers of 8 bytes and of this kind have no counterpart among f32, f64, f16, "
             "bf16, i32, i64");
    CHECK_FALSE(npy_dataset(in_memory(npy("<f3", "1,", "123"))));
    CHECK_FALSE(npy_dataset(in_memory(npy("<c8", "1,", "12345678"))));
    // In one dimension both orders are the same.
    CHECK(npy_dataset(
      in_memory(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2,), }", "12345678"))));
  }

  TEST_CASE("names the byte where the header is wrong") {
    const auto complaint
      = [](const std::string& file) { return test::complaint_about(npy_dataset(in_memory(file))); };
    const auto in_dictionary = [&](const char* text) { return complaint(npy(text, "")); };
    CHECK(complaint("") == "file: byte 0: the file ends here, too early");
    CHECK(complaint("PK\3\4 not NumPy")
          == "file: byte 0: this does not begin a NumPy file of "
             "version 1, 2 or 3");
    CHECK(complaint(npy("<f4", "2,", "1234567"))
          == "file: byte 128: 7 bytes follow, where an array of [2] needs 8");
    CHECK(complaint(npy("<f8", "", "12345678"))
          == "file: byte 0: an array of 0 dimensions: 1 to 32 can be read row by row");
    CHECK(
      complaint(npy("<f8", "9223372036854775807, 2", ""))
      == "file: byte 128: 0 bytes follow, where an array of [9223372036854775807, 2] needs more "
         "than 63 bits count");
    CHECK(in_dictionary("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }")
          == "file: byte 20: here the header is none of an array of numbers");
    CHECK(in_dictionary("{'descr': '<f4', 'shape': (1,), }").starts_with("file: byte 128: here"));
    CHECK(in_dictionary("{'descr': '<f4', 'fortran_order': 1").starts_with("file: byte 44: here"));
    CHECK(in_dictionary("{'descr': '<f4', 'color': 'red'").starts_with("file: byte 35: here"));
    CHECK(in_dictionary("{'shape': (18446744073709551616,)").starts_with("file: byte 21: here"));
    CHECK(in_dictionary("{'shape': (1 2)").starts_with("file: byte 23: here"));
    auto cut = npy("<f4", "2,", "12345678");
    cut.resize(60);
    CHECK(complaint(cut)
          == "file: byte 8: a header of 118 bytes: more than the file holds, or more than 1048576");
  }

  TEST_CASE("opens files") {
    test::scratch_folder folder;
    test::write(folder / "a.npy", npy("<f4", "2,", "12345678"));
    CHECK(npy_file(folder / "a.npy", dtype::f64).size() == 2);
    CHECK_THROWS_AS((void)npy_file(folder / "missing.npy"), failure);
  }

  TEST_CASE("survives every damage") {
    test::try_all_damages(npy(">i2", "2, 3", "123456789012"),
                          [](const input_file& file) { return npy_dataset(file, dtype::f32); });
  }
}

} // namespace npy_file_test
