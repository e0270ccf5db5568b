// SPDX-License-Identifier: Apache-2.0
// Goal: a caller that speaks to a failover client does not notice that an owner is lost, and a
// directory has one mirror take over, once. Method: a variable with owner, mirror, their
// accumulators and a directory in one virtual world; actors are killed at moments of the test's
// choice.
#include "tests/actors/lose_node.hpp"
#include "tests/actors/replicated_job.hpp"

namespace failover_client_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("actors/replication/failover_client") {
  TEST_CASE_FIXTURE(replicated_job, "as long as no owner is lost, it answers as those behind it") {
    auto taken = take(2);
    auto first = push(0, 10);
    auto second = push(1, 20);
    settle();
    CHECK(is_accepted(first));
    CHECK(is_accepted(second));
    CHECK(taken.value().reader().getVersion() == 1);
    CHECK(value() == doctest::Approx(85));
    CHECK(chief.heard<wire::TakenGradient>().size() == 1);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a gradient that was accepted before the loss is part of the step") {
    auto taken = take(2);
    auto first = push(0, 10);
    settle();
    CHECK(is_accepted(first));
    lose(0);
    auto second = push(1, 20);
    settle();
    CHECK(is_accepted(second));
    CHECK(taken.value().reader().getVersion() == 1);
    CHECK(value() == doctest::Approx(85));
    auto reports = chief.heard<wire::TakenGradient>();
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].reader().getAccepted().size() == 2);
  }

  TEST_CASE_FIXTURE(replicated_job, "no step is closed before all that was accepted is there") {
    auto first = push(0, 10);
    auto second = push(1, 20);
    settle();
    lose(0);
    auto third = push(2, 30);
    auto taken = take(1);
    settle();
    CHECK(is_accepted(third));
    CHECK(taken.has_come());
    CHECK(value() == doctest::Approx(80));
  }

  TEST_CASE_FIXTURE(replicated_job, "a step that was closed before the loss is closed once") {
    for (uint64_t step = 0; step < 3; ++step) {
      auto taken = take(1);
      auto given = push(0, 10, step);
      settle();
      CHECK(taken.value().reader().getVersion() == step + 1);
      if (step == 1) lose(0);
    }
    CHECK(value() == doctest::Approx(70));
    auto late = push(1, 1000, 1);
    settle();
    CHECK_FALSE(is_accepted(late));
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a client that comes after the move is told where the variable is") {
    lose(0);
    auto newcomer = speaker(false);
    settle();
    auto answer = trainer.ask<msg<wire::VariableSnapshot>>(newcomer, make_read_variable());
    settle();
    CHECK(answer.has_come());
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a client that comes after a loss needs only the owners that are left") {
    auto read_of_newcomer = [this] {
      auto newcomer = speaker(false);
      auto answer = trainer.ask<msg<wire::VariableSnapshot>>(newcomer, make_read_variable());
      settle();
      caf::anon_send_exit(newcomer, caf::exit_reason::kill);
      return answer;
    };
    lose(1);
    *has_come[1] = false;
    CHECK(read_of_newcomer().value().reader().getVersion() == 0);
    lose(0);
    CHECK(read_of_newcomer().error().code == errc::unavailable);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a client that comes after the move does not need the former owner") {
    lose(0);
    *has_come[0] = false;
    auto newcomer = speaker(false);
    auto answer = trainer.ask<msg<wire::VariableSnapshot>>(newcomer, make_read_variable());
    settle();
    CHECK(answer.value().reader().getVersion() == 0);
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated_job, "the holder of the variable is waited for until the deadline") {
    *has_come[0] = false;
    auto early = speaker(false);
    auto read = trainer.ask<msg<wire::VariableSnapshot>>(early, make_read_variable());
    auto given = trainer.ask<msg<wire::PushReply>>(
      early, make_push_gradient({.replica = 7}, array({1}, {1})));
    pass(59s);
    CHECK_FALSE(read.has_come());
    *has_come[0] = true;
    pass(1s);
    CHECK(read.has_come());
    CHECK(is_accepted(given));
    *has_come[0] = false;
    auto late = speaker(false);
    read = trainer.ask<msg<wire::VariableSnapshot>>(late, make_read_variable());
    pass(61s);
    CHECK(read.error().code == errc::deadline_exceeded);
    CHECK(read.error().message == "waited 60.0 s for the holder of 'w'");
    for (const auto& one : {early, late})
      caf::anon_send_exit(one, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "no owner is asked before it is known which one holds the variable") {
    auto other = spawn(directory, directory_state::give_up_process{});
    auto early
      = spawn(failover_client,
              failover_client_config{
                .name = "w", .owners = {search(owners, 0), search(owners, 1)}, .directory = other});
    auto read = trainer.ask<msg<wire::VariableSnapshot>>(early, make_read_variable());
    pass(10s);
    CHECK_FALSE(read.has_come());
    trainer.tell(other, watch_owner{"w", owners[0], owners[1]});
    pass(1s);
    CHECK(read.has_come());
    for (const auto& one : {caf::actor_cast<caf::actor>(other), caf::actor_cast<caf::actor>(early)})
      caf::anon_send_exit(one, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated_job, "a take can be cancelled after the move, too") {
    auto taken = take(2);
    settle();
    lose(0);
    chief.tell(closer, make_cancel_takes());
    settle();
    CHECK(taken.error().code == errc::cancelled);
  }

  TEST_CASE_FIXTURE(replicated_job, "a take that was lowered before the move stays so after it") {
    auto taken = take(3);
    auto first = push(0, 10);
    settle();
    chief.tell(closer, make_cancel_takes(2, 0));
    settle();
    lose(0);
    CHECK_FALSE(taken.has_come());
    auto second = push(1, 20);
    settle();
    CHECK(is_accepted(first));
    CHECK(is_accepted(second));
    CHECK(taken.value().reader().getVersion() == 1);
    CHECK(value() == doctest::Approx(85));
  }

  TEST_CASE_FIXTURE(replicated_job, "a take that a lost accumulator was told of is lowered, too") {
    auto taken = take(3);
    auto first = push(0, 10);
    auto second = push(1, 20);
    settle();
    caf::anon_send_exit(owners[0], caf::exit_reason::kill);
    caf::anon_send_exit(accumulators[0], caf::exit_reason::kill);
    chief.tell(closer, make_cancel_takes(2, 0)); // before the loss is known
    settle();
    CHECK(taken.value().reader().getVersion() == 1);
    CHECK(value() == doctest::Approx(85));
  }

  TEST_CASE_FIXTURE(replicated_job, "a take that a lost accumulator was told of is cancelled") {
    auto taken = take(3);
    settle();
    caf::anon_send_exit(owners[0], caf::exit_reason::kill);
    caf::anon_send_exit(accumulators[0], caf::exit_reason::kill);
    chief.tell(closer, make_cancel_takes());
    chief.tell(closer, make_cancel_takes(2, 0)); // it stays cancelled
    settle();
    CHECK(taken.error().code == errc::cancelled);
  }

  TEST_CASE_FIXTURE(replicated_job, "no take is cancelled for a word of the one before") {
    auto first = take(2);
    settle();
    chief.tell(closer, make_cancel_takes());
    settle();
    CHECK(first.error().code == errc::cancelled);
    auto second = take(1);
    settle();
    lose(0);
    auto given = push(0, 10);
    settle();
    CHECK(is_accepted(given));
    CHECK(second.value().reader().getVersion() == 1);
  }

  TEST_CASE_FIXTURE(replicated_job, "the chief is told in one line what is held once") {
    lose(0);
    pass(1s);
    auto lines = chief.heard<wire::OwnersLost>();
    REQUIRE(lines.size() == 1);
    std::string line = lines[0].reader().getReason();
    CHECK(line.find("'w' held by mirrors now; held once from now on: 'w'") != std::string::npos);
  }

  TEST_CASE_FIXTURE(replicated_job, "a mirror that is lost is told of, and the owner goes on") {
    lose(1);
    pass(1s);
    auto lines = chief.heard<wire::OwnersLost>();
    REQUIRE(lines.size() == 1);
    std::string line = lines[0].reader().getReason();
    CHECK(line.find("held once from now on: 'w'") != std::string::npos);
    CHECK(line.find("mirrors now") == std::string::npos);
    auto taken = take(1);
    auto given = push(0, 10);
    settle();
    CHECK(taken.has_come());
  }

  TEST_CASE_FIXTURE(replicated_job, "when both are lost, waiting requests are told so") {
    auto taken = take(2);
    auto first = push(0, 10);
    settle();
    lose(1);
    lose(0);
    pass(1s);
    CHECK(taken.error().code == errc::unavailable);
    CHECK(taken.error().message.find("the owner of 'w' is gone") != std::string::npos);
    auto second = push(1, 10);
    settle();
    CHECK(second.error().code == errc::unavailable);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "an owner that comes back may take over in turn, again and again") {
    uint64_t step = 0;
    for (size_t lost : {0, 1, 0, 1, 1, 0, 0}) {
      auto taken = take(2);
      auto first = push(0, 10, step);
      settle();
      CHECK(is_accepted(first));
      lose(lost);
      return_to(lost);
      CHECK(returns_told() == step + 1);
      auto second = push(1, 20, step);
      settle();
      CHECK(is_accepted(second));
      CHECK(taken.value().reader().getVersion() == ++step);
      CHECK(value() == doctest::Approx(100 - 15.0 * static_cast<double>(step)));
    }
    CHECK(chief.heard<wire::TakenGradient>().size() == step);
  }

  TEST_CASE_FIXTURE(replicated_job, "the chief is told in one line what is held twice again") {
    lose(1);
    return_to(1);
    REQUIRE(returns_told() == 1);
    std::string line = chief.heard<wire::OwnersMirrored>()[0].reader().getReason();
    CHECK(line == "held twice again: 'w'");
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a gradient that was given again counts once, however often it is lost") {
    auto first = push(0, 10);
    settle();
    lose(0);
    return_to(0);
    lose(1);
    return_to(1);
    lose(0);
    auto taken = take(2);
    auto second = push(1, 20);
    settle();
    CHECK(is_accepted(first));
    CHECK(taken.value().reader().getVersion() == 1);
    CHECK(value() == doctest::Approx(85));
    CHECK(chief.heard<wire::TakenGradient>()[0].reader().getAccepted().size() == 2);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "an owner that comes back before its loss is known waits for that") {
    auto former = owners[0];
    begin_again(0, owners[1]);
    CHECK(returns_told() == 0);
    caf::anon_send_exit(former, caf::exit_reason::kill);
    CHECK(returns_told() == 1);
    lose(1);
    CHECK(value() == 100);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "the next life of the only holder of a variable does not hold it") {
    lose(1);
    auto former = owners[0];
    begin_again(0, owners[1]);
    CHECK(returns_told() == 0);
    caf::anon_send_exit(former, caf::exit_reason::kill);
    pass(1s);
    auto read = chief.ask<msg<wire::VariableSnapshot>>(closer, make_read_variable());
    settle();
    CHECK(read.error().code == errc::unavailable);
  }

  TEST_CASE_FIXTURE(
    replicated_job,
    "an owner that is lost while it is told the changes since its loss is not missed") {
    puppet silent{world};
    lose(0);
    begin_again(0, silent.as<replicated_owner_actor>());
    CHECK(returns_told() == 0);
    CHECK(silent.heard<wire::RepeatChanges>().size() == 1);
    lose(0);
    pass(1s);
    CHECK(chief.heard<wire::OwnersLost>().size() == 1);
    auto taken = take(1);
    auto given = push(0, 10);
    settle();
    CHECK(taken.value().reader().getVersion() == 1);
    return_to(0);
    CHECK(returns_told() == 1);
    lose(1);
    CHECK(value() == doctest::Approx(90));
  }

  TEST_CASE_FIXTURE(
    replicated_job,
    "an owner that has not been told the changes since its loss does not take over") {
    puppet silent{world};
    lose(0);
    begin_again(0, silent.as<replicated_owner_actor>());
    auto taken = take(1);
    settle();
    lose(1);
    pass(1s);
    CHECK(taken.error().code == errc::unavailable);
    CHECK(taken.error().message.find("the owner of 'w' is gone") != std::string::npos);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a client that comes after several moves is told where the variable is") {
    lose(0);
    return_to(0);
    lose(1);
    auto newcomer = speaker(false);
    auto answer = trainer.ask<msg<wire::VariableSnapshot>>(newcomer, make_read_variable());
    settle();
    CHECK(answer.value().reader().getVersion() == 0);
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated_job, "an offer for a variable that there is not is refused") {
    auto refused = trainer.ask<msg<wire::OwnerFollowed>>(known, make_offer_mirror(7, false, false));
    settle();
    CHECK(refused.error().code == errc::not_found);
  }

  TEST_CASE_FIXTURE(replicated_job, "a mirror that is behind does not take over") {
    auto taken = take(1);
    auto first = push(0, 10);
    settle();
    CHECK(taken.has_come());
    caf::anon_send_exit(owners[1], caf::exit_reason::kill);
    settle();
    trainer.tell(closer, make_took_over(1, std::nullopt));
    settle();
    auto next = take(1);
    settle();
    CHECK(next.error().message.find("has come to step 0 only, the job to step 1")
          != std::string::npos);
  }

  TEST_CASE_FIXTURE(replicated_job, "one of two processes that lose each other is given up") {
    std::array<puppet, 2> first{puppet{world}, puppet{world}};
    std::array<puppet, 2> second{puppet{world}, puppet{world}};
    auto watch = [&](const std::string& name, const puppet& owner, const puppet& mirror,
                     std::array<uint32_t, 2> processes) {
      trainer.tell(known, watch_owner{name, owner.as<replicated_owner_actor>(),
                                      mirror.as<replicated_owner_actor>(), processes});
    };
    watch("first", first[0], first[1], {5, 6});
    watch("second", second[0], second[1], {6, 5});
    settle();
    auto stays = first[0].ask<msg<wire::OwnerFollowed>>(known, make_miss_mirror(1, 0));
    auto leaves = second[0].ask<msg<wire::OwnerFollowed>>(known, make_miss_mirror(2, 0));
    pass(1s);
    CHECK(parted == std::vector<std::pair<uint32_t, uint32_t>>{{6, 5}});
    CHECK_FALSE(stays.has_come());
    for (const auto* gone : {&first[1], &second[0]})
      caf::anon_send_exit(gone->as<caf::actor>(), caf::exit_reason::kill);
    settle();
    CHECK(stays.has_come());
    CHECK(first[0].heard<wire::TakeOver>().empty());
    CHECK(second[1].heard<wire::TakeOver>().size() == 1);
    CHECK_FALSE(leaves.has_come());
    auto again = first[0].ask<msg<wire::OwnerFollowed>>(known, make_miss_mirror(1, 0));
    settle();
    CHECK(again.has_come());
    CHECK(parted.size() == 1);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "an actor that does not hold a variable cannot miss its mirror") {
    auto refused = trainer.ask<msg<wire::OwnerFollowed>>(known, make_miss_mirror(0, 0));
    settle();
    CHECK(refused.error() == error{errc::cancelled, "'w' is held by another"});
    pass(1s);
    CHECK(parted.empty());
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "an owner that hears late of a former mirror gives up no later one") {
    puppet holder{world};
    puppet former{world};
    puppet later{world};
    trainer.tell(known, watch_owner{"v",
                                    holder.as<replicated_owner_actor>(),
                                    former.as<replicated_owner_actor>(),
                                    {5, 6}});
    settle();
    caf::anon_send_exit(former.as<caf::actor>(), caf::exit_reason::kill);
    settle();
    auto taken_in = later.ask<msg<wire::OwnerFollowed>>(known, make_offer_mirror(1, true, false));
    settle();
    CHECK(taken_in.value().reader().getMirror() == 1);
    auto late = holder.ask<msg<wire::OwnerFollowed>>(known, make_miss_mirror(1, 0));
    pass(1s);
    CHECK(late.has_come());
    CHECK(parted.empty());
    auto missed = holder.ask<msg<wire::OwnerFollowed>>(known, make_miss_mirror(1, 1));
    pass(1s);
    CHECK_FALSE(missed.has_come());
    CHECK(parted == std::vector<std::pair<uint32_t, uint32_t>>{{6, 5}});
  }

  TEST_CASE_FIXTURE(replicated_job, "the holder of a variable, or its mirror, is no newcomer") {
    for (size_t place = 0; place < 2; ++place)
      trainer.tell(owners[place], come_back{owners[1 - place], place == 1, false});
    pass(1s);
    auto changed = add(0, 1);
    settle();
    CHECK(number_in(changed) == 101);
    lose(0);
    CHECK(value() == 101);
    CHECK(returns_told() == 0);
  }

  TEST_CASE_FIXTURE(
    replicated_job,
    "an owner that does not know that it is in a new life is told the changes, too") {
    lose(0);
    owners[0] = spawn(variable_owner, owner_config());
    accumulators[0] = collector(owners[0]);
    trainer.tell(owners[0], use_accumulator{accumulators[0]});
    trainer.tell(owners[0], use_mirror{owners[1]});
    trainer.tell(owners[0], come_back{owners[1], false, false});
    settle();
    auto changed = add(0, 1);
    settle();
    CHECK(number_in(changed) == 101);
    CHECK(returns_told() == 1);
    lose(1);
    CHECK(value() == 101);
  }

  TEST_CASE_FIXTURE(replicated_job, "a change that was made before the loss is not made again") {
    replicas.push_back(speaker(false));
    settle();
    auto fifth = request_id{5, 1, 1}; // the others have come before
    auto one = numbered(addition(1), fifth);
    caf::anon_send_exit(owners[0], caf::exit_reason::kill);
    caf::anon_send_exit(accumulators[0], caf::exit_reason::kill);
    owners[1]->enqueue( // the word of its owner, which is lost before it has the answer
      caf::make_mailbox_element(caf::actor_cast<caf::strong_actor_ptr>(owners[0]),
                                caf::make_message_id(), {}, one),
      nullptr);
    auto changed = add(3, 1);
    auto others = add(1, 10);
    settle();
    CHECK(number_in(changed) == 101);
    CHECK(number_in(others) == 111);
    CHECK(value() == 111);
  }

  TEST_CASE_FIXTURE(replicated_job, "changes are asked for as soon as there may be so many") {
    constexpr int count = 600;
    std::vector<answer<msg<wire::VariableSnapshot>>> changes;
    for (int i = 0; i < count; ++i)
      changes.push_back(add(0, 1));
    caf::anon_send_exit(owners[0], caf::exit_reason::kill);
    caf::anon_send_exit(accumulators[0], caf::exit_reason::kill);
    settle();
    CHECK(number_in(changes.back()) == 100 + count);
    CHECK(value() == 100 + count);
  }

  TEST_CASE_FIXTURE(replicated_job, "without a word from the directory the wait ends") {
    caf::anon_send_exit(known, caf::exit_reason::kill);
    settle();
    lose(0);
    auto given = push(0, 10);
    settle();
    CHECK_FALSE(given.has_come());
    pass(20s);
    CHECK(given.error().code == errc::unavailable);
  }

  TEST_CASE_FIXTURE(replicated_job,
                    "a client that loses the directory's node, too, does not wait for news") {
    auto given = push(0, 10);
    settle();
    auto taken = take(2);
    lose_node(known, {errc::unavailable, "chief:0 is gone"});
    settle();
    CHECK(taken.error().message == "chief:0 is gone");
    auto late = push(1, 20);
    settle();
    CHECK(late.error().message == "chief:0 is gone");
  }
}

} // namespace failover_client_test
