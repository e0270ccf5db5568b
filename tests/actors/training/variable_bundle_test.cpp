// SPDX-License-Identifier: Apache-2.0
// Goal: variables that are read and changed together come to what they would come to apart, by one
// request of their device, and owners and bundle see each other's changes. Method: two owners on a
// device that counts its ends and may stand still, and a puppet for all that ask.
#include "actors/gpu/cpu_device.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/training/accumulator.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/variable_bundle.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <utility>
#include <vector>

namespace variable_bundle_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const variable_form a{"a", dtype::f32, {1000}};
const variable_form b{"b", dtype::f32, {3}};

float first_of(const tensor& values) {
  return values.values<float>().front();
}

/// Variables 'a' and 'b', all 5, trained by subtraction.
struct bundled_variables : deterministic_world {
  explicit bundled_variables(uint64_t seed = 0) : deterministic_world(seed) {
    bundle_config config{.name = "'a' and 1 more", .device = holding, .world = &world};
    for (const auto& form : {a, b}) {
      owners.push_back(spawn(
        variable_owner, variable_owner_config{.variable = form,
                                              .initial = filled(form.type, form.extents, 5),
                                              .world = &world,
                                              .places = {{.device = holding, .owned = device}}}));
      ask<msg<wire::OptimizerInUse>>(
        owners.back(), make_use_optimizer(to_settings({rules::sgd{.learning_rate = 1}})));
      auto lent = ask<lent_variable>(owners.back(), lend_variable{device->where()}).value();
      CHECK(lent.device == holding);
      config.variables.push_back(lent.variable);
    }
    bundle = spawn(variable_bundle, config);
    collector = spawn(
      accumulator,
      accumulator_config{
        .variable = a, .world = &world, .bundle = bundle, .behind = {b}, .place = device->where()});
    for (const auto& owner : owners)
      caf::anon_send(owner, use_bundle{bundle});
    settle();
    ends = 0;
  }

  ~bundled_variables() {
    go_on();
    caf::anon_send_exit(collector, caf::exit_reason::user_shutdown);
    for (const auto& owner : owners)
      caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(holding, caf::exit_reason::user_shutdown);
  }

  template <class Reply, class Handle, class Message>
  answer<Reply> ask(const Handle& whom, const Message& message) {
    auto result = trainer.ask<Reply>(whom, message);
    settle();
    return result;
  }

  /// A replica's gradients: all numbers of both are `value`.
  answer<msg<wire::PushReply>> push(uint32_t replica, double value, uint64_t local_step = 0) {
    push_bundle pushed;
    for (const auto& form : {a, b})
      pushed.gradients.push_back(make_push_gradient({.replica = replica, .local_step = local_step},
                                                    filled(form.type, form.extents, value)));
    return ask<msg<wire::PushReply>>(collector, pushed);
  }

  answer<msg<wire::UpdateApplied>> take(uint32_t required) {
    return ask<msg<wire::UpdateApplied>>(collector, make_take_gradient(required));
  }

  /// The numbers of both, as the bundle gives them: each has only one.
  std::vector<float> values() {
    auto read = ask<bundle_values>(bundle, read_bundle{});
    return mapped(read.value().values,
                  [&](const auto& value) { return first_of(*device->stream(0).to_host(value)); });
  }

  /// That of one of them, as its owner gives it.
  float owned(size_t which) {
    auto read = ask<msg<wire::VariableSnapshot>>(owners[which], make_read_variable());
    return first_of(read_tensor(read.value().reader().getValue(), read.value().owner()));
  }

  void hold() {
    device->stream(0).hold([this](std::function<void()> let_go) { held = std::move(let_go); });
  }

  void go_on() {
    if (auto let_go = std::exchange(held, {})) let_go();
    settle();
  }

  int ends = 0; ///< How often the device said that something is done.
  std::function<void()> held;
  std::shared_ptr<cpu_device> device = std::make_shared<cpu_device>(
    0, cpu_device_options{.plays_gpu = true, .ready = [this](const std::function<void()>& done) {
                            ++ends;
                            done();
                          }});
  gpu_actor holding = spawn(gpu, gpu_config{device, std::chrono::seconds{8}, &world});
  puppet trainer{world};
  std::vector<replicated_owner_actor> owners;
  bundle_actor bundle;
  bundle_accumulator_actor collector;
};

using numbers = std::vector<float>;

} // namespace

TEST_SUITE("actors/training/variable_bundle") {
  TEST_CASE("an update is measured without being made, and then made by a part of the mean") {
    bundled_variables two;
    apply_bundle update{.divisor = 2, .hold = true};
    for (double value : {1, 3}) {
      auto& pushed = update.gradients.emplace_back();
      for (const auto& form : {a, b})
        pushed.gradients.push_back(make_push_gradient({}, filled(form.type, form.extents, value)));
    }
    auto measured = two.ask<msg<wire::UpdateApplied>>(two.bundle, update);
    auto elements
      = [](const variable_form& of) { return static_cast<double>(of.extents.element_count()); };
    CHECK(read_update_applied(measured.value().reader()).squared_norms
          == std::vector<double>{4 * elements(a), 4 * elements(b)});
    CHECK(two.values() == numbers{5, 5});
    auto release = make_release_update(0.5);
    CHECK(two.ask<msg<wire::UpdateApplied>>(two.bundle, release).has_come());
    CHECK(two.values() == numbers{4, 4});
    CHECK(two.ask<msg<wire::UpdateApplied>>(two.bundle, release).error()
          == error{errc::failed_precondition, "variables 'a' and 1 more hold no update"});
    two.device->lose({errc::unavailable, "CUDA error 700"});
    CHECK(two.ask<msg<wire::UpdateApplied>>(two.bundle, update).error().code == errc::unavailable);
  }

  TEST_CASE("an update of all variables is made by the optimizer that it names") {
    bundled_variables two;
    auto update_by = [&](double learning_rate, bool hold) {
      apply_bundle update{.divisor = 1, .hold = hold};
      update.optimizer
        = make_use_optimizer(to_settings({rules::sgd{.learning_rate = learning_rate}}));
      auto& pushed = update.gradients.emplace_back();
      for (const auto& form : {a, b})
        pushed.gradients.push_back(make_push_gradient({}, filled(form.type, form.extents, 1)));
      CHECK(two.ask<msg<wire::UpdateApplied>>(two.bundle, update).has_come());
    };
    update_by(2, false);
    CHECK(two.values() == numbers{3, 3});
    update_by(4, true);
    for (const auto& owner : two.owners)
      two.ask<msg<wire::OptimizerInUse>>(
        owner, make_use_optimizer(to_settings({rules::sgd{.learning_rate = 100}})));
    CHECK(two.ask<msg<wire::UpdateApplied>>(two.bundle, make_release_update(1)).has_come());
    CHECK(two.values() == numbers{-1, -1});
  }

  TEST_CASE("a step changes all variables by the mean of their own gradients, with one end") {
    bundled_variables two;
    CHECK(two.values() == numbers{5, 5});
    two.ends = 0;
    two.push(0, 1);
    two.push(1, 3);
    auto applied = two.take(2);
    CHECK(applied.value().reader().getStep() == 0);
    CHECK(two.ends == 1);
    CHECK(two.values() == numbers{3, 3});
    CHECK(two.ends == 1); // it knew them
    CHECK(two.owned(0) == 3);
    CHECK(two.owned(1) == 3);
  }

  TEST_CASE("gradients are added in the order of replicas, whichever came first") {
    bundled_variables two;
    two.push(2, 3);
    two.push(0, 1e9);
    two.push(1, -1e9);
    CHECK(two.take(3).has_come());
    CHECK(two.values() == numbers{4, 4}); // 3 + 1e9 would have been 1e9
  }

  TEST_CASE("a bundle answers when the update is queued, and gradients stay until it is done") {
    bundled_variables two;
    two.hold();
    std::weak_ptr<const void> memory;
    {
      auto there = *two.device->stream(0).to_device(filled(a.type, a.extents, 1));
      memory = there.owner();
      push_bundle pushed{
        {make_push_gradient({}, there), make_push_gradient({}, filled(b.type, b.extents, 1))}};
      two.ask<msg<wire::PushReply>>(two.collector, pushed);
    }
    CHECK(two.take(1).has_come());
    CHECK_FALSE(memory.expired());
    two.go_on();
    CHECK(memory.expired());
    CHECK(two.values() == numbers{4, 4});
  }

  TEST_CASE("updates write where the variables lie, unless a reader holds them") {
    bundled_variables two;
    auto read
      = [&two] { return two.ask<bundle_values>(two.bundle, read_bundle{}).value().values.front(); };
    auto update = [&two](uint64_t step) {
      two.push(0, 1, step);
      CHECK(two.take(1).has_come());
    };
    update(0); // it has brought them to the device
    const auto* address = read().data();
    update(1);
    CHECK(read().data() == address);
    auto held = read();
    update(2);
    CHECK(read().data() != address);
    CHECK(first_of(*two.device->stream(0).to_host(held)) == 3);
  }

  TEST_CASE("a variable that was restored without its slots gets them with the next update") {
    bundled_variables two;
    auto saved = two.ask<msg<wire::VariableState>>(two.owners[1], make_read_state()).value();
    auto state = read_state(saved.reader(), saved.owner());
    state.optimizer.clear();
    const update_plan momentum{.rule = rules::momentum{.learning_rate = 1, .decay = 0.5}};
    for (const auto& owner : two.owners)
      two.ask<msg<wire::OptimizerInUse>>(owner, make_use_optimizer(to_settings(momentum)));
    two.push(0, 1);
    CHECK(two.take(1).has_come());
    CHECK(two.values() == numbers{4, 4});
    CHECK(two.ask<msg<wire::OptimizerInUse>>(two.owners[1], make_restore_state(state)).has_come());
    two.push(0, 1, 1);
    CHECK(two.take(1).has_come());
    CHECK(two.values() == numbers{2.5, 4});
  }

  TEST_CASE("gradients of a past step are dropped all together") {
    bundled_variables two;
    two.push(0, 1);
    CHECK(two.take(1).has_come());
    auto late = two.push(1, 1, 0);
    CHECK(late.value().reader().getVerdict() == wire::Verdict::STALE);
    auto fresh = two.push(1, 1, 1);
    CHECK(fresh.value().reader().getVerdict() == wire::Verdict::ACCEPTED);
  }

  TEST_CASE("gradients that are too few, or do not fit, are refused by name, and change nothing") {
    bundled_variables two;
    auto gradient = make_push_gradient({}, filled(a.type, a.extents, 1));
    auto few = two.ask<msg<wire::PushReply>>(two.collector, push_bundle{{gradient}});
    CHECK(few.error()
          == error{errc::invalid_argument,
                   "variable 'a' and those updated with it are 2, and 1 gradients were given; "
                   "give one for each, in one call of apply_gradients"});
    auto alone = two.ask<msg<wire::PushReply>>(two.collector, gradient);
    CHECK(alone.error().code == errc::invalid_argument);
    auto wrong = two.ask<msg<wire::PushReply>>(two.collector, push_bundle{{gradient, gradient}});
    CHECK(wrong.error().message
          == "Shape mismatch: variable 'b' has shape [3], its gradient's is [1000]");
    auto measured
      = two.ask<msg<wire::UpdateApplied>>(two.collector, make_take_gradient(1, false, true));
    CHECK(measured.error().code == errc::unimplemented);
    CHECK(two.values() == numbers{5, 5});
  }

  TEST_CASE("the next step reads, and begins with, the changes that an owner made by hand") {
    bundled_variables two;
    CHECK(two.values() == numbers{5, 5});
    auto assign = make_change_variable(static_cast<uint8_t>(change::assign),
                                       filled(b.type, b.extents, 7), whole_variable);
    CHECK(two.ask<msg<wire::VariableSnapshot>>(two.owners[1], assign).has_come());
    CHECK(two.values() == numbers{5, 7});
    two.push(0, 1);
    CHECK(two.take(1).has_come());
    CHECK(two.values() == numbers{4, 6});
  }

  TEST_CASE("a reader behind an update sees it under every schedule") {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      bundled_variables two{seed};
      two.push(0, 1);
      auto applied
        = two.trainer.ask<msg<wire::UpdateApplied>>(two.collector, make_take_gradient(1));
      two.settle();
      CHECK(applied.has_come());
      CHECK(two.values() == numbers{4, 4});
    }
  }

  TEST_CASE("a lost device is the reason that all are told, however late they ask") {
    bundled_variables two;
    two.device->lose({errc::unavailable, "CUDA error 700"});
    two.push(0, 1);
    const error reason{errc::unavailable, "gpu:0 is lost: CUDA error 700"};
    CHECK(two.take(1).error() == reason);
    CHECK(two.ask<bundle_values>(two.bundle, read_bundle{}).error() == reason);
  }

  TEST_CASE(
    "a bundle ends behind what it asked for, and owners answer readers by themselves then") {
    bundled_variables two;
    auto there = make_read_variable(whole_variable, two.device->where());
    CHECK(two.ask<msg<wire::VariableSnapshot>>(two.owners[0], there).has_come());
    CHECK(two.ends == 1);
    two.push(0, 1);
    CHECK(two.take(1).has_come());
    caf::anon_send_exit(two.collector, caf::exit_reason::user_shutdown);
    two.settle();
    two.ends = 0;
    CHECK(two.ask<msg<wire::VariableSnapshot>>(two.owners[0], there).has_come());
    CHECK(two.ends == 0);
    CHECK(two.owned(0) == 4);
  }
}

} // namespace variable_bundle_test
