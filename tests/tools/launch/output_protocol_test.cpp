// SPDX-License-Identifier: Apache-2.0
// Goal: launchers understand each other, and other bytes are refused. Method: lines there and back,
// and lines of strangers.
#include "tests/doctest.hpp"
#include "tools/launch/output_protocol.hpp"

namespace output_protocol_test {

using namespace troupe;

namespace {

std::string_view without_end(std::string_view line) {
  REQUIRE(line.ends_with('\n'));
  line.remove_suffix(1);
  return line;
}

template <class T>
void check_refused(const expected<T>& parsed) {
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == errc::invalid_argument);
}

} // namespace

TEST_SUITE("tools/launch/output_protocol") {
  TEST_CASE("a greeting says which task of which job") {
    for (const char* job_id : {"", "run-7"}) {
      output_greeting greeting{{.type = "worker", .index = 12}, job_id};
      auto text = written(greeting);
      CHECK(text == std::string{"troupe-output 1 worker:12 "} + job_id + "\n");
      CHECK(parse_output_greeting(without_end(text)) == greeting);
    }
  }

  TEST_CASE("a line says which output, and keeps its bytes") {
    using namespace std::string_literals;
    for (const auto& text : {""s, " "s, "1 "s, "dropped 3"s, "a\0\xff\r"s}) {
      output_line line{.descriptor = 2, .text = text};
      CHECK(written(line) == "2 " + text + "\n");
      CHECK(parse_output_line(without_end(written(line))) == line);
    }
    output_line dropped{.descriptor = 0, .text = {}, .dropped = 17};
    CHECK(written(dropped) == "dropped 17\n");
    CHECK(parse_output_line("dropped 17") == dropped);
  }

  TEST_CASE("the longest line of a task fits") {
    std::string text(line_splitter::line_bytes_max, 'x');
    CHECK(written({.descriptor = 1, .text = text, .dropped = 0}).size() == output_line_bytes_max);
  }

  TEST_CASE("refuses what no launcher says") {
    for (const char* text :
         {"", "GET / HTTP/1.1", "troupe-output", "troupe-output 2 worker:1 ",
          "troupe-output 1 worker:1", "troupe-output 1 worker: ", "troupe-output 1 worker:-1 ",
          "troupe-output 1 worker:1000001 ", "troupe-output 1 boss:1 ",
          "troupe-output 1 worker:1 a/b", "troupe-output 1 worker:1 a b"}) {
      CAPTURE(text);
      check_refused(parse_output_greeting(text));
    }
    for (const char* text : {"", "1", "3 text", "0 text", "-1 text", "dropped", "dropped ",
                             "dropped -1", "dropped 99999999999999999999", "dropped 1 "}) {
      CAPTURE(text);
      check_refused(parse_output_line(text));
    }
  }

  TEST_CASE("takes tasks by their names") {
    CHECK(parse_task_name("ps:3") == launch_task{.type = "ps", .index = 3, .port = 0});
    CHECK(parse_task_name("chief") == launch_task{.type = "chief", .index = 0, .port = 0});
    for (const char* text :
         {"", "worker", "worker:", "worker:x", "workers:1", ":1", "worker:1:2"}) {
      CAPTURE(text);
      check_refused(parse_task_name(text));
    }
  }
}

} // namespace output_protocol_test
