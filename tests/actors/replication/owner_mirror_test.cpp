// SPDX-License-Identifier: Apache-2.0
// Goal: a mirror holds what its owner holds, to the last bit, whenever a caller has been told of a
// change. Method: both in one virtual world, asked for all they hold after each kind of change.
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/variable_owner.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <caf/send.hpp>

#include <cstring>

namespace owner_mirror_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const shape form{50, 4};

tensor noise(uint64_t number) {
  random_stream stream{random_key{1, "noise", 0, number}};
  auto values = zeros(form);
  for (auto& value : values.mutable_values<float>())
    value = static_cast<float>(stream.uniform()) - 0.5F;
  return values;
}

gradient two_rows() {
  auto values = zeros({2, 4});
  std::ranges::fill(values.mutable_values<float>(), 0.25F);
  auto rows = zeros({2}, dtype::i64);
  rows.mutable_values<int64_t>()[1] = 7;
  return indexed_slices{rows, values, form};
}

bool are_equal(const tensor& a, const tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool are_equal(const variable_payload& a, const variable_payload& b) {
  if (a.version != b.version || a.optimizer != b.optimizer || a.slots_since != b.slots_since)
    return false;
  if (!are_equal(a.value, b.value) || a.slots.size() != b.slots.size()) return false;
  for (size_t i = 0; i < a.slots.size(); ++i)
    if (!are_equal(a.slots[i].value, b.slots[i].value)) return false;
  if (a.average.has_value() != b.average.has_value()) return false;
  return !a.average || are_equal(a.average->value, b.average->value);
}

/// A directory that answers owners that miss their mirrors, at once or when the test wants it to,
/// and no others.
class played_directory {
public:
  explicit played_directory(troupe::world& world)
    : actor_(world.system().spawn([told = told_](caf::event_based_actor* self) -> caf::behavior {
        return {[self, told](const msg<wire::OfferMirror>& offer) {
          auto is_missed = offer.reader().getIsMissed();
          (is_missed ? told->misses : told->offers).push_back(offer);
          told->waiting.push_back(self->make_response_promise<promise>());
          if (is_missed && !told->is_in_doubt) told->waiting.back().deliver(make_owner_followed());
          return told->waiting.back();
        }};
      })) {}

  played_directory(const played_directory&) = delete;
  played_directory& operator=(const played_directory&) = delete;

  ~played_directory() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  [[nodiscard]] directory_actor actor() const { return caf::actor_cast<directory_actor>(actor_); }

  [[nodiscard]] const std::vector<msg<wire::OfferMirror>>& offers() const { return told_->offers; }

  /// Messages of owners that have lost their mirrors.
  [[nodiscard]] const std::vector<msg<wire::OfferMirror>>& misses() const { return told_->misses; }

  void doubt() { told_->is_in_doubt = true; }

  void answer() { told_->waiting.back().deliver(make_owner_followed()); }

  /// The last one, or that of the index.
  void refuse() { refuse(told_->waiting.size() - 1); }

  void refuse(size_t index) {
    told_->waiting[index].deliver(to_caf({errc::cancelled, "'w' is held by another"}));
  }

private:
  using promise = caf::typed_response_promise<msg<wire::OwnerFollowed>>;

  struct words {
    std::vector<msg<wire::OfferMirror>> offers;
    std::vector<msg<wire::OfferMirror>> misses;
    std::vector<promise> waiting;
    bool is_in_doubt = false;
  };

  std::shared_ptr<words> told_ = std::make_shared<words>();
  caf::actor actor_;
};

/// A mirror that makes changes when the test wants it to.
class slow_mirror {
public:
  explicit slow_mirror(troupe::world& world)
    : actor_(world.system().spawn([told = told_](caf::event_based_actor* self) -> caf::behavior {
        return {[](const msg<wire::MirrorState>&) { return make_update_applied({}); },
                [self, told](const msg<wire::ChangeVariable>&) {
                  told->push_back(self->make_response_promise<promise>());
                  return told->back();
                }};
      })) {}

  slow_mirror(const slow_mirror&) = delete;
  slow_mirror& operator=(const slow_mirror&) = delete;

  ~slow_mirror() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  [[nodiscard]] replicated_owner_actor actor() const {
    return caf::actor_cast<replicated_owner_actor>(actor_);
  }

  /// How many changes it was told of.
  [[nodiscard]] size_t told() const { return told_->size(); }

  /// It makes the last change that it was told of.
  void make() { told_->back().deliver(make_variable_snapshot(0, zeros({1}))); }

private:
  using promise = caf::typed_response_promise<msg<wire::VariableSnapshot>>;

  std::shared_ptr<std::vector<promise>> told_ = std::make_shared<std::vector<promise>>();
  caf::actor actor_;
};

/// An owner of a number, a mirror that takes its time, and a trainer.
struct slowly_replicated : deterministic_world {
  slowly_replicated() {
    trainer.tell(owner, use_mirror{mirror.actor()});
    settle();
  }

  ~slowly_replicated() { caf::anon_send_exit(owner, caf::exit_reason::user_shutdown); }

  answer<msg<wire::VariableSnapshot>> add_one(const request_id& id) {
    auto addition = make_change_variable(static_cast<uint8_t>(change::add), make_tensor({1}, {1}));
    auto result = trainer.ask<msg<wire::VariableSnapshot>>(owner, numbered(addition, id));
    settle();
    return result;
  }

  void make() {
    mirror.make();
    settle();
  }

  static float number_in(const answer<msg<wire::VariableSnapshot>>& of) {
    auto said = of.value();
    return read_tensor(said.reader().getValue(), said.owner()).values<float>()[0];
  }

  slow_mirror mirror{world};
  puppet trainer{world};
  replicated_owner_actor owner = spawn(
    variable_owner, variable_owner_config{
                      .variable = {"n", dtype::f32, {1}}, .initial = zeros({1}), .world = &world});
};

/// An owner, its mirror, and a trainer that talks to both.
struct replicated : deterministic_world {
  replicated()
    : owner(spawn(variable_owner, config())), mirror(spawn(variable_owner, config(owner))) {
    trainer.tell(owner, use_mirror{mirror});
    settle();
  }

  ~replicated() {
    caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(mirror, caf::exit_reason::user_shutdown);
    owner = mirror = nullptr;
    settle();
  }

  variable_owner_config config(replicated_owner_actor mirrored = {}) {
    return {.variable = {"w", dtype::f32, form},
            .initial = noise(0),
            .world = &world,
            .mirrored = std::move(mirrored),
            .directory = known.actor(),
            .variable_index = 3};
  }

  template <class Reply, class Message>
  answer<msg<Reply>> ask(const replicated_owner_actor& whom, const Message& message) {
    auto result = trainer.ask<msg<Reply>>(whom, message);
    settle();
    return result;
  }

  void use(const update_plan& plan) {
    static_cast<void>(
      ask<wire::OptimizerInUse>(owner, make_use_optimizer(to_settings(plan))).value());
  }

  static msg<wire::ApplyUpdate> update(uint64_t step, const std::vector<gradient>& gradients,
                                       bool hold = false) {
    std::vector<msg<wire::PushGradient>> pushes;
    std::vector<arrival> arrivals;
    for (const auto& value : gradients) {
      origin from{
        .replica = static_cast<uint32_t>(pushes.size()), .local_step = step, .iteration = step};
      pushes.push_back(make_push_gradient(from, value));
      arrivals.push_back({from, {}, step});
    }
    return make_apply_update(step, 0, pushes, hold, false, make_taken_gradient(step, arrivals, {}));
  }

  answer<msg<wire::UpdateApplied>> apply(uint64_t step, const std::vector<gradient>& gradients,
                                         bool hold = false) {
    return ask<wire::UpdateApplied>(owner, update(step, gradients, hold));
  }

  // A change that may be asked for again.
  static msg<wire::ChangeVariable> addition(const tensor& value, const request_id& id) {
    return numbered(make_change_variable(static_cast<uint8_t>(change::add), value), id);
  }

  answer<msg<wire::VariableSnapshot>> add(const replicated_owner_actor& whom, const tensor& value,
                                          const request_id& id) {
    return ask<wire::VariableSnapshot>(whom, addition(value, id));
  }

  variable_payload state_of(const replicated_owner_actor& whom) {
    auto state = ask<wire::VariableState>(whom, make_read_state()).value();
    return read_state(state.reader(), state.owner());
  }

  // Sends `message` to the second actor as if the first had sent it.
  template <class Message>
  void tell_as(const replicated_owner_actor& who, const replicated_owner_actor& whom,
               const Message& message) {
    whom->enqueue(caf::make_mailbox_element(caf::actor_cast<caf::strong_actor_ptr>(who),
                                            caf::make_message_id(), {}, message),
                  nullptr);
    settle();
  }

  bool are_alike() { return are_equal(state_of(owner), state_of(mirror)); }

  std::optional<closed_step> take_over() {
    auto word = ask<wire::TookOver>(mirror, make_take_over(1)).value();
    return read_closed_step(word.reader().getClosed());
  }

  puppet trainer{world};
  played_directory known{world};
  replicated_owner_actor owner;
  replicated_owner_actor mirror;
};

update_plan adam_with_average() {
  return {.rule = rules::adam{.learning_rate = 0.01}, .average = moving_average{.decay = 0.9}};
}

} // namespace

TEST_SUITE("actors/replication/owner_mirror") {
  TEST_CASE_FIXTURE(replicated, "a mirror repeats updates, of few gradients and of many") {
    use(adam_with_average());
    for (uint64_t step = 0; step < 6; ++step) {
      std::vector<gradient> gradients(step % 2 == 0 ? 1 : 9, noise(step));
      if (step > 3) gradients = {two_rows()};
      CHECK(apply(step, gradients).value().reader().getVersion() == step + 1);
      CHECK(state_of(mirror).version == step + 1);
      CHECK(are_alike());
    }
  }

  TEST_CASE_FIXTURE(replicated, "a mirror holds an update as long as its owner does") {
    use({.rule = rules::momentum{.learning_rate = 0.1}});
    CHECK(apply(0, {noise(1), noise(2)}, true).has_come());
    CHECK(state_of(mirror).version == 0);
    static_cast<void>(ask<wire::UpdateApplied>(owner, make_release_update(0.5)).value());
    CHECK(state_of(mirror).version == 1);
    CHECK(are_alike());
  }

  TEST_CASE_FIXTURE(replicated, "a mirror takes the optimizer that an update names") {
    const std::vector<msg<wire::PushGradient>> pushes{make_push_gradient({}, noise(1))};
    for (const auto& plan : {adam_with_average(), update_plan{.rule = rules::momentum{}}}) {
      auto named = make_use_optimizer(to_settings(plan));
      for (int i = 0; i < 2; ++i) {
        auto update = make_apply_update_of(named, 1, pushes, false);
        CHECK(ask<wire::UpdateApplied>(owner, update).has_come());
        CHECK(are_alike());
        CHECK(state_of(mirror).optimizer == name_of(plan.rule));
      }
    }
  }

  TEST_CASE_FIXTURE(replicated, "changes by hand and restored states are repeated, too") {
    use(adam_with_average());
    CHECK(apply(0, {noise(1)}).has_come());
    auto saved = state_of(owner);
    static_cast<void>(ask<wire::VariableSnapshot>(
                        owner, make_change_variable(static_cast<uint8_t>(change::add), noise(3)))
                        .value());
    CHECK(are_alike());
    CHECK(apply(1, {noise(2)}).has_come());
    static_cast<void>(ask<wire::OptimizerInUse>(owner, make_restore_state(saved)).value());
    CHECK(are_alike());
    CHECK(are_equal(state_of(mirror), saved));
  }

  TEST_CASE_FIXTURE(replicated, "a mirror learns the changes from before there was a mirror") {
    use(adam_with_average());
    CHECK(apply(0, {noise(1)}).has_come());
    auto later = spawn(variable_owner, config(owner));
    trainer.tell(owner, use_mirror{later});
    settle();
    CHECK(are_equal(state_of(owner), state_of(later)));
    CHECK(apply(1, {noise(2)}).has_come());
    CHECK(are_equal(state_of(owner), state_of(later)));
    caf::anon_send_exit(later, caf::exit_reason::user_shutdown);
  }

  TEST_CASE_FIXTURE(replicated, "a mirror that asks twice is told everything twice") {
    use(adam_with_average());
    CHECK(apply(0, {noise(1)}).has_come());
    for (int i = 0; i < 2; ++i)
      caf::send_as(mirror, owner, make_repeat_changes(1));
    settle();
    CHECK(apply(1, {noise(2)}).has_come());
    CHECK(are_alike());
  }

  TEST_CASE_FIXTURE(replicated, "an owner that has lost its variable takes no mirror") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK(apply(0, {noise(1)}).has_come());
    take_over();
    CHECK(apply(1, {noise(2)}).error().code == errc::unavailable);
    trainer.tell(owner, use_mirror{mirror});
    settle();
    CHECK(state_of(mirror).version == 1);
  }

  TEST_CASE_FIXTURE(replicated, "a mirror that takes over says what it has come to") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK_FALSE(take_over());
    CHECK(apply(4, {noise(1), noise(2)}).error().code == errc::unavailable);
  }

  TEST_CASE_FIXTURE(replicated, "it tells of a held update its measure, then its result") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK(apply(4, {noise(1), noise(2)}, true).has_come());
    auto closed = take_over();
    REQUIRE(closed);
    CHECK(closed->step == 4);
    CHECK(closed->accepted.size() == 2);
    CHECK(closed->applied.squared_norm > 0);
    CHECK_FALSE(closed->released);
    static_cast<void>(ask<wire::UpdateApplied>(mirror, make_release_update(1)).value());
    closed = take_over();
    REQUIRE(closed->released);
    CHECK(closed->released->version == 1);
  }

  TEST_CASE_FIXTURE(replicated, "a mirror knows the last gradient of each replica that counts") {
    use({.rule = rules::sgd{}});
    apply(0, {noise(1), noise(2), noise(3)}); // tells what has come of them
    apply(1, {two_rows(), two_rows()});       // tells the gradients
    apply(2, {noise(4)}, true);
    auto closed = take_over();
    REQUIRE(closed);
    CHECK(closed->latest == std::vector<gradient_id>{{0, 2}, {1, 1}, {2, 0}});
  }

  TEST_CASE_FIXTURE(replicated, "once it has taken over it refuses its former owner alone") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK(apply(0, {noise(1)}).has_come());
    CHECK(take_over()->step == 0);
    auto refused = apply(1, {noise(2)}).error();
    CHECK(refused.code == errc::unavailable);
    CHECK(refused.message.find("its mirror has taken over") != std::string::npos);
    CHECK(state_of(mirror).version == 1);
    static_cast<void>(ask<wire::UpdateApplied>(mirror, update(1, {noise(2)})).value());
    CHECK(state_of(mirror).version == 2);
  }

  TEST_CASE_FIXTURE(replicated, "an owner that has begun a new life changes nothing") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK(apply(0, {noise(1)}).has_come());
    auto held = state_of(mirror);
    auto newcomer = spawn(variable_owner, config());
    trainer.tell(newcomer, use_mirror{mirror});
    settle();
    CHECK(are_equal(state_of(mirror), held));
    CHECK(take_over()->step == 0);
    auto another = spawn(variable_owner, config());
    trainer.tell(another, use_mirror{mirror});
    settle();
    CHECK(are_equal(state_of(mirror), held));
    for (const auto& one : {newcomer, another})
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  }

  TEST_CASE_FIXTURE(
    replicated, "a variable that was restored without its slots gets them with its next update") {
    auto fresh = state_of(owner);
    use(adam_with_average());
    CHECK(apply(0, {noise(1)}, true).has_come());
    static_cast<void>(ask<wire::OptimizerInUse>(owner, make_restore_state(fresh)).value());
    CHECK(ask<wire::UpdateApplied>(owner, make_release_update(1)).error()
          == error{errc::failed_precondition, "variable 'w' holds no update"});
    CHECK(apply(1, {noise(2)}).value().reader().getVersion() == 1);
    CHECK(state_of(owner).slots.size() == 2);
    CHECK(state_of(owner).average);
    CHECK(are_alike());
  }

  TEST_CASE_FIXTURE(replicated, "one that comes back learns all there is, and repeats the rest") {
    use(adam_with_average());
    CHECK(apply(0, {noise(1)}).has_come());
    caf::anon_send_exit(mirror, caf::exit_reason::kill);
    settle();
    CHECK(apply(1, {noise(2)}).has_come());
    CHECK(apply(2, {noise(3), noise(4)}, true).has_come());
    mirror = spawn(variable_owner, config());
    trainer.tell(mirror, come_back{owner, true});
    settle();
    REQUIRE(known.offers().size() == 1);
    tell_as(mirror, owner, make_repeat_changes(1));
    REQUIRE(known.offers().size() == 2);
    auto done = known.offers()[1].reader();
    CHECK(done.getVariable() == 3);
    CHECK(done.getIsMirrors());
    CHECK(done.getIsFilled());
    CHECK(are_alike());
    static_cast<void>(ask<wire::UpdateApplied>(owner, make_release_update(0.5)).value());
    CHECK(apply(3, {noise(5)}).value().reader().getVersion() == 4);
    CHECK(are_alike());
    CHECK(take_over()->step == 3);
  }

  TEST_CASE_FIXTURE(replicated, "one that comes back says what was closed before it came") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK(apply(4, {noise(1), noise(2)}).has_come());
    auto later = spawn(variable_owner, config());
    trainer.tell(later, come_back{owner, true});
    settle();
    auto early = ask<wire::TookOver>(later, make_take_over(1));
    CHECK(early.error().code == errc::failed_precondition);
    CHECK(early.error().message == "it was not told yet what 'w' is");
    tell_as(later, owner, make_repeat_changes(1));
    std::swap(mirror, later);
    auto closed = take_over();
    REQUIRE(closed);
    CHECK(closed->step == 4);
    CHECK(closed->accepted.size() == 2);
    caf::anon_send_exit(later, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated, "the answer about a mirror of a former life comes too late") {
    known.doubt();
    auto gone = spawn(variable_owner, config());
    auto newcomer = spawn(variable_owner, config());
    caf::anon_send_exit(gone, caf::exit_reason::kill);
    trainer.tell(newcomer, use_mirror{gone});
    settle();
    REQUIRE(known.misses().size() == 1);
    trainer.tell(newcomer, come_back{owner, true});
    settle();
    known.refuse(0);
    settle();
    tell_as(newcomer, owner, make_repeat_changes(1));
    std::swap(mirror, newcomer);
    static_cast<void>(take_over());
    CHECK(ask<wire::VariableSnapshot>(mirror, make_read_variable()).has_come());
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated, "an owner that repeats the changes of another takes no mirror") {
    auto newcomer = spawn(variable_owner, config(mirror));
    tell_as(newcomer, mirror, make_repeat_changes(1));
    use({.rule = rules::sgd{.learning_rate = 1}});
    CHECK(apply(0, {noise(1)}).has_come());
    CHECK(are_alike());
    CHECK(state_of(newcomer).version == 0);
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated, "nothing is read of a mirror, nor of an owner in a new life") {
    auto read_of = [this](const replicated_owner_actor& whom) {
      return ask<wire::VariableSnapshot>(whom, make_read_variable());
    };
    CHECK(read_of(owner).has_come());
    CHECK(read_of(mirror).error() == error{errc::unavailable, "'w' is held by another"});
    auto newcomer = spawn(variable_owner, config());
    trainer.tell(newcomer, use_mirror{mirror});
    auto early = trainer.ask<msg<wire::VariableSnapshot>>(newcomer, make_read_variable());
    settle();
    CHECK(early.error().code == errc::unavailable);
    CHECK(read_of(newcomer).error().code == errc::unavailable);
    static_cast<void>(take_over());
    CHECK(read_of(mirror).has_come());
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated, "nothing is changed by a mirror, nor by an owner in a new life") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    auto newcomer = spawn(variable_owner, config());
    trainer.tell(newcomer, come_back{owner, true});
    settle();
    auto held = state_of(mirror);
    for (const auto& whom : {mirror, newcomer}) {
      const error expected{errc::unavailable, "'w' is held by another"};
      CHECK(add(whom, noise(1), {1, 1, 1}).error() == expected);
      CHECK(ask<wire::UpdateApplied>(whom, update(0, {noise(1)})).error() == expected);
    }
    CHECK(are_equal(state_of(mirror), held));
    tell_as(newcomer, owner, make_repeat_changes(1));
    CHECK(apply(0, {noise(1)}).has_come());
    CHECK(are_equal(state_of(newcomer), state_of(owner)));
    caf::anon_send_exit(newcomer, caf::exit_reason::kill);
  }

  TEST_CASE_FIXTURE(replicated, "the mirror that takes over tells the accumulator the step") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    puppet collects{world};
    trainer.tell(mirror, use_accumulator{collects.as<accumulator_actor>()});
    CHECK(apply(4, {noise(1)}).has_come());
    CHECK(take_over()->step == 4);
    auto told = collects.heard<wire::SetStep>();
    REQUIRE(told.size() == 1);
    CHECK(told[0].reader().getStep() == 5);
  }

  TEST_CASE_FIXTURE(replicated, "an owner whose mirror is gone goes on alone") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    caf::anon_send_exit(mirror, caf::exit_reason::kill);
    settle();
    CHECK(apply(0, {noise(1)}).value().reader().getVersion() == 1);
    CHECK(apply(1, {noise(1)}).value().reader().getVersion() == 2);
    REQUIRE(known.misses().size() == 1);
    CHECK(known.misses()[0].reader().getVariable() == 3);
  }

  TEST_CASE_FIXTURE(replicated,
                    "one that misses its mirror answers when it is certain to be alone") {
    use({.rule = rules::sgd{.learning_rate = 1}});
    known.doubt();
    caf::anon_send_exit(mirror, caf::exit_reason::kill);
    settle();
    auto first = apply(0, {noise(1)});
    auto second = apply(1, {noise(1)});
    CHECK_FALSE(first.has_come());
    CHECK_FALSE(second.has_come());
    SUBCASE("it is") {
      known.answer();
      settle();
      CHECK(first.value().reader().getVersion() == 1);
      CHECK(second.value().reader().getVersion() == 2);
    }
    SUBCASE("it is not: the mirror holds the variable") {
      known.refuse();
      settle();
      CHECK(first.error().code == errc::unavailable);
      CHECK(second.error().message.find("its mirror has taken over") != std::string::npos);
      CHECK(ask<wire::VariableSnapshot>(owner, make_read_variable()).error().code
            == errc::unavailable);
    }
  }

  TEST_CASE_FIXTURE(replicated,
                    "a change that is asked for again is made once, at the owner or the mirror") {
    CHECK(add(owner, noise(1), {1, 1, 1}).has_come());
    auto held = state_of(owner);
    CHECK(add(owner, noise(1), {1, 1, 1}).has_come());
    CHECK(are_equal(state_of(owner), held));
    CHECK(are_alike());
    static_cast<void>(take_over());
    auto again = add(mirror, noise(1), {1, 1, 1}).value();
    CHECK(are_equal(read_tensor(again.reader().getValue(), again.owner()), held.value));
    CHECK(are_equal(state_of(mirror), held));
    CHECK(add(mirror, noise(2), {1, 2, 2}).has_come());
    CHECK_FALSE(are_equal(state_of(mirror), held));
    held = state_of(mirror);
    auto late = add(mirror, noise(1), {1, 1, 1}).error();
    CHECK(late.code == errc::cancelled);
    CHECK(late.message
          == "a change of 'w' is asked for again, which was answered before, or long ago");
    CHECK(are_equal(state_of(mirror), held));
  }

  TEST_CASE_FIXTURE(slowly_replicated, "a mirror is told once of what is asked for again, and each "
                                       "asking is answered when the mirror has made its change") {
    std::vector<answer<msg<wire::VariableSnapshot>>> first{add_one({1, 1, 1})};
    auto second = add_one({2, 1, 1});
    for (int i = 0; i < 3; ++i)
      first.push_back(add_one({1, 1, 1}));
    CHECK(mirror.told() == 1);
    CHECK_FALSE(first.back().has_come());
    make();
    for (const auto& each : first)
      CHECK(number_in(each) == 1);
    CHECK_FALSE(second.has_come());
    CHECK(number_in(add_one({1, 1, 1})) == 1);
    CHECK(mirror.told() == 2);
    make();
    CHECK(number_in(second) == 2);
    CHECK(mirror.told() == 2);
  }

  TEST_CASE_FIXTURE(replicated,
                    "an update that is asked for again is made once, of each asker by itself") {
    use(adam_with_average());
    std::vector pushes{make_push_gradient({}, noise(1))};
    auto mean = make_apply_update(0, 0, pushes);
    auto apply_as = [&](const replicated_owner_actor& whom, const request_id& id) {
      auto answer = ask<wire::UpdateApplied>(whom, numbered(mean, id)).value();
      return answer.reader().getVersion();
    };
    CHECK(apply_as(owner, {1, 1, 1}) == 1);
    CHECK(apply_as(owner, {2, 1, 1}) == 2);
    CHECK(are_alike());
    static_cast<void>(take_over());
    CHECK(apply_as(mirror, {1, 1, 1}) == 1);
    CHECK(apply_as(mirror, {2, 1, 1}) == 2);
    CHECK(apply_as(mirror, {2, 2, 2}) == 3);
    CHECK(state_of(mirror).version == 3);
  }

  TEST_CASE_FIXTURE(replicated,
                    "a change that was refused may be asked for again in the right form") {
    auto id = request_id{1, 1, 1};
    CHECK(add(owner, zeros({3}), id).error().code == errc::invalid_argument);
    CHECK(add(owner, noise(1), id).has_come());
    CHECK(are_alike());
  }

  TEST_CASE_FIXTURE(replicated, "one that comes back learns what may be asked for again") {
    CHECK(add(owner, noise(1), {1, 1, 1}).has_come());
    caf::anon_send_exit(mirror, caf::exit_reason::kill);
    settle();
    mirror = spawn(variable_owner, config());
    trainer.tell(mirror, come_back{owner, true});
    settle();
    tell_as(mirror, owner, make_repeat_changes(1));
    static_cast<void>(take_over());
    auto held = state_of(mirror);
    CHECK(add(mirror, noise(1), {1, 1, 1}).has_come());
    CHECK(are_equal(state_of(mirror), held));
  }

  TEST_CASE_FIXTURE(replicated, "a change that the mirror may not have is not read") {
    known.doubt();
    caf::anon_send_exit(mirror, caf::exit_reason::kill);
    settle();
    auto before = ask<wire::VariableSnapshot>(owner, make_read_variable());
    CHECK(before.has_come());
    auto changed = add(owner, noise(1), {1, 1, 1});
    auto read = ask<wire::VariableSnapshot>(owner, make_read_variable());
    CHECK_FALSE(changed.has_come());
    CHECK_FALSE(read.has_come());
    SUBCASE("it is gone") {
      known.answer();
      settle();
      auto seen = read.value();
      auto made = changed.value();
      CHECK(are_equal(read_tensor(seen.reader().getValue(), seen.owner()),
                      read_tensor(made.reader().getValue(), made.owner())));
    }
    SUBCASE("it holds the variable") {
      known.refuse();
      settle();
      CHECK(read.error().code == errc::unavailable);
      CHECK(changed.error().code == errc::unavailable);
    }
  }

  TEST_CASE_FIXTURE(replicated, "an owner says which mirror it misses") {
    auto later = spawn(variable_owner, config());
    trainer.tell(later, come_back{owner, true});
    settle();
    tell_as(later, owner, make_repeat_changes(4));
    caf::anon_send_exit(later, caf::exit_reason::kill);
    settle();
    CHECK(add(owner, noise(1), {}).has_come());
    REQUIRE(known.misses().size() == 1);
    CHECK(known.misses()[0].reader().getMirror() == 4);
  }

  TEST_CASE_FIXTURE(replicated,
                    "an owner that may be in its first life asks, and stays what it is") {
    trainer.tell(owner, come_back{mirror, false, false});
    settle();
    REQUIRE(known.offers().size() == 1);
    known.refuse();
    settle();
    CHECK(add(owner, noise(1), {1, 1, 1}).has_come());
    CHECK(are_alike());
  }

  TEST_CASE_FIXTURE(replicated, "a mirror is not told of changes that its owner refuses") {
    auto refused = apply(0, {noise(1)}).error();
    CHECK(refused.code == errc::failed_precondition);
    CHECK(are_alike());
    CHECK(state_of(mirror).version == 0);
  }
}

} // namespace owner_mirror_test
