// SPDX-License-Identifier: Apache-2.0
// Goal: a flight record says what every actor did, line by line. Method: a few actors in a virtual
// world, and the text as it must be.
#include "actors/observing/flight_record.hpp"
#include "actors/training/token_queue.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

namespace flight_record_test {

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors/observing/flight_record") {
  TEST_CASE("a record has every actor with its last messages") {
    deterministic_world stage;
    auto queue = stage.spawn(token_queue, token_queue_config{sync_policy::latest_token, 0, {}});
    stage.world.introduce(queue.id(), "token queue");
    stage.pass(std::chrono::milliseconds{1250});
    auto put = make_put_tokens(7, 2);
    caf::anon_send(queue, put);
    puppet chief{stage.world};
    stage.settle();
    chief.tell(queue, make_read_queue_status());
    stage.settle();
    caf::anon_send(queue, put);
    auto from = "actor " + std::to_string(chief.as<caf::actor>().id());
    CHECK(flight_record(stage.world.observatory(), "somebody asked")
          == "troupe flight record: somebody asked\n"
             "at 1.250000000 s since the job began\n\n"
             "           seconds  message                  step  from\n\n"
             "token queue: waiting, 1 in the mailbox, 2 handled, 0 errors\n"
             "         1.250000000  PutTokens                  7  nobody\n"
             "         1.250000000  ReadQueueStatus            -  "
               + from + "\n");
    caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a record of no actors is a heading") {
    observatory observed{[] { return job_time{0}; }};
    auto text = flight_record(observed, "x");
    CHECK(text.starts_with("troupe flight record: x\nat 0.000000000 s"));
  }

  TEST_CASE("names and numbers of any length fit") {
    observatory observed{[] { return job_time::max(); }};
    auto* seen = observed.watch(std::numeric_limits<uint64_t>::max());
    const std::string name(10'000, 'n');
    seen->set_name(name.c_str());
    seen->begin_message({job_time::min(), nullptr, 99, 0xfffffffe});
    auto text = flight_record(observed, "x");
    CHECK(text.find(name + ": working") != std::string::npos);
    CHECK(text.find("9223372036.854775807 s") != std::string::npos);
    CHECK(text.find("4294967294  actor 99\n") != std::string::npos);
  }

  TEST_CASE("a file that cannot be written is an error that names it") {
    observatory observed{[] { return job_time{0}; }};
    auto saved = save_flight_record(observed, "x", "/dev/null/flight.txt");
    REQUIRE(!saved);
    CHECK(saved.error().message.find("/dev/null/flight.txt") != std::string::npos);
  }
}

} // namespace flight_record_test
