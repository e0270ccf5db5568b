// SPDX-License-Identifier: Apache-2.0
// Goal: a process with other settings hears at once which, and the chief's process hears of it.
// Method: puppets that ask, in a virtual world.
#include "actors/training/settings_check.hpp"
#include "messages/cluster_message.hpp"
#include "tests/actors/deterministic_world.hpp"

namespace settings_check_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct chiefs_process : deterministic_world {
  chiefs_process() {
    settings_check_config config{.members = {{1, "worker:1"}, {2, "worker:2"}},
                                 .agreement = "batch = 8\nhidden = [16]\n"};
    config.on_refusal = [this](const error& why) { refusals.push_back(why.message); };
    config.why_not = [this] { return why_not; };
    check = spawn(settings_check, std::move(config));
  }

  ~chiefs_process() { caf::anon_send_exit(check, caf::exit_reason::kill); }

  expected<msg<wire::JobBegins>> ask(uint32_t member, const std::string& agreement) {
    auto answer = process.ask<msg<wire::JobBegins>>(
      check, make_enter_job({.member = member, .agreement = agreement}));
    settle();
    return answer.result();
  }

  puppet process{world};
  settings_check_actor check;
  std::vector<std::string> refusals;
  std::optional<error> why_not; ///< Nothing, if the job can begin.
};

} // namespace

TEST_SUITE("actors/training/settings_check") {
  TEST_CASE_FIXTURE(chiefs_process, "a process with the chief's settings may go on") {
    CHECK(ask(1, "batch = 8\nhidden = [16]\n"));
    CHECK(ask(2, "batch = 8\nhidden = [16]\n"));
    CHECK(refusals.empty());
  }

  TEST_CASE_FIXTURE(chiefs_process,
                    "a process with other settings is told the first that differs, as is the "
                    "chief's, whenever it asks") {
    const std::string line = "worker:2 has hidden = [16, 8], the chief's process hidden = [16]; "
                             "start all processes of a job with the same options and variables";
    for (int i = 0; i < 2; ++i)
      CHECK(ask(2, "batch = 8\nhidden = [16, 8]\nseed = 7\n").error()
            == error{errc::failed_precondition, line});
    CHECK(refusals == std::vector<std::string>{line, line});
    CHECK(ask(1, "batch = 8\nhidden = [16]\n"));
  }

  TEST_CASE_FIXTURE(chiefs_process, "a process that comes to a job that cannot begin is told why") {
    why_not = {errc::failed_precondition, "worker:2 has seed = 7"};
    CHECK(ask(1, "batch = 8\nhidden = [16]\n").error() == *why_not);
    CHECK(refusals.empty());
  }

  TEST_CASE_FIXTURE(chiefs_process, "a process that the job does not have is refused alone") {
    CHECK(ask(7, "batch = 8\n").error().code == errc::invalid_argument);
    CHECK(refusals.empty());
  }
}

} // namespace settings_check_test
