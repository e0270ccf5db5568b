// SPDX-License-Identifier: Apache-2.0
// Goal: a value travels once for all readers of a process, and only as much of it as has changed.
// Method: an owner, a cache, and a post office between them that counts, and may keep letters.
#include "actors/replication/variable_cache.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/variable_owner.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/small_arrays.hpp"

#include <functional>

namespace variable_cache_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using change_kind = wire::Gradient::Which;

/// The messages that have gone through the post office.
struct letters {
  std::vector<uint64_t> known;   ///< The revision known, by question.
  std::vector<change_kind> told; ///< The kind of change, by answer.
  bool are_kept = false;         ///< Answers do not go out.
  std::vector<std::function<void()>> kept;
};

caf::behavior post_office(caf::event_based_actor* self, variable_owner_actor owner,
                          std::shared_ptr<letters> seen) {
  return {
    [=](const msg<wire::PullVariable>& question) {
      seen->known.push_back(question.reader().getKnown());
      auto promise = self->make_response_promise<msg<wire::VariableChanges>>();
      self->request(owner, caf::infinite, question)
        .then([=](const msg<wire::VariableChanges>& changes) {
          seen->told.push_back(changes.reader().getChange().which());
          auto deliver = [=]() mutable { promise.deliver(changes); };
          if (seen->are_kept)
            seen->kept.emplace_back(deliver);
          else
            deliver();
        });
      return promise;
    },
    [=](const msg<wire::ChangeVariable>& change) { return self->delegate(owner, change); },
    [=](const script& script) { script.act(self); },
  };
}

tensor value_of(const msg<wire::VariableSnapshot>& snapshot) {
  return read_tensor(snapshot.reader().getValue(), snapshot.owner());
}

gradient rows_of_ones(const std::vector<int64_t>& rows, shape whole) {
  tensor indices{dtype::i64, {static_cast<int64_t>(rows.size())}};
  std::ranges::copy(rows, indices.mutable_values<int64_t>().begin());
  auto values = filled(dtype::f32, {static_cast<int64_t>(rows.size()), whole.dims()[1]}, 1);
  return indexed_slices{indices, values, whole};
}

/// A table of 10 rows that learns by sgd with rate 1, and a process that reads it.
struct reading : deterministic_world {
  reading() {
    owner = spawn(variable_owner,
                  variable_owner_config{{"table", dtype::f32, extents}, zeros(extents), &world});
    auto office = world.system().spawn(post_office, owner, seen);
    post = office;
    cache
      = spawn(variable_cache, variable_cache_config{caf::actor_cast<variable_owner_actor>(office)});
    update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    static_cast<void>(
      reader.ask<msg<wire::OptimizerInUse>>(owner, make_use_optimizer(to_settings(plan))));
    settle();
  }

  ~reading() {
    for (const auto& actor :
         {caf::actor_cast<caf::actor>(cache), post, caf::actor_cast<caf::actor>(owner)})
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  answer<msg<wire::VariableSnapshot>> ask_for_it() {
    return reader.ask<msg<wire::VariableSnapshot>>(cache, make_read_variable());
  }

  tensor read() {
    auto asked = ask_for_it();
    settle();
    return value_of(asked.value());
  }

  tensor held_by_owner() {
    auto asked = reader.ask<msg<wire::VariableSnapshot>>(owner, make_read_variable());
    settle();
    return value_of(asked.value());
  }

  void update(const gradient& by) {
    std::vector pushes{make_push_gradient({}, by)};
    static_cast<void>(
      reader.ask<msg<wire::UpdateApplied>>(owner, make_apply_update(step++, 0, pushes)));
    settle();
  }

  void update_rows(const std::vector<int64_t>& rows) { update(rows_of_ones(rows, extents)); }

  void let_go() {
    seen->are_kept = false;
    caf::anon_send(post, script{[seen = seen](caf::event_based_actor*) {
                     for (auto& deliver : std::exchange(seen->kept, {}))
                       deliver();
                   }});
    settle();
  }

  const shape extents{10, 3};
  std::shared_ptr<letters> seen = std::make_shared<letters>();
  variable_owner_actor owner;
  caf::actor post;
  variable_owner_actor cache;
  puppet reader{world};
  uint64_t step = 0;
};

using kinds = std::vector<change_kind>;
constexpr auto everything = wire::Gradient::DENSE;
constexpr auto nothing = wire::Gradient::NONE;
constexpr auto some_rows = wire::Gradient::SPARSE;

} // namespace

TEST_SUITE("actors/replication/variable_cache") {
  TEST_CASE_FIXTURE(reading, "a value that is still in use does not travel again") {
    auto first = read();
    auto second = read();
    CHECK(first.data() == second.data());
    CHECK(seen->told == kinds{everything, nothing});
  }

  TEST_CASE_FIXTURE(reading, "a value that is no longer in use is not kept") {
    static_cast<void>(read());
    static_cast<void>(read());
    CHECK(seen->known == std::vector<uint64_t>{0, 0});
    CHECK(seen->told == kinds{everything, everything});
  }

  TEST_CASE_FIXTURE(reading, "readers that come together are told by one answer") {
    seen->are_kept = true;
    auto first = ask_for_it();
    settle();
    auto second = ask_for_it();
    auto third = ask_for_it();
    settle();
    CHECK(seen->known.size() == 1);
    let_go();
    CHECK(seen->told == kinds{everything, nothing});
    CHECK(value_of(first.value()).data() == value_of(second.value()).data());
    CHECK(second.value() == third.value());
  }

  TEST_CASE_FIXTURE(reading, "no reader is told a value of before its question") {
    seen->are_kept = true;
    auto early = ask_for_it();
    settle(); // the owner has answered, and the answer is on its way
    update(filled(dtype::f32, extents, -1));
    auto late = ask_for_it();
    settle();
    let_go();
    CHECK(numbers_of(value_of(early.value())).front() == 0);
    CHECK(numbers_of(value_of(late.value())).front() == 1);
  }

  TEST_CASE_FIXTURE(reading, "only the changed rows of a table travel") {
    for (const auto& rows : std::vector<std::vector<int64_t>>{{1}, {2, 3}, {3}, {9, 9}, {0}, {4}}) {
      update_rows(rows);
      CHECK(numbers_of(read()) == numbers_of(held_by_owner()));
    }
    CHECK(seen->told == kinds{everything, some_rows, some_rows, some_rows, some_rows, some_rows});
    CHECK(numbers_of(read())[9 * 3] == -2);
  }

  TEST_CASE_FIXTURE(reading,
                    "a reader that asks seldom is told the rows of all changes, or everything") {
    update_rows({1});
    static_cast<void>(read());
    update_rows({2});
    update_rows({3});
    CHECK(numbers_of(read()) == numbers_of(held_by_owner()));
    CHECK(seen->told.back() == some_rows);
    for (int64_t row = 0; row < 10; ++row)
      update_rows({row});
    CHECK(numbers_of(read()) == numbers_of(held_by_owner()));
    CHECK(seen->told.back() == everything);
  }

  TEST_CASE_FIXTURE(reading, "a value that a reader holds stays as it was") {
    update_rows({1});
    auto before = read();
    update_rows({1});
    auto after = read();
    CHECK(numbers_of(before)[3] == -1);
    CHECK(numbers_of(after)[3] == -2);
  }

  TEST_CASE_FIXTURE(reading, "a change by hand goes to the owner, and is read") {
    auto held = read();
    auto changing = reader.ask<msg<wire::VariableSnapshot>>(
      cache, make_change_variable(static_cast<uint8_t>(change::assign),
                                  gradient{filled(dtype::f32, extents, 5)}));
    settle();
    CHECK(numbers_of(value_of(changing.value())).front() == 5);
    CHECK(numbers_of(read()).front() == 5);
    CHECK(numbers_of(held).front() == 0);
  }

  TEST_CASE_FIXTURE(reading, "readers are told that the owner is gone, whenever they ask") {
    seen->are_kept = true;
    auto asked = ask_for_it();
    auto waits = ask_for_it();
    settle();
    caf::anon_send_exit(post, caf::exit_reason::kill);
    settle();
    CHECK(asked.error().code == errc::unavailable);
    auto late = ask_for_it();
    settle();
    CHECK(late.error() == asked.error());
    CHECK(waits.error() == asked.error());
  }

  TEST_CASE_FIXTURE(reading, "rows that the variable has not are malformed, and are not read") {
    auto owner_says = [&](const variable_changes& what) {
      variable_cache_state state;
      auto before = make_variable_snapshot(0, zeros(extents));
      auto taken = state.take(before, make_variable_changes(what));
      return taken ? errc::none : taken.error().code;
    };
    CHECK(owner_says({1, 2, rows_of_ones({9}, extents), true}) == errc::none);
    CHECK(owner_says({1, 2, rows_of_ones({10}, extents), true}) == errc::malformed);
    variable_cache_state state;
    CHECK(state.take({}, make_variable_changes({1, 2, std::nullopt, true})).error().code
          == errc::malformed);
  }
}

} // namespace variable_cache_test
