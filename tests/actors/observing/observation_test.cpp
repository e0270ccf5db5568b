// SPDX-License-Identifier: Apache-2.0
// Goal: what one actor writes down can be read at any time. Method: rings that fill up, counters,
// and a reader beside a writer.
#include "actors/observing/observation.hpp"
#include "tests/doctest.hpp"

#include <thread>

namespace observation_test {

using namespace troupe;

namespace {

using messages = std::array<sighting, observation::messages_kept>;

sighting numbered(uint64_t number) {
  return {job_time{static_cast<int64_t>(number)}, &message_kinds().front(), number, number};
}

void handle(observation& seen, uint64_t number) {
  seen.receive();
  seen.begin_message(numbered(number));
  seen.end_message();
}

} // namespace

TEST_SUITE("actors/observing/observation") {
  TEST_CASE("a new observation has seen nothing") {
    observation seen{17};
    messages last;
    CHECK(seen.actor() == 17);
    CHECK(seen.last_messages(last) == 0);
    CHECK(seen.doing() == actor_doing::waiting);
    CHECK(seen.mailbox_depth() == 0);
    CHECK(seen.name() == nullptr);
  }

  TEST_CASE("messages wait in the mailbox, are in work, and are done") {
    observation seen{1};
    seen.receive();
    seen.receive();
    CHECK(seen.mailbox_depth() == 2);
    seen.begin_message(numbered(0));
    CHECK(seen.doing() == actor_doing::working);
    CHECK(seen.mailbox_depth() == 1);
    CHECK(seen.handled() == 0);
    seen.end_message();
    CHECK(seen.doing() == actor_doing::waiting);
    CHECK(seen.handled() == 1);
    CHECK(seen.received() == 2);
  }

  TEST_CASE("an actor computes until its work is done, whatever it handles meanwhile") {
    observation seen{1};
    CHECK_FALSE(seen.computing_since());
    seen.begin_computing(job_time{0});
    CHECK(seen.doing() == actor_doing::computing);
    CHECK(seen.computing_since() == job_time{0});
    handle(seen, 0);
    CHECK(seen.doing() == actor_doing::computing);
    seen.end_computing();
    CHECK(seen.doing() == actor_doing::waiting);
  }

  TEST_CASE("a message that is put back waits again") {
    observation seen{1};
    seen.receive();
    seen.begin_message(numbered(0));
    seen.put_back_message();
    CHECK(seen.mailbox_depth() == 1);
    CHECK(seen.handled() == 0);
    messages last;
    CHECK(seen.last_messages(last) == 0);
  }

  TEST_CASE("the last messages are kept in their order, however many there were") {
    for (uint64_t count : {1U, 63U, 64U, 65U, 200U}) {
      observation seen{1};
      for (uint64_t i = 0; i < count; ++i)
        handle(seen, i);
      messages last;
      auto kept = seen.last_messages(last);
      REQUIRE(kept == std::min<uint64_t>(count, observation::messages_kept));
      for (size_t i = 0; i < kept; ++i)
        CHECK(last[i].step == count - kept + i);
    }
  }

  TEST_CASE("steps and senders that have no room are left out, not mistaken") {
    observation seen{1};
    seen.begin_message({job_time{1}, nullptr, (1 << 24) - 1, 0xfffffffe});
    seen.begin_message({job_time{2}, &message_kinds().back(), 1 << 24, 0xffffffff});
    messages last;
    REQUIRE(seen.last_messages(last) == 2);
    CHECK(last[0].kind == nullptr);
    CHECK(last[0].sender == (1 << 24) - 1);
    CHECK(last[0].step == 0xfffffffe);
    CHECK(last[1].kind == &message_kinds().back());
    CHECK(last[1].sender == 0);
    CHECK(last[1].step == no_step);
    CHECK(message_kinds().size() < 255);
  }

  TEST_CASE("an actor that ended has no mailbox") {
    observation seen{1};
    seen.receive();
    seen.end();
    CHECK(seen.doing() == actor_doing::ended);
    CHECK(seen.mailbox_depth() == 0);
  }

  TEST_CASE("a reader gets whole messages in order while the actor writes") {
    observation seen{1};
    std::jthread actor{[&](std::stop_token stop) {
      for (uint64_t i = 0; !stop.stop_requested(); ++i)
        handle(seen, i);
    }};
    messages last;
    while (seen.handled() < 300'000) {
      auto kept = seen.last_messages(last);
      for (size_t i = 0; i < kept; ++i) {
        REQUIRE(last[i].step == last[0].step + i);
        REQUIRE(last[i].sender == last[i].step);
        REQUIRE(last[i].when.count() == static_cast<int64_t>(last[i].step));
      }
    }
  }
}

} // namespace observation_test
