// SPDX-License-Identifier: Apache-2.0
// Goal: the timeline shows what every actor did when, and what made it go on. Method: events of
// records made by hand.
#include "actors/recording/step_timeline.hpp"
#include "tests/doctest.hpp"

#include <algorithm>

namespace step_timeline_test {

using namespace std::chrono_literals;
using troupe::step_record;
using troupe::timeline_event;
using kind = timeline_event::kind;

namespace {

step_record first_step() {
  return {.step = 1,
          .began = 0s,
          .ended = 11s,
          .apply = 1s,
          .needed = 1,
          .live = 2,
          .accepted = {{.replica = 0, .arrived = 10s, .compute = 9s}},
          .updates = {{"w", 11s, 500ms}}};
}

step_record second_step() {
  return {
    .step = 2,
    .began = 11s,
    .ended = 22s,
    .apply = 1s,
    .accepted = {{.replica = 0, .local_step = 1, .arrived = 21s, .compute = 9s, .waited = 2s}},
    .stale = {{.replica = 1, .local_step = 0, .staleness = 1, .arrived = 20s, .compute = 20s}},
    .cancelled = {{.replica = 2, .local_step = 1, .arrived = 21s}}};
}

std::vector<timeline_event> of_kind(const std::vector<timeline_event>& events, kind what) {
  std::vector<timeline_event> result;
  std::ranges::copy_if(events, std::back_inserter(result),
                       [&](const timeline_event& event) { return event.what == what; });
  return result;
}

const timeline_event* find(const std::vector<timeline_event>& events, std::string_view actor,
                           std::string_view name) {
  auto found = std::ranges::find_if(events, [&](const timeline_event& event) {
    return event.actor == actor && event.name == name;
  });
  return found == events.end() ? nullptr : &*found;
}

} // namespace

TEST_SUITE("actors/recording/step_timeline") {
  TEST_CASE("a step is a span of the chief, and its update one inside it") {
    troupe::step_timeline timeline;
    auto events = timeline.events_of(first_step());
    const auto* step = find(events, "chief", "step");
    const auto* update = find(events, "chief", "update");
    REQUIRE(step);
    REQUIRE(update);
    CHECK(step->duration == 11s);
    CHECK(update->start == 10s);
    CHECK(update->start + update->duration == step->start + step->duration);
  }

  TEST_CASE("each owner has a track with its passes over memory") {
    troupe::step_timeline timeline;
    auto events = timeline.events_of(first_step());
    const auto* apply = find(events, "owner w", "apply");
    REQUIRE(apply);
    CHECK(apply->start == 10500ms);
    CHECK(apply->duration == 500ms);
  }

  TEST_CASE("a replica waits for its token, then computes, without a gap") {
    troupe::step_timeline timeline;
    static_cast<void>(timeline.events_of(first_step()));
    auto events = timeline.events_of(second_step());
    const auto* wait = find(events, "replica 0", "wait for token");
    const auto* compute = find(events, "replica 0", "compute");
    REQUIRE(wait);
    REQUIRE(compute);
    CHECK(wait->start == 10s);
    CHECK(wait->start + wait->duration == compute->start);
  }

  TEST_CASE(
    "arrows lead from the gradient to the update, and from the token to the next gradient") {
    troupe::step_timeline timeline;
    auto first = timeline.events_of(first_step());
    auto second = timeline.events_of(second_step());
    first.insert(first.end(), second.begin(), second.end());
    auto starts = of_kind(first, kind::flow_start);
    auto ends = of_kind(first, kind::flow_end);
    REQUIRE(starts.size() == 3);
    REQUIRE(ends.size() == 3);
    for (size_t i = 0; i < starts.size(); ++i) {
      CHECK(starts[i].flow == ends[i].flow);
      CHECK(starts[i].start <= ends[i].start);
    }
    CHECK(starts[0].actor == "replica 0");
    CHECK(ends[0].actor == "chief");
    CHECK(starts[1].name == "token");
    CHECK(ends[1].actor == "replica 0");
  }

  TEST_CASE("the arrow of a step's own token starts in the span of that step") {
    troupe::step_timeline timeline;
    static_cast<void>(timeline.events_of(first_step()));
    auto events = timeline.events_of(second_step());
    const auto* token = find(events, "chief", "token");
    REQUIRE(token);
    CHECK(token->step == 1);
    CHECK(token->start == 11s + 1us);
    auto early = second_step();
    early.accepted[0].compute = 15s; // by the clock of its replica
    troupe::step_timeline another;
    static_cast<void>(another.events_of(first_step()));
    events = another.events_of(early);
    CHECK(find(events, "chief", "token")->start == find(events, "replica 0", "token")->start);
  }

  TEST_CASE("nothing is before the job, though it takes no time or another clock is behind") {
    troupe::step_timeline timeline;
    static_cast<void>(timeline.events_of({.step = 1}));
    auto events = timeline.events_of(
      {.step = 3,
       .accepted = {{.replica = 0, .local_step = 2},
                    {.replica = 1, .local_step = 1, .arrived = 1s, .compute = 3s, .waited = 1s}},
       .stale = {{.replica = 2, .local_step = 1, .arrived = -1s}}});
    CHECK(std::ranges::all_of(events, [](const auto& event) { return event.start >= 0s; }));
    const auto* compute = find(events, "replica 1", "compute");
    REQUIRE(compute);
    CHECK(compute->start == 0s);
    CHECK(compute->duration == 1s);
    CHECK(find(events, "replica 1", "wait for token")->duration == 0s);
  }

  TEST_CASE("a gradient that is dropped or cancelled leaves a moment, and no arrow") {
    troupe::step_timeline timeline;
    auto events = timeline.events_of(second_step());
    auto moments = of_kind(events, kind::instant);
    REQUIRE(moments.size() == 2);
    CHECK(moments[0].actor == "replica 1");
    CHECK(moments[0].name == "stale");
    CHECK(moments[1].actor == "replica 2");
    CHECK(moments[1].name == "cancelled");
    CHECK(of_kind(events, kind::flow_start).size() == 1);
  }
}

} // namespace step_timeline_test
