// SPDX-License-Identifier: Apache-2.0
// Goal: rows become the tensors asked for, with RFC 4180's quotes, and what is wrong is named by
// row, column and byte. Method: small files written by hand.
#include "kernels/tensor/elements.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/data/csv_file.hpp"
#include "strategies/data/csv_rows.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/memory_file.hpp"

#include <fmt/format.h>
#include <limits>

namespace csv_file_test {

TEST_SUITE("strategies/data/csv_file") {
  using namespace troupe;
  using test::in_memory;
  using test::texts_of;

  using fields = std::vector<std::string>;

  const std::string flowers = "length,width,kind,name\n"
                              "5.1,3.5,0,\"setosa, wild\"\n"
                              "\r\n"
                              "7, +3.25 ,1,versicolor\r\n"
                              "-1e3,.5,-2,\"says \"\"hi\"\"\nthere\"";

  TEST_CASE("makes the tensors and texts that are asked for") {
    const auto source
      = csv_dataset(in_memory(flowers), {.tensors = {{{"width", "length"}}, {{"kind"}, dtype::i32}},
                                         .texts = {"name", "kind"}});
    REQUIRE(source);
    REQUIRE(source->size() == 3);
    auto batches = source->batch(3).iterate();
    const auto batch = batches.next();
    REQUIRE(batch);
    const auto& tensors = (*batch)->tensors;
    CHECK(tensors[0].extents() == shape{3, 2});
    const auto numbers = tensors[0].values<float>();
    CHECK(std::vector(numbers.begin(), numbers.end())
          == std::vector<float>{3.5F, 5.1F, 3.25F, 7, 0.5F, -1000});
    CHECK(tensors[1].extents() == shape{3});
    CHECK(tensors[1].values<int32_t>()[2] == -2);
    CHECK((*batch)->texts
          == fields{"setosa, wild", "0", "versicolor", "1", "says \"hi\"\nthere", "-2"});
  }

  TEST_CASE("makes all columns one tensor if nothing is asked for, without a header too") {
    const auto source = csv_dataset(in_memory("\xef\xbb\xbf"
                                              "1;2\n3;4\n"),
                                    {.has_header = false, .separator = ';'});
    REQUIRE(source);
    CHECK(source->size() == 2);
    auto iterator = source->iterate();
    CHECK((*iterator.next())->tensors[0].extents() == shape{2});
    const auto second
      = csv_dataset(in_memory("1,2\n3,4"), {.tensors = {{{"1"}, dtype::i64}}, .has_header = false});
    CHECK(texts_of(second) == fields{"2", "4"});
  }

  TEST_CASE("reads every type, to its ends") {
    const auto read = [](dtype type, const std::string& text) -> expected<tensor> {
      auto source = csv_dataset(in_memory(text), {.tensors = {{{"0"}, type}}, .has_header = false});
      REQUIRE(source);
      auto iterator = source->iterate();
      return iterator.next().map([](auto&& one) { return one->tensors[0]; });
    };
    CHECK(read(dtype::i64, "-9223372036854775808")->values<int64_t>()[0] == INT64_MIN);
    CHECK_FALSE(read(dtype::i64, "9223372036854775808"));
    CHECK(read(dtype::i32, "2147483647")->values<int32_t>()[0] == INT32_MAX);
    CHECK_FALSE(read(dtype::i32, "2147483648"));
    CHECK_FALSE(read(dtype::i32, "1.0"));
    CHECK(read(dtype::f64, "0.1")->values<double>()[0] == 0.1);
    CHECK(read(dtype::f32, "3.4028235e38")->values<float>()[0]
          == std::numeric_limits<float>::max());
    CHECK_FALSE(read(dtype::f32, "3.5e38"));
    CHECK(read(dtype::f64, "1e-400")->values<double>()[0] == 0);
    CHECK(read(dtype::f64, "-4.9e-324")->values<double>()[0]
          == -std::numeric_limits<double>::denorm_min());
    CHECK(read(dtype::f32, "1e-50")->values<float>()[0] == 0);
    CHECK_FALSE(read(dtype::f64, "-1e400"));
    // Just above the middle of two f32, and by way of an f64 in the middle.
    CHECK(read(dtype::f32, "1.00000005960464488641292746251565404236316680908203125")
            ->values<float>()[0]
          == std::nextafter(1.0F, 2.0F));
    CHECK(read(dtype::f32, "inf")->values<float>()[0] == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(read(dtype::f32, "nan")->values<float>()[0]));
    CHECK(read(dtype::f16, "65504")->values<float16>()[0] == to_float16(65504));
    CHECK_FALSE(read(dtype::f16, "70000"));
    CHECK(read(dtype::bf16, "1.5")->values<bfloat16>()[0] == to_bfloat16(1.5F));
    for (const char* text : {" ", "+", "-", "+-1", "1 2", "0x10", "1e", "one"})
      CHECK_FALSE(read(dtype::f64, text));
  }

  TEST_CASE("names the row, the column and the byte that are wrong, and goes on behind them") {
    const std::string text = "a,b\n1,x\n1\n1,2,3\n\"1\"2,3\n4,5";
    CHECK(texts_of(csv_dataset(in_memory(text), {.tensors = {{{"b"}, dtype::i64}}}))
          == fields{"file: byte 4: row 0: column \"b\": \"x\" is no i64",
                    "file: byte 8: row 1: 1 fields, where the first row has 2",
                    "file: byte 10: row 2: 3 fields, where the first row has 2",
                    "file: byte 16: row 3: a field goes on behind its closing quote", "5"});
  }

  TEST_CASE("refuses columns that are not there, or twice") {
    CHECK(csv_dataset(in_memory(flowers), {.texts = {"color"}}).error()
          == error{errc::not_found,
                   "file: there is no column \"color\"; there are \"length, width, kind, name\""});
    CHECK(csv_dataset(in_memory("a,a\n"), {.texts = {"a"}}).error()
          == error{errc::invalid_argument, "file: column \"a\" is there twice"});
    CHECK_FALSE(csv_dataset(in_memory(""), {.texts = {"a"}}));
    CHECK(texts_of(csv_dataset(in_memory(""))) == fields{});
    CHECK(texts_of(csv_dataset(in_memory("a,b\n"))) == fields{});
  }

  TEST_CASE("refuses quotes that do not end") {
    CHECK(test::complaint_about(csv_dataset(in_memory("a\n1\n\"2\n3\n")))
          == "file: byte 4: row 2: a field in quotes does not end");
    CHECK(test::complaint_about(csv_dataset(in_memory("\"a\"b")))
          == "file: byte 0: a field goes on behind its closing quote");
  }

  TEST_CASE("refuses lines that end in a carriage return alone") {
    constexpr auto why
      = ": a carriage return that no line feed follows: end lines in one, or in both";
    CHECK(test::complaint_about(csv_dataset(in_memory("a,b\r1,2\r")))
          == fmt::format("file: byte 3{}", why));
    CHECK(test::complaint_about(csv_dataset(in_memory("a\r\n1\r\r\n")))
          == fmt::format("file: byte 4{}", why));
    CHECK(texts_of(csv_dataset(in_memory("a\n\"1\r2\"\r"), {.texts = {"a"}})) == fields{"1\r2"});
  }

  TEST_CASE("splits rows as the grammar says") {
    const auto split = [](std::string_view row) { return split_csv_row(row, ','); };
    CHECK(split("") == fields{""});
    CHECK(split(",") == fields{"", ""});
    CHECK(split("a,\"b\r\n\",c\r\n\r\n") == fields{"a", "b\r\n", "c"});
    CHECK(split("\"\"\"\"\r\n") == fields{"\""});
    CHECK(split("\"\",\"\"") == fields{"", ""});
    CHECK(split("a\"b\",c") == fields{"a\"b\"", "c"});
    CHECK(split("a\rb\r") == fields{"a\rb"});
    CHECK_FALSE(split("\"a\" ,b"));
  }

  TEST_CASE("opens files") {
    test::scratch_folder folder;
    test::write(folder / "flowers.csv", flowers);
    CHECK(csv_file(folder / "flowers.csv", {.texts = {"name"}}).size() == 3);
    CHECK_THROWS_AS((void)csv_file(folder / "missing.csv"), failure);
  }

  TEST_CASE("survives every damage") {
    test::try_all_damages(flowers, [](const input_file& file) -> expected<dataset> {
      auto source = csv_dataset(file, {.tensors = {{{"width", "kind"}}}, .texts = {"name"}});
      // A damaged header may well be a header, only without our columns.
      if (!source && source.error().code != errc::malformed) return test::range(0);
      return source;
    });
  }
}

} // namespace csv_file_test
