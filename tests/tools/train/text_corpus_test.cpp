// SPDX-License-Identifier: Apache-2.0
// Goal: the text is split where it should be, and one that cannot be used is refused. Method: small
// texts with known figures.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/train/compressed_size.hpp"
#include "tools/train/text_corpus.hpp"
#include "tools/train/train_options.hpp"

namespace text_corpus_test {

namespace {

using namespace troupe;

std::string message_of(const corpus_options& options) {
  const auto refused = text_corpus::load(options);
  REQUIRE_FALSE(refused);
  return refused.error().message;
}

} // namespace

TEST_SUITE("tools/train/text_corpus") {
  TEST_CASE("keeps the end for evaluation") {
    test::scratch_folder folder;
    test::write(folder / "text", "0123456789abcdefghi");
    const auto corpus = text_corpus::load({(folder / "text").string(), 0.2});
    REQUIRE(corpus);
    CHECK(corpus->training() == "0123456789abcdef");
    CHECK(corpus->held_out() == "ghi");
    CHECK(corpus->whole() == "0123456789abcdefghi");
  }

  TEST_CASE("refuses a text that is empty or too short to split") {
    test::scratch_folder folder;
    const auto path = (folder / "text").string();
    test::write(folder / "text", "");
    CHECK(message_of({path}) == "--text: " + path + " is empty");
    CHECK(message_of({.path = path, .option = "a.toml:3: text"})
          == "a.toml:3: text: " + path + " is empty");
    test::write(folder / "text", std::string(100, 'a'));
    CHECK(text_corpus::load({path, 0.1, 10}));
    CHECK(message_of({path, 0.1, 11})
          == "--text: " + path
               + " is too short: its 100 bytes leave 90 to train on and 10 to evaluate, and at "
                 "least 11 of each are needed; pass a longer text, or change --held-out");
    CHECK(message_of({path, 0.9, 11}).find("leave 10 to train on") != std::string::npos);
  }

  TEST_CASE("refuses what cannot be read") {
    test::scratch_folder folder;
    CHECK(message_of({(folder / "none").string()}).find("--text: cannot read ") == 0);
    CHECK(message_of({folder.path().string()}).find("is a folder, not a file")
          != std::string::npos);
  }

  TEST_CASE("says what to do where the default text is missing") {
    const std::string path{train_defaults::text};
    if (std::filesystem::exists(path)) return;
    CHECK(message_of({path}).find("pass any file with --text FILE") != std::string::npos);
  }

  TEST_CASE("measures the compressors on the held-out text, with and without the training text") {
    test::scratch_folder folder;
    const std::string sentence = "a sentence that comes again, word by word. ";
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += sentence;
    test::write(folder / "text", text);
    const auto corpus = text_corpus::load({(folder / "text").string(), 0.1});
    REQUIRE(corpus);
    const auto baselines = compress(*corpus);
    REQUIRE(baselines);
    const double held_out_bytes = static_cast<double>(corpus->held_out().size());
    REQUIRE(baselines->gzip);
    REQUIRE(baselines->xz);
    CHECK(*baselines->gzip
          == doctest::Approx(8.0 * static_cast<double>(gzip_bytes(corpus->held_out()).value())
                             / held_out_bytes));
    CHECK(*baselines->xz
          == doctest::Approx(8.0 * static_cast<double>(xz_bytes(corpus->held_out()).value())
                             / held_out_bytes));
    REQUIRE(baselines->gzip_after_training);
    REQUIRE(baselines->xz_after_training);
    CHECK(*baselines->gzip_after_training < 0.1);
    CHECK(*baselines->xz_after_training < 0.1);
  }

  TEST_CASE("compresses no more than a few MiB, for which a cluster can wait") {
    test::scratch_folder folder;
    test::write(folder / "text", std::string(baseline_bytes_max + 1, 'a'));
    auto baselines_of = [&](double held_out) {
      const auto corpus = text_corpus::load({(folder / "text").string(), held_out});
      REQUIRE(corpus);
      return compress(*corpus).value();
    };
    const auto small = baselines_of(0.01);
    CHECK(small.gzip.has_value());
    CHECK(small.xz.has_value());
    CHECK_FALSE(small.gzip_after_training.has_value());
    CHECK_FALSE(small.xz_after_training.has_value());
    test::write(folder / "text", std::string(baseline_bytes_max + 10'000, 'a'));
    const auto large = baselines_of(0.999);
    CHECK_FALSE(large.gzip.has_value());
    CHECK_FALSE(large.xz.has_value());
  }
}

} // namespace text_corpus_test
