// SPDX-License-Identifier: Apache-2.0
// Goal: an owner knows whether it holds its variable, and answers its callers when that, and what
// its mirror has made, is certain. Method: the parts of its state, without actors.
#include "actors/gpu/cpu_device.hpp"
#include "actors/training/variable_owner.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

namespace variable_owner_state_test {

using namespace troupe;
using namespace troupe::test;
using phase = variable_owner_state::phase;

namespace {

/// Writes down what is told and settled, by name.
struct diary {
  std::vector<std::string> lines;

  unmirrored_change change(const std::string& name, std::optional<request_id> id = {}) {
    return {[this, name] { lines.push_back("tell " + name); },
            [this, name](const std::optional<error>& refused) {
              lines.push_back((refused ? "refuse " : "settle ") + name);
            },
            id};
  }
};

variable_owner_state new_owner() {
  return variable_owner_state{{.variable = {"w", dtype::f32, {1}}, .initial = array({1}, {1})}};
}

} // namespace

TEST_SUITE("actors/training/variable_owner_state") {
  TEST_CASE(
    "a reader on the variable's device learns of a copy that there is not, as on the host") {
    auto gpu = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true});
    owned_variable variable{
      {.variable = {"w", dtype::f32, {1}}, .initial = array({1}, {1}), .places = {{.owned = gpu}}}};
    for (auto reader : {gpu->where(), device{}}) {
      CHECK(variable.read(make_read_variable(whole_variable, reader)));
      auto refused = variable.read(make_read_variable(7, reader));
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::out_of_range);
      CHECK(refused.error().message == "variable 'w' has 1 copies, and no copy 7");
    }
  }

  TEST_CASE("the mirror is told of one change after the other") {
    diary diary;
    unmirrored_changes changes;
    changes.add(diary.change("a"));
    changes.add(diary.change("b"));
    CHECK(diary.lines == std::vector<std::string>{"tell a"});
    changes.settle_first();
    changes.settle_first();
    CHECK(diary.lines == std::vector<std::string>{"tell a", "settle a", "tell b", "settle b"});
  }

  TEST_CASE("without the mirror all changes are settled, or refused") {
    diary diary;
    unmirrored_changes changes;
    changes.add(diary.change("a"));
    changes.add(diary.change("b"));
    changes.settle_all();
    changes.add(diary.change("c"));
    changes.settle_all(error{errc::unavailable, "lost"});
    CHECK(diary.lines
          == std::vector<std::string>{"tell a", "settle a", "settle b", "tell c", "refuse c"});
  }

  TEST_CASE("a caller waits for the last change that may be asked for again") {
    diary diary;
    unmirrored_changes changes;
    CHECK(changes.last_numbered() == nullptr);
    changes.add(diary.change("a", request_id{1, 1, 1}));
    changes.add(diary.change("b", request_id{2, 1, 1}));
    changes.add(diary.change("c"));
    auto* last = changes.last_numbered();
    REQUIRE(last != nullptr);
    last->settle(std::nullopt);
    CHECK(diary.lines.back() == "settle b");
    changes.forget();
    CHECK(changes.last_numbered() == nullptr);
  }

  TEST_CASE("a change is found by its number as long as the mirror has not made it") {
    diary diary;
    unmirrored_changes changes;
    changes.add(diary.change("a", request_id{1, 1, 1}));
    changes.add(diary.change("b"));
    changes.add(diary.change("c", request_id{2, 1, 1}));
    auto* found = changes.find({2, 1, 1});
    REQUIRE(found != nullptr);
    found->settle(std::nullopt);
    CHECK(diary.lines.back() == "settle c");
    CHECK(changes.find({2, 2, 2}) == nullptr);
    CHECK(changes.find({1, 1, 1}) != nullptr);
    changes.settle_first();
    CHECK(changes.find({1, 1, 1}) == nullptr);
  }

  TEST_CASE("an unsure owner answers when its mirror has") {
    auto owner = new_owner();
    CHECK(owner.now_in == phase::holding);
    owner.enter(phase::unsure);
    auto answers = 0;
    owner.delayed_answers.emplace_back([&] { ++answers; });
    CHECK(owner.holds());
    CHECK(answers == 0);
    owner.become_certain();
    CHECK(owner.now_in == phase::holding);
    CHECK(answers == 1);
    owner.become_certain();
    CHECK(answers == 1);
  }

  TEST_CASE("an owner that has lost its variable holds none, and may come back as a mirror") {
    auto owner = new_owner();
    owner.enter(phase::deposed);
    CHECK_FALSE(owner.holds());
    CHECK_FALSE(owner.repeats());
    owner.become_newcomer({.is_mirrors = true});
    CHECK(owner.now_in == phase::returning);
    CHECK(owner.repeats());
    CHECK_FALSE(owner.now_in.may_enter(phase::taken_over)); // it was not told yet what it missed
    owner.returned.reset();
    owner.enter(phase::mirroring);
    owner.enter(phase::taken_over);
    CHECK(owner.holds());
    CHECK_FALSE(owner.repeats());
  }
}

} // namespace variable_owner_state_test
