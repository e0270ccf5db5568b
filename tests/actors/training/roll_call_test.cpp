// SPDX-License-Identifier: Apache-2.0
// Goal: no process begins before all are there, none leaves before all may, and a missing one is
// named in time. Method: members of a virtual world, and a roll call that a test speaks to.
#include "actors/training/agreement.hpp"
#include "actors/training/member.hpp"
#include "actors/training/roll_call.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <fmt/format.h>
#include <map>

namespace roll_call_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// The messages that a member was told.
struct told {
  std::optional<expected<msg<wire::JobBegins>>> begins;
  std::optional<expected<job_ending>> ends;
  std::optional<expected<job_ending>> left;
};

struct gathering : deterministic_world {
  explicit gathering(optional_members optional = {}, uint32_t lives_before = 0) {
    roll_call_config config{.members = {{1, "worker:1"}, {2, "worker:2"}},
                            .seed = 5,
                            .lives_before = lives_before,
                            .replicas = 4,
                            .agreement = "batch = 8\nhidden = [16]\n",
                            .holders = {2},
                            .optional = std::move(optional),
                            .enter_deadline = 60s,
                            .leave_deadline = 30s,
                            .world = &world};
    config.on_entered = [this](expected<roll_called> how) { entered = std::move(how); };
    config.on_waiting = [this](const std::string& line) { waiting.push_back(line); };
    config.on_lost = [this](uint32_t member, const error& reason) { lost[member] = reason; };
    config.on_left = [this](const job_ending& how) { left = how; };
    roll = spawn(roll_call, std::move(config));
  }

  ~gathering() {
    for (auto& [index, actor] : members)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    caf::anon_send_exit(roll, caf::exit_reason::kill);
  }

  void enter(uint32_t index, uint64_t seed = 5, uint32_t replicas = 4,
             const std::string& agreement = "batch = 8\nhidden = [16]\n") {
    auto* said = &hears[index];
    member_config config{.roll = roll, .entrance = {index, 7s, seed, replicas, agreement}};
    config.on_begin = [said](expected<msg<wire::JobBegins>> begins) { said->begins = begins; };
    config.on_end = [said](expected<job_ending> ends) { said->ends = ends; };
    config.on_left = [said](expected<job_ending> gone) { said->left = gone; };
    members[index] = spawn(member, std::move(config));
    settle();
  }

  void say(const msg<wire::JobBegins>& begins) {
    caf::anon_send(roll, begins);
    settle();
  }

  void say(const job_ending& how) {
    caf::anon_send(roll, make_job_ended(how));
    settle();
  }

  void leave(uint32_t index) {
    caf::anon_send(members[index], make_leave_job(index));
    settle();
  }

  void kill(uint32_t index) {
    caf::anon_send_exit(members[index], caf::exit_reason::kill);
    settle();
  }

  roll_call_actor roll;
  std::map<uint32_t, member_actor> members;
  std::map<uint32_t, told> hears;
  std::optional<expected<roll_called>> entered;
  std::vector<std::string> waiting;
  std::map<uint32_t, error> lost;
  std::optional<job_ending> left;
};

/// Member 1 brings two replicas, which may come late.
struct elastic_gathering : gathering {
  elastic_gathering() : gathering({.replicas = {{1, 2}}, .replicas_min = 0, .last_call = 5s}) {}
};

const std::map<uint32_t, std::string> only_worker_1{{1, "worker:1"}};

const job_ending well{.step = 9};

} // namespace

TEST_SUITE("actors/training/roll_call") {
  TEST_CASE_FIXTURE(gathering, "clocks that go on while others enter are no further ahead") {
    enter(1); // its clock shows 7 s
    pass(20s);
    enter(2);
    REQUIRE(entered);
    CHECK(entered->value().clock == 27s);
  }

  TEST_CASE_FIXTURE(gathering, "a job goes from the first entrance to the last leave") {
    enter(1);
    CHECK_FALSE(entered);
    enter(2);
    REQUIRE(entered);
    CHECK(entered->value().clock == 7s);
    CHECK_FALSE(hears[1].begins);
    say(make_job_begins(3, 8s, {}));
    CHECK(hears[1].begins->value().reader().getFirstStep() == 3);
    CHECK(hears[2].begins->has_value());
    say(well);
    CHECK(hears[1].ends->value() == well);
    leave(1);
    CHECK_FALSE(hears[1].left);
    CHECK_FALSE(left);
    leave(2);
    CHECK(hears[1].left->value() == well);
    CHECK(hears[2].left->value() == well);
    REQUIRE(left);
    CHECK(*left == well);
    CHECK(lost.empty());
  }

  TEST_CASE_FIXTURE(elastic_gathering, "a job begins without a worker when its last call is over") {
    enter(2);
    CHECK_FALSE(entered);
    CHECK(waiting
          == std::vector<std::string>{
            "enough replicas are there; the job waits 5.0 s more for worker:1 to enter"});
    pass(6s);
    REQUIRE(entered);
    CHECK(entered->value().absent == only_worker_1);
    say(make_job_begins(3, 8s, {}));
    CHECK(hears[2].begins->value().reader().getLife() == 0);
    enter(1);
    REQUIRE(hears[1].begins);
    CHECK(hears[1].begins->value().reader().getLife() == 1); // it begins where the others are
    CHECK(lost.empty());
  }

  TEST_CASE_FIXTURE(elastic_gathering,
                    "a worker with other options that comes behind the last call is not let in") {
    enter(2);
    pass(6s);
    REQUIRE(entered);
    enter(1, 6);
    REQUIRE(hears[1].begins);
    CHECK(hears[1].begins->error().message.starts_with("worker:1 has seed = 6"));
    say(make_job_begins(3, 8s, {}));
    CHECK(hears[2].begins->has_value());
    CHECK_FALSE(hears[1].begins->has_value());
  }

  TEST_CASE_FIXTURE(elastic_gathering, "a worker that is lost before the job begins is absent") {
    enter(1);
    kill(1);
    CHECK_FALSE(entered);
    enter(2);
    pass(6s);
    CHECK(entered->value().absent == only_worker_1);
    CHECK(lost.empty());
  }

  TEST_CASE_FIXTURE(elastic_gathering, "no last call waits for members that are all there") {
    enter(1);
    enter(2);
    CHECK(entered->value().absent.empty());
  }

  TEST_CASE_FIXTURE(elastic_gathering, "a job does not begin without a member that it needs") {
    enter(1);
    pass(61s);
    CHECK(entered->error().message.find("s for worker:2 to enter the job") != std::string::npos);
  }

  TEST_CASE_FIXTURE(gathering, "members that are missing are told of every ten seconds") {
    enter(2);
    pass(9s);
    CHECK(waiting.empty());
    pass(2s);
    CHECK(waiting
          == std::vector<std::string>{"still waiting for worker:1 to enter the job, 10 s of 60"});
    pass(20s);
    CHECK(waiting.size() == 3);
    enter(1);
    pass(30s);
    CHECK(waiting.size() == 3);
  }

  TEST_CASE_FIXTURE(gathering,
                    "a process that does not enter in time is named, and the others are told") {
    enter(2);
    pass(61s);
    REQUIRE(entered);
    CHECK(entered->error().code == errc::deadline_exceeded);
    CHECK(entered->error().message.find("s for worker:1 to enter the job") != std::string::npos);
    say(job_ending{.failure = entered->error()});
    CHECK(hears[2].begins->error() == entered->error());
    leave(2);
    CHECK(hears[2].left->value().failure == entered->error());
    CHECK(left);
  }

  TEST_CASE_FIXTURE(gathering, "a process that was started differently is refused by name") {
    enter(1, 6);
    CHECK(entered->error().message
          == "worker:1 has seed = 6, the chief's process seed = 5; start all processes of a job "
             "with the same options and variables");
    CHECK(entered->error().code == errc::failed_precondition);
  }

  TEST_CASE_FIXTURE(gathering, "another number of replicas is refused, too, and so is a stranger") {
    enter(3);
    CHECK(hears[3].begins->error().code == errc::invalid_argument);
    CHECK_FALSE(entered);
    enter(2, 5, 8);
    CHECK(entered->error().message.starts_with(
      "worker:2 has replicas = 8, the chief's process replicas = 4"));
  }

  TEST_CASE_FIXTURE(gathering, "the first line that differs is named") {
    enter(1, 5, 4, "batch = 8\nhidden = [32]\n");
    CHECK(
      entered->error().message
      == "worker:1 has hidden = [32], the chief's process hidden = [16]; start all processes of "
         "a job with the same options and variables");
  }

  TEST_CASE("a life in a job that goes on is none of the job before") {
    gathering resumed{{}, 3};
    resumed.enter(1);
    resumed.enter(2);
    resumed.say(make_job_begins(3, 8s, {}));
    CHECK(resumed.hears[1].begins->value().reader().getLife() == 0); // goes on with its iterations
    for (uint32_t life : {4, 5}) {
      resumed.kill(1);
      resumed.enter(1);
      CHECK(resumed.hears[1].begins->value().reader().getLife() == life);
    }
  }

  TEST_CASE_FIXTURE(gathering, "a process that comes back with other options is not let in") {
    enter(1);
    enter(2);
    say(make_job_begins(3, 8s, {}));
    kill(1);
    enter(1, 5, 4, "batch = 64\nhidden = [16]\n");
    REQUIRE(hears[1].begins);
    CHECK(hears[1].begins->error().message.starts_with("worker:1 has batch = 64"));
    enter(1);
    CHECK(hears[1].begins->has_value());
  }

  TEST_CASE("lines are compared one by one, and may be missing") {
    auto lines = [](std::string_view one, std::string_view other) {
      auto found = first_difference(one, other);
      return found ? fmt::format("{}|{}", found->first, found->second) : "none";
    };
    CHECK(lines("", "") == "none");
    CHECK(lines("a\nb\n", "a\nb") == "none");
    CHECK(lines("a\nb\nc", "a\nx\nc") == "b|x");
    CHECK(lines("a\n", "a\nb\n") == "|b");
    CHECK(lines("a\nb", "") == "a|");
    CHECK(lines("\n\na", "\n\nb") == "a|b");
  }

  TEST_CASE("an option that one process lacks is of another build, a variable is not") {
    auto refusal = [](std::string_view theirs, std::string_view ours) {
      return check_agreement("worker:1", theirs, ours)->message;
    };
    CHECK(
      refusal("seed = 1\nledger-bytes = 8\n", "seed = 1\n")
      == "worker:1 has ledger-bytes = 8, the chief's process nothing there; start all processes "
         "of a job from the same build");
    CHECK(
      refusal("seed = 1\n", "ledger-bytes = 8\nseed = 1\n")
      == "worker:1 has seed = 1, the chief's process ledger-bytes = 8; start all processes of a "
         "job from the same build");
    CHECK(refusal("variable 'w' = f32 [2]\n", "seed = 1\nvariable 'w' = f32 [2]\n")
            .ends_with("from the same build"));
    CHECK(refusal("seed = 1\n", "seed = 1\nvariable 'w' = f32 [2]\n")
          == "worker:1 has nothing there, the chief's process variable 'w' = f32 [2]; start all "
             "processes of a job with the same options and variables");
    CHECK(refusal("variable 'v' = f32 [2]\n", "variable 'w' = f32 [2]\n")
            .ends_with("with the same options and variables"));
    CHECK(refusal("a text of 9 bytes\n", "a text of 8 bytes\n")
            .ends_with("with the same options and variables"));
    CHECK(refusal(short_agreement("seed = 1\n" + std::string(5000, 'x')), "seed = 1\nbatch = 8\n")
            .ends_with("with the same options and variables"));
  }

  TEST_CASE("a checksum tells of a difference at the end of a text that is too long to be sent") {
    std::string lines;
    while (lines.size() <= 5000)
      lines += "beta = 0.9\n";
    CHECK(short_agreement("a\n") == "a\n");
    auto one = short_agreement(lines + "clip = 0\n"), other = short_agreement(lines + "clip = 1\n");
    CHECK(one.size() <= 4096);
    CHECK(one.size() > 4000);
    CHECK(one == short_agreement(lines + "clip = 0\n"));
    auto found = first_difference(one, other);
    REQUIRE(found);
    CHECK(found->first.starts_with("checksum of all options and variables = "));
    CHECK(short_agreement(std::string(5000, 'x'))
            .starts_with("checksum of all options and variables = "));
  }

  TEST_CASE_FIXTURE(gathering,
                    "a process that held variables alone is not let in again, and is told why") {
    enter(1);
    enter(2);
    say(make_job_begins(3, 8s, {}));
    kill(2);
    enter(2);
    REQUIRE(hears[2].begins);
    CHECK(hears[2].begins->error()
          == error{errc::failed_precondition,
                   "worker:2 was lost, and with it variables that no other process holds: this job "
                   "cannot go on"});
    say(well);
    leave(1);
    CHECK(hears[1].left->value() == well);
  }

  TEST_CASE_FIXTURE(gathering,
                    "a process that was lost and enters again is told at once how often") {
    enter(1);
    enter(2);
    say(make_job_begins(3, 8s, {}));
    for (uint32_t life : {1, 2}) {
      kill(1);
      CHECK(lost.contains(1));
      enter(1);
      REQUIRE(hears[1].begins->has_value());
      CHECK(hears[1].begins->value().reader().getFirstStep() == 3);
      CHECK(hears[1].begins->value().reader().getLife() == life);
    }
    say({.step = 9});
    CHECK(hears[1].ends->value().step == 9);
    leave(2);
    CHECK_FALSE(left);
    leave(1);
    REQUIRE(left);
    CHECK_FALSE(left->failure);
  }

  TEST_CASE_FIXTURE(gathering,
                    "a process that enters again for another job is refused, and not waited for") {
    enter(1);
    enter(2);
    say(make_job_begins(0, 8s, {}));
    kill(1);
    enter(1, 6);
    CHECK(hears[1].begins->error().code == errc::failed_precondition);
    leave(1);
    CHECK(hears[1].left->error().message == "it has no part in this job");
    say({.step = 9});
    leave(2);
    REQUIRE(left);
    CHECK_FALSE(left->failure);
  }

  TEST_CASE_FIXTURE(gathering, "a process that is lost before the job begins is named at once") {
    enter(1);
    kill(1);
    REQUIRE(entered);
    CHECK(entered->error().code == errc::unavailable);
    CHECK(entered->error().message.starts_with("worker:1 left before the job had begun"));
  }

  TEST_CASE_FIXTURE(gathering,
                    "a process that is lost while the job goes on is waited for no more") {
    enter(1);
    enter(2);
    say(make_job_begins(0, 8s, {}));
    kill(1);
    CHECK(lost.contains(1));
    CHECK(lost[1].code == errc::unavailable);
    say(well);
    leave(2);
    CHECK(*left == well);
  }

  TEST_CASE_FIXTURE(gathering,
                    "a process that does not leave in time is named, and the job has failed") {
    enter(1);
    enter(2);
    say(make_job_begins(0, 8s, {}));
    say(well);
    leave(2);
    pass(31s);
    REQUIRE(hears[2].left);
    const auto& how = hears[2].left->value();
    REQUIRE(how.failure);
    CHECK(how.step == 9);
    CHECK(how.failure->code == errc::deadline_exceeded);
    CHECK(how.failure->message.find("s for worker:1 to leave the job") != std::string::npos);
    CHECK(*left == how);
  }

  TEST_CASE_FIXTURE(gathering, "a process that cannot leave does not hide why the job has failed") {
    enter(1);
    enter(2);
    say(make_job_begins(0, 8s, {}));
    job_ending badly{.step = 2, .failure = error{errc::stalled, "no token is left"}};
    say(badly);
    pass(31s);
    CHECK(*left == badly);
  }

  TEST_CASE_FIXTURE(gathering, "a job that is over before all are there does not begin") {
    enter(1);
    say(job_ending{.stopped = "asked to stop"});
    CHECK(entered->error().code == errc::cancelled);
    CHECK(hears[1].begins->error().message == "the job was over before it had begun");
    leave(1);
    CHECK(hears[1].left->value().stopped == "asked to stop");
    CHECK(left);
  }
}

} // namespace roll_call_test
