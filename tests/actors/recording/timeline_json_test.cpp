// SPDX-License-Identifier: Apache-2.0
// Goal: each event is the JSON that the trace event format asks for. Method: parse it and look.
#include "actors/recording/timeline_json.hpp"
#include "tests/doctest.hpp"

#include <nlohmann/json.hpp>

namespace timeline_json_test {

namespace {

using namespace troupe;
using nlohmann::json;
using namespace std::chrono_literals;

timeline_event happening(timeline_event::kind what, std::string name) {
  timeline_event event;
  event.what = what;
  event.actor = "replica 2";
  event.name = std::move(name);
  event.start = 1'234'567ns;
  event.duration = 89'001ns;
  event.flow = 42;
  event.step = 7;
  return event;
}

} // namespace

TEST_SUITE("actors/recording/timeline_json") {
  TEST_CASE("writes a span with a fraction of microseconds") {
    const auto text = timeline_json::event(3, happening(timeline_event::kind::span, "compute"));
    CHECK(text.find(R"("ts":1234.567,"dur":89.001)") != std::string::npos);
    const auto event = json::parse(text);
    CHECK(event["ph"] == "X");
    CHECK(event["tid"] == 3);
    CHECK(event["name"] == "compute");
    CHECK(event["args"]["step"] == 7);
  }

  TEST_CASE("writes times before the start as negative") {
    auto event = happening(timeline_event::kind::instant, "early");
    event.start = -1'500ns;
    CHECK(timeline_json::event(1, event).find(R"("ts":-1.500)") != std::string::npos);
    event.start = -1ns;
    CHECK(timeline_json::event(1, event).find(R"("ts":-0.001)") != std::string::npos);
  }

  TEST_CASE("pairs the ends of a flow by category, name and number") {
    const auto from
      = json::parse(timeline_json::event(1, happening(timeline_event::kind::flow_start, "push")));
    const auto to
      = json::parse(timeline_json::event(2, happening(timeline_event::kind::flow_end, "token")));
    CHECK(from["ph"] == "s");
    CHECK(to["ph"] == "f");
    CHECK(to["bp"] == "e");
    for (const char* key : {"cat", "name", "id"})
      CHECK(from[key] == to[key]);
    CHECK(from["args"]["what"] == "push");
    CHECK(to["args"]["what"] == "token");
  }

  TEST_CASE("writes an instant on its track, and a note across all") {
    const auto instant
      = json::parse(timeline_json::event(5, happening(timeline_event::kind::instant, "left")));
    CHECK(instant["ph"] == "i");
    CHECK(instant["s"] == "t");
    CHECK(instant["tid"] == 5);
    const auto note = json::parse(timeline_json::note(1s, "full"));
    CHECK(note["s"] == "g");
    CHECK(note["name"] == "full");
  }

  TEST_CASE("survives any name") {
    for (const std::string name :
         {"quote \" backslash \\", "line\nfeed", "\x01 control", "\xff\xfe", "caf\xc3\xa9", ""}) {
      const auto event = json::parse(
        timeline_json::event(1, happening(timeline_event::kind::span, name)), nullptr, false);
      CHECK_FALSE(event.is_discarded());
      CHECK_FALSE(json::parse(timeline_json::job_name(name), nullptr, false).is_discarded());
      auto list = std::string{'['} + timeline_json::track_name(1, name) + ']';
      CHECK_FALSE(json::parse(list, nullptr, false).is_discarded());
    }
    CHECK(timeline_json::string("\xff") == "\"\xef\xbf\xbd\"");
  }
}

} // namespace timeline_json_test
