// SPDX-License-Identifier: Apache-2.0
// Goal: one description of an option serves its words, its place in a file and its help. Method: a
// command with one option of each kind.
#include "tests/doctest.hpp"
#include "tools/options/config_file.hpp"

namespace command_options_test {

namespace {

using namespace troupe;

struct fixture {
  fixture() {
    all.begin_group("Work", true);
    all.add("-b,--batch", "COUNT", "examples in a gradient", whole_value(batch, {1, 100}));
    all.add("--rate", "RATE", "how far a step goes", real_value(rate, {0, 1}), "as needed");
    all.begin_group("Place", true, "place");
    all.add("--folder", "DIR", "where it happens", text_value(folder));
    all.begin_group("And");
    all.add("--word", "TEXT", "what is said", any_text_value(word));
    all.add("input", "", "", text_value(input));
    all.add_flag("--quiet", quiet, "say nothing");
    all.add_help(answer);
  }

  expected<void> read(std::vector<const char*> words) {
    answer.clear();
    words.insert(words.begin(), "work");
    return all.read(static_cast<int>(words.size()), words.data());
  }

  std::string refusal(const std::vector<const char*>& words) {
    auto done = read(words);
    return done ? "accepted" : done.error().message;
  }

  uint64_t batch = 8;
  std::optional<double> rate;
  std::string folder;
  std::string word;
  std::string input;
  bool quiet = false;
  std::string answer;
  command_options all{"Works.\n", "one input is enough", "\nThat is all.\n"};
};

} // namespace

TEST_SUITE("tools/options/command_options") {
  TEST_CASE_FIXTURE(fixture, "stores what the words say, and notes where it comes from") {
    REQUIRE(read({"-b", "16", "in.txt", "--rate=0.5", "--quiet", "--rate", "0.25"}));
    CHECK(batch == 16);
    CHECK(rate == 0.25);
    CHECK(input == "in.txt");
    CHECK(quiet);
    CHECK(all.given("batch") == "16");
    CHECK(all.given("folder").empty());
    CHECK(describe(origin_of(all.origins(), "rate")) == "command line");
    CHECK(describe(origin_of(all.origins(), "folder")) == "default");
  }

  TEST_CASE_FIXTURE(fixture, "a file says the same, in tables, where options may stand in files") {
    REQUIRE(read_config("batch = 4\n[place]\nfolder = \"here\"\n", "f.toml", all));
    CHECK(batch == 4);
    CHECK(folder == "here");
    CHECK(describe(origin_of(all.origins(), "folder")) == "f.toml:3");
    CHECK(read_config("input = \"x\"\n", "f.toml", all)
            .error()
            .message.find("'input' stands on the command line only")
          != std::string::npos);
    all.forget("folder");
    CHECK(folder.empty());
    CHECK_FALSE(all.origins().contains("folder"));
  }

  TEST_CASE_FIXTURE(fixture, "a key that is no option may be taken by the command itself") {
    int64_t taken = 0;
    const other_key extra{"extra", [&](const toml::node& value) -> expected<void> {
                            taken = value.value_or(int64_t{0});
                            return {};
                          }};
    REQUIRE(read_config("extra = 3\nbatch = 2\n", "f.toml", all, extra));
    CHECK(taken == 3);
    CHECK(batch == 2);
    CHECK(read_config("extar = 3\n", "f.toml", all, extra).error().message
          == "f.toml:1: unknown key 'extar'; the nearest known one is 'extra'");
  }

  TEST_CASE_FIXTURE(fixture, "answers a wrong word by a line that names it") {
    CHECK(refusal({"--bacth", "4"})
          == "unknown option '--bacth'; the nearest known one is '--batch'");
    CHECK(refusal({"a", "b"}) == "unexpected argument 'b': one input is enough");
    CHECK(refusal({"--rate"}) == "--rate needs a value");
    CHECK(refusal({"--rate="}) == "--rate needs a value");
    CHECK(refusal({"--rate=", "--batch", "4"}) == "--rate needs a value");
    CHECK(refusal({"--batch", "0"}) == "-b,--batch must be a whole number from 1 to 100, not '0'");
    CHECK(refusal({"-b"}) == "-b,--batch needs a value");
    CHECK(refusal({"-b", ""}) == "-b,--batch needs a value");
    CHECK(read_config("batch = 0\n", "f.toml", all).error().message
          == "f.toml:1: batch must be a whole number from 1 to 100, not '0'");
  }

  TEST_CASE_FIXTURE(fixture,
                    "leaves the answer to an empty argument without a name to the command") {
    input = "as before";
    CHECK(refusal({""}) == "accepted");
    CHECK(input == "as before");
    CHECK_FALSE(all.origins().contains("input"));
  }

  TEST_CASE_FIXTURE(fixture,
                    "an option for any text takes an empty argument, the last one counts") {
    CHECK(refusal({"--word", "hello", "--word", "", "-b", "7"}) == "accepted");
    CHECK(word.empty());
    CHECK(batch == 7);
    CHECK(all.origins().contains("word"));
    CHECK(refusal({"--word="}) == "--word needs a value"); // as by a variable that is not set
    CHECK(refusal({"--word"}) == "--word needs a value");
  }

  TEST_CASE_FIXTURE(fixture, "the help leaves out an option that is hidden, which is still read") {
    all.hide("batch");
    all.show_default("rate", "1/8");
    REQUIRE(read({"--help"}));
    CHECK(answer.find("--batch") == std::string::npos);
    CHECK(answer.find("how far a step goes [1/8]") != std::string::npos);
    REQUIRE(read({"--batch", "9"}));
    CHECK(batch == 9);
  }

  TEST_CASE_FIXTURE(fixture, "the help stands before every judgement, and lists groups in order") {
    REQUIRE(read({"--batch", "x", "--help"}));
    CHECK(answer
          == "Works.\n"
             "\n"
             "Work:\n"
             "  -b, --batch COUNT       examples in a gradient [8]\n"
             "  --rate RATE             how far a step goes [as needed]\n"
             "\n"
             "Place (in a file: below [place]):\n"
             "  --folder DIR            where it happens\n"
             "\n"
             "And:\n"
             "  --word TEXT             what is said\n"
             "  --quiet                 say nothing\n"
             "  -h, --help              this text\n"
             "\n"
             "That is all.\n");
    CHECK(batch == 8);
  }
}

} // namespace command_options_test
