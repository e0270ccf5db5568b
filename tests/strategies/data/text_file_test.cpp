// SPDX-License-Identifier: Apache-2.0
// Goal: lines come out as they stand in the file, whatever ends them. Method: small files, and one
// of several blocks.
#include "messages/errors/failure.hpp"
#include "strategies/data/text_file.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/memory_file.hpp"

namespace text_file_test {

TEST_SUITE("strategies/data/text_file") {
  using namespace troupe;
  using test::texts_of;

  using lines = std::vector<std::string>;

  TEST_CASE("splits a text into lines") {
    CHECK(texts_of(text_dataset(test::in_memory("one\ntwo\r\n\nfour")))
          == lines{"one", "two", "", "four"});
    CHECK(texts_of(text_dataset(test::in_memory("one\n"))) == lines{"one"});
    CHECK(texts_of(text_dataset(test::in_memory("\n"))) == lines{""});
    CHECK(texts_of(text_dataset(test::in_memory(""))) == lines{});
    CHECK(texts_of(text_dataset(test::in_memory(std::string_view{"\0\xff\r\n", 4})))
          == lines{std::string{"\0\xff", 2}});
  }

  TEST_CASE("reads a file of several blocks, in any order") {
    test::scratch_folder folder;
    std::string text;
    lines expected;
    for (int i = 0; i < 30'000; ++i) {
      expected.push_back(std::string(static_cast<size_t>(i % 100), 'x') + std::to_string(i));
      text += expected.back() + "\n";
    }
    test::write(folder / "text", text);
    const auto source = text_file(folder / "text");
    REQUIRE(source.size() == expected.size());
    auto in_order = source.iterate();
    CHECK(test::drain(in_order, 100'000) == expected);
    auto from_the_end = source.iterate();
    REQUIRE(from_the_end.restore(test::place(29'999, 30'000)));
    CHECK(test::drain(from_the_end) == lines{expected.back()});
  }

  TEST_CASE("tells what cannot be opened") {
    test::scratch_folder folder;
    CHECK_THROWS_WITH_AS(
      (void)text_file(folder / "missing"),
      ("cannot read " + (folder / "missing").string() + ": No such file or directory").c_str(),
      failure);
  }
}

} // namespace text_file_test
