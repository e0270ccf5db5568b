// SPDX-License-Identifier: Apache-2.0
// Goal: a reader of a variable keeps what it read, and updates compute what the optimizers say.
// Method: addresses and numbers, seen through the owner's messages; numbers by hand and by a plain
// loop.
#include "actors/gpu/cpu_device.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/variable_owner.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace variable_owner_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// An owner and a trainer that talks to it.
struct ownership : deterministic_world {
  explicit ownership(const tensor& initial)
    : owner(spawn(variable_owner, variable_owner_config{
                                    {"w", initial.type(), initial.extents()}, initial, &world})) {}

  ~ownership() { caf::anon_send_exit(owner, caf::exit_reason::user_shutdown); }

  template <class Reply, class Message>
  answer<msg<Reply>> ask(const Message& message) {
    auto result = trainer.ask<msg<Reply>>(owner, message);
    settle();
    return result;
  }

  msg<wire::VariableSnapshot> snapshot() {
    return ask<wire::VariableSnapshot>(make_read_variable()).value();
  }

  /// The variable; the tensor holds the owner's memory.
  tensor read() {
    auto current = snapshot();
    return read_tensor(current.reader().getValue(), current.owner());
  }

  /// Where the variable lies; no reader holds it afterwards.
  const void* address() { return read().data(); }

  msg<wire::OptimizerInUse> use(const update_rule& rule,
                                const learning_rate_schedule& schedule = {}) {
    return use(update_plan{.rule = rule, .schedule = schedule});
  }

  msg<wire::OptimizerInUse> use(const update_plan& plan) {
    return ask<wire::OptimizerInUse>(make_use_optimizer(to_settings(plan))).value();
  }

  /// The moving average of that name; the tensor holds the owner's memory.
  tensor average(const std::string& name) {
    auto current = ask<wire::VariableSnapshot>(make_read_average(name)).value();
    return read_tensor(current.reader().getValue(), current.owner());
  }

  answer<msg<wire::UpdateApplied>> apply(const std::vector<gradient>& gradients,
                                         uint32_t divisor = 0) {
    std::vector<msg<wire::PushGradient>> pushes;
    for (const auto& value : gradients)
      pushes.push_back(
        make_push_gradient({.replica = static_cast<uint32_t>(pushes.size())}, value));
    return ask<wire::UpdateApplied>(make_apply_update(step++, divisor, pushes));
  }

  variable_owner_actor owner;
  puppet trainer{world};
  uint64_t step = 0;
};

template <class T>
std::vector<T> values_of(const tensor& from) {
  auto values = from.values<T>();
  return {values.begin(), values.end()};
}

std::vector<float> floats(const tensor& from) {
  return values_of<float>(from);
}

template <class T>
tensor random_tensor(size_t count, uint32_t index) {
  random_stream draw{random_key{1, "test", index}};
  tensor result{dtype_of<T>, {static_cast<int64_t>(count)}};
  for (auto& value : result.mutable_values<T>())
    value = static_cast<T>(draw.normal());
  return result;
}

/// The gradients' mean, and then the rule, element by element.
template <class T, class Rule>
void plain_update(Rule rule, uint64_t update_number, const std::vector<gradient>& gradients,
                  std::vector<T>& value, std::vector<std::vector<T>>& slots) {
  rule = std::get<Rule>(at_update(rule, update_number));
  const typename Rule::template for_elements<T> apply{rule};
  for (size_t i = 0; i < value.size(); ++i) {
    T sum = std::get<tensor>(gradients[0]).values<T>()[i];
    for (size_t k = 1; k < gradients.size(); ++k)
      sum += std::get<tensor>(gradients[k]).values<T>()[i];
    std::array<T, Rule::slot_names.size()> state{};
    for (size_t slot = 0; slot < state.size(); ++slot)
      state[slot] = slots[slot][i];
    value[i] = apply(value[i], sum / static_cast<T>(gradients.size()), state);
    for (size_t slot = 0; slot < state.size(); ++slot)
      slots[slot][i] = state[slot];
  }
}

indexed_slices slices(const std::vector<int64_t>& rows, const tensor& values, shape whole) {
  tensor indices{dtype::i64, {static_cast<int64_t>(rows.size())}};
  std::ranges::copy(rows, indices.mutable_values<int64_t>().begin());
  return {indices, values, std::move(whole)};
}

/// An owner of a variable on a device that stands still, and a replica's handle to that.
struct placed_ownership : deterministic_world {
  explicit placed_ownership(uint64_t seed = 0) : deterministic_world(seed) {
    spawn_owner();
    ask<wire::OptimizerInUse>(make_use_optimizer({"sgd", {{"learning_rate", 1}}, {}}));
    device->stream(0).hold([this](std::function<void()> let_go) { go_on = std::move(let_go); });
  }

  ~placed_ownership() {
    for (const auto& one : std::initializer_list<caf::actor>{
           caf::actor_cast<caf::actor>(owner), caf::actor_cast<caf::actor>(holding),
           caf::actor_cast<caf::actor>(computing)})
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  }

  void spawn_owner() {
    owner = spawn(variable_owner,
                  variable_owner_config{.variable = {"w", dtype::f32, {1000}},
                                        .initial = filled(dtype::f32, {1000}, 5),
                                        .world = &world,
                                        .places = {{.device = holding, .owned = device}}});
  }

  template <class Reply, class Message>
  answer<msg<Reply>> ask(const Message& message) {
    auto result = trainer.ask<msg<Reply>>(owner, message);
    settle();
    return result;
  }

  answer<msg<wire::UpdateApplied>> apply(const tensor& gradient) {
    const std::vector<msg<wire::PushGradient>> pushes{make_push_gradient({}, gradient)};
    return ask<wire::UpdateApplied>(make_apply_update(0, 0, pushes));
  }

  /// @param where A replica computes.
  answer<msg<wire::VariableSnapshot>> read(troupe::device where) {
    return ask<wire::VariableSnapshot>(make_read_variable(whole_variable, where));
  }

  uint64_t asked = 0; ///< How often the device said that something is done.
  std::shared_ptr<cpu_device> device = std::make_shared<cpu_device>(
    0, cpu_device_options{.plays_gpu = true, .ready = [this](const std::function<void()>& done) {
                            ++asked;
                            done();
                          }});
  std::shared_ptr<cpu_device> replicas = std::make_shared<cpu_device>(*device, 1);
  gpu_actor holding = spawn(gpu, gpu_config{device, std::chrono::seconds{8}, &world});
  gpu_actor computing = spawn(gpu, gpu_config{replicas, std::chrono::seconds{60}, &world});
  replicated_owner_actor owner;
  std::function<void()> go_on;
  puppet trainer{world};
};

tensor value_of(const answer<msg<wire::VariableSnapshot>>& read) {
  return read_tensor(read.value().reader().getValue(), read.value().owner());
}

/// An owner of a variable that has a copy on each of two devices, of which the second one is small.
struct twofold_ownership : deterministic_world {
  twofold_ownership() {
    variable_owner_config config{
      .variable = {"w", dtype::f32, {4}}, .initial = filled(dtype::f32, {4}, 5), .world = &world};
    for (size_t i = 0; i < devices.size(); ++i) {
      devices[i] = std::make_shared<cpu_device>(
        static_cast<int>(i),
        cpu_device_options{.plays_gpu = true, .bytes_max = i == 0 ? size_t{4096} : size_t{512}});
      asked[i] = spawn(gpu, gpu_config{devices[i], std::chrono::seconds{8}, &world});
      config.places.push_back({.device = asked[i], .owned = devices[i]});
    }
    owner = spawn(variable_owner, config);
    ask<wire::OptimizerInUse>(make_use_optimizer({"sgd", {{"learning_rate", 1}}, {}}));
  }

  ~twofold_ownership() {
    caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
    for (const auto& one : asked)
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  }

  template <class Reply, class Message>
  answer<msg<Reply>> ask(const Message& message) {
    auto result = trainer.ask<msg<Reply>>(owner, message);
    settle();
    return result;
  }

  /// The values of the copy on a device.
  std::vector<float> copy_on(size_t i) {
    auto read
      = ask<wire::VariableSnapshot>(make_read_variable(whole_variable, devices[i]->where()));
    CHECK(value_of(read).device() == devices[i]->where());
    return floats(*devices[i]->stream(0).to_host(value_of(read)));
  }

  std::array<std::shared_ptr<cpu_device>, 2> devices;
  std::array<gpu_actor, 2> asked;
  replicated_owner_actor owner;
  puppet trainer{world};
};

} // namespace

TEST_SUITE("actors/training/variable_owner") {
  TEST_CASE("a variable begins with its initial value, in memory of its own") {
    auto initial = make_tensor({2, 2}, {1, 2, 3, 4});
    ownership held{initial};
    CHECK(floats(held.read()) == std::vector<float>{1, 2, 3, 4});
    CHECK(held.read().extents() == shape{2, 2});
    CHECK(held.address() != initial.data());
    CHECK(held.snapshot().reader().getVersion() == 0);
  }

  TEST_CASE("all readers of one version share its memory, and its message") {
    ownership held{zeros({100})};
    auto first = held.snapshot();
    CHECK(held.snapshot() == first);
    auto one = held.read();
    CHECK(held.read().data() == one.data());
  }

  TEST_CASE("a snapshot keeps its values while the variable goes on") {
    ownership held{make_tensor({2}, {1, 2})};
    held.use(rules::sgd{.learning_rate = 1});
    auto before = held.read();
    CHECK(held.apply({make_tensor({2}, {1, 1})}).has_come());
    CHECK(floats(before) == std::vector<float>{1, 2});
    auto after = held.read();
    CHECK(floats(after) == std::vector<float>{0, 1});
    CHECK(after.data() != before.data());
  }

  TEST_CASE("an update happens in place when there is no reader") {
    ownership held{random_tensor<float>(100, 0)};
    held.use(rules::sgd{.learning_rate = 1});
    const auto* before = held.address();
    CHECK(held.apply({random_tensor<float>(100, 0)}).has_come());
    CHECK(held.address() == before);
    CHECK(floats(held.read()) == std::vector<float>(100));
  }

  TEST_CASE("the rows of a variable are updated in place, too, or beside a snapshot") {
    ownership held{zeros({30, 1})};
    held.use(rules::sgd{.learning_rate = 1});
    auto gradient = slices({1}, make_tensor({1, 1}, {-1}), {30, 1});
    const auto* address = held.address();
    CHECK(held.apply({gradient}).has_come());
    CHECK(held.address() == address);
    auto before = held.read();
    CHECK(held.apply({gradient}).has_come());
    CHECK(before.values<float>()[1] == 1);
    CHECK(held.read().values<float>()[1] == 2);
  }

  TEST_CASE("an update says which version it made, and of which step") {
    ownership held{zeros({1})};
    held.use(rules::sgd{});
    held.step = 41;
    auto first = held.apply({zeros({1})});
    CHECK(first.value().reader().getVersion() == 1);
    CHECK(first.value().reader().getStep() == 41);
    CHECK(held.apply({zeros({1})}).value().reader().getVersion() == 2);
    CHECK(held.snapshot().reader().getVersion() == 2);
  }

  TEST_CASE("sgd subtracts the mean gradient times the learning rate") {
    ownership held{make_tensor({2}, {1, -1})};
    CHECK(held.use(rules::sgd{.learning_rate = 0.5}).reader().getSlotCount() == 0);
    CHECK(held.apply({make_tensor({2}, {1, 2}), make_tensor({2}, {3, -2})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{0, -1});
    CHECK(held.apply({make_tensor({2}, {-2, 4})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{1, -3});
  }

  TEST_CASE("momentum adds half of its velocity again") {
    ownership held{make_tensor({1}, {0})};
    CHECK(held.use(rules::momentum{.learning_rate = 1, .decay = 0.5}).reader().getSlotCount() == 1);
    CHECK(held.apply({make_tensor({1}, {4})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{-4});
    CHECK(held.apply({make_tensor({1}, {2})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{-8}); // velocity 0.5 * 4 + 2
  }

  TEST_CASE("adam moves by its learning rate first, whatever the gradient") {
    ownership held{make_tensor({2}, {0, 0})};
    CHECK(held.use(rules::adam{.learning_rate = 0.5, .epsilon = 1e-12}).reader().getSlotCount()
          == 2);
    CHECK(held.apply({make_tensor({2}, {8, -0.25})}).has_come());
    CHECK(held.read().values<float>()[0] == doctest::Approx(-0.5));
    CHECK(held.read().values<float>()[1] == doctest::Approx(0.5));
    CHECK(held.apply({make_tensor({2}, {0, -0.25})}).has_come());
    // The mean decays to 0.9 * 0.1 * 8, the square to 0.999 * 0.001 * 64; both are corrected.
    double mean = 0.9 * 0.1 * 8 / (1 - 0.81);
    double square = 0.999 * 0.001 * 64 / (1 - 0.999 * 0.999);
    CHECK(held.read().values<float>()[0] == doctest::Approx(-0.5 - 0.5 * mean / std::sqrt(square)));
    CHECK(held.read().values<float>()[1] == doctest::Approx(1.0));
  }

  TEST_CASE_TEMPLATE("updates equal a plain loop, bit for bit", T, float, double) {
    constexpr size_t count = 1003;
    auto compare = [&](const auto& rule) {
      auto initial = random_tensor<T>(count, 0);
      ownership held{initial};
      held.use(rule);
      auto value = values_of<T>(initial);
      std::vector<std::vector<T>> slots;
      for (size_t slot = 0; slot < rule.slot_names.size(); ++slot)
        slots.emplace_back(count, static_cast<T>(initial_slot_value(rule, slot)));
      for (uint32_t update = 1; update <= 3; ++update) {
        std::vector<gradient> gradients;
        for (uint32_t k = 0; k < 3; ++k)
          gradients.emplace_back(random_tensor<T>(count, 10 * update + k));
        REQUIRE(held.apply(gradients).has_come());
        plain_update(rule, update, gradients, value, slots);
        CHECK(values_of<T>(held.read()) == value);
      }
    };
    compare(rules::sgd{.learning_rate = 0.1, .weight_decay = 0.01});
    compare(rules::momentum{.learning_rate = 0.1});
    compare(rules::momentum{.learning_rate = 0.1, .nesterov = true});
    compare(rules::adam{.learning_rate = 0.1});
    compare(rules::adagrad{.learning_rate = 0.1});
    compare(rules::centered_rmsprop{.learning_rate = 0.1, .momentum = 0.5});
    compare(rules::amsgrad{.learning_rate = 0.1});
    compare(rules::nadam{.learning_rate = 0.1});
    compare(rules::lion{.learning_rate = 0.1, .decoupled_weight_decay = 0.1});
    compare(rules::ftrl{.learning_rate = 0.1, .l1 = 0.5});
  }

  TEST_CASE("a learning rate that falls is whole at the first update and 0 after the last") {
    ownership held{zeros({1})};
    held.use(rules::sgd{.learning_rate = 1}, linear_decay(4));
    float expected = 0;
    for (float rate : {1.0F, 0.75F, 0.5F, 0.25F, 0.0F, 0.0F}) {
      CHECK(held.apply({make_tensor({1}, {-4})}).has_come());
      expected += 4 * rate;
      CHECK(floats(held.read()) == std::vector<float>{expected});
    }
  }

  TEST_CASE("a learning rate that falls leaves the step counts of adam alone") {
    ownership held{zeros({1})};
    rules::adam rule{.learning_rate = 0.5};
    held.use(rule, linear_decay(2));
    std::vector<float> value{0};
    std::vector<std::vector<float>> slots(2, std::vector<float>(1));
    for (uint64_t update = 1; update <= 2; ++update) {
      CHECK(held.apply({make_tensor({1}, {3})}).has_come());
      rule.learning_rate = update == 1 ? 0.5 : 0.25;
      plain_update(rule, update, {make_tensor({1}, {3})}, value, slots);
      CHECK(floats(held.read()) == value);
    }
  }

  TEST_CASE("an update divides by what it is told to, or by the number of gradients") {
    ownership held{zeros({1})};
    held.use(rules::sgd{.learning_rate = 1});
    CHECK(held.apply({make_tensor({1}, {-4}), make_tensor({1}, {-4})}, 4).has_come());
    CHECK(floats(held.read()) == std::vector<float>{2});
    CHECK(held.apply({make_tensor({1}, {-4}), make_tensor({1}, {-4})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{6});
  }

  TEST_CASE("gradients are measured if that is asked for, held or not") {
    for (bool hold : {false, true}) {
      ownership held{zeros({2})};
      held.use(rules::sgd{.learning_rate = 1});
      std::vector pushes{make_push_gradient({.replica = 0}, make_tensor({2}, {3, 0})),
                         make_push_gradient({.replica = 1}, make_tensor({2}, {1, 2}))};
      auto done
        = held.ask<wire::UpdateApplied>(make_apply_update(0, 0, pushes, hold, true)).value();
      CHECK(done.reader().getSquaredNorm() == 5);
      CHECK(done.reader().getMeanSquaredNorm() == 7);
      CHECK(done.reader().getVersion() == (hold ? 0 : 1));
      CHECK(floats(held.read()) == (hold ? std::vector<float>{0, 0} : std::vector<float>{-2, -1}));
    }
  }

  TEST_CASE("a row's mean is over the gradients that hold it, and other rows rest") {
    ownership held{zeros({4, 1})};
    held.use(rules::momentum{.learning_rate = 1, .decay = 0.5});
    CHECK(held
            .apply({slices({2}, make_tensor({1, 1}, {-4}), {4, 1}),
                    slices({0, 2}, make_tensor({2, 1}, {-6, -8}), {4, 1})})
            .has_come());
    CHECK(floats(held.read()) == std::vector<float>{6, 0, 6, 0});
    CHECK(held.apply({slices({3}, make_tensor({1, 1}, {-1}), {4, 1})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{6, 0, 6, 1});
    CHECK(held.apply({slices({0}, make_tensor({1, 1}, {-1}), {4, 1})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{10, 0, 6, 1}); // velocity 0.5 * 6 + 1
  }

  TEST_CASE("a row that occurs twice in a gradient adds up") {
    ownership held{zeros({2, 1})};
    held.use(rules::sgd{.learning_rate = 1});
    CHECK(held.apply({slices({1, 1}, make_tensor({2, 1}, {-1, -2}), {2, 1})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{0, 3});
  }

  TEST_CASE("sparse and dense gradients mix as if all were dense") {
    ownership held{zeros({3, 1})};
    held.use(rules::sgd{.learning_rate = 1});
    CHECK(held
            .apply({make_tensor({3, 1}, {-2, -4, -6}),
                    slices({1, 1}, make_tensor({2, 1}, {-1, -1}), {3, 1})})
            .has_come());
    CHECK(floats(held.read()) == std::vector<float>{1, 3, 3});
  }

  TEST_CASE("a sparse gradient without rows changes nothing but the version") {
    ownership held{make_tensor({2, 1}, {1, 2})};
    held.use(rules::momentum{});
    auto applied = held.apply({slices({}, zeros({0, 1}), {2, 1})});
    CHECK(applied.value().reader().getVersion() == 1);
    CHECK(floats(held.read()) == std::vector<float>{1, 2});
  }

  TEST_CASE("variables and rows without elements can be updated") {
    ownership empty{zeros({0})};
    empty.use(rules::adam{});
    CHECK(empty.apply({zeros({0}), zeros({0})}).value().reader().getVersion() == 1);
    ownership flat{zeros({3, 0})};
    flat.use(rules::adam{});
    auto rows = slices({1}, zeros({1, 0}), {3, 0});
    CHECK(flat.apply({rows}).value().reader().getVersion() == 1);
    CHECK(flat.apply({rows, zeros({3, 0})}).value().reader().getVersion() == 2);
  }

  TEST_CASE("a scalar can be updated") {
    ownership held{zeros({})};
    held.use(rules::sgd{.learning_rate = 1});
    CHECK(held.apply({make_tensor({}, {-3})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{3});
  }

  TEST_CASE("the same optimizer set again keeps its slots, and takes the new settings") {
    ownership held{make_tensor({1}, {0})};
    held.use(rules::momentum{.learning_rate = 1, .decay = 0.5});
    CHECK(held.apply({make_tensor({1}, {-4})}).has_come());
    auto ready = held.use(rules::momentum{.learning_rate = 2, .decay = 0.5});
    CHECK(ready.reader().getVersion() == 1);
    CHECK(ready.reader().getSlotCount() == 1);
    CHECK(held.apply({make_tensor({1}, {0})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{8}); // 4 + 2 * (0.5 * 4)
  }

  TEST_CASE("an owner gives out the average that it keeps, and no other") {
    ownership held{make_tensor({1}, {4})};
    held.use(update_plan{.rule = rules::sgd{.learning_rate = 1},
                         .average = moving_average{.name = "mean", .decay = 0.5}});
    CHECK(floats(held.average("mean")) == std::vector<float>{4});
    auto seen = held.average("mean");
    CHECK(held.apply({make_tensor({1}, {4})}).has_come());
    CHECK(floats(seen) == std::vector<float>{4});
    CHECK(floats(held.average("mean")) == std::vector<float>{2});
    auto other = held.ask<wire::VariableSnapshot>(make_read_average("median"));
    CHECK(other.error().code == errc::not_found);
    CHECK(other.error().message == "no average 'median' is kept of variable 'w'");
    held.use(rules::sgd{});
    CHECK(held.ask<wire::VariableSnapshot>(make_read_average("mean")).error().code
          == errc::not_found);
  }

  TEST_CASE("another optimizer begins with slots of its own") {
    ownership held{make_tensor({1}, {0})};
    held.use(rules::momentum{.learning_rate = 1, .decay = 0.5});
    CHECK(held.apply({make_tensor({1}, {-4})}).has_come());
    CHECK(held.use(rules::adam{}).reader().getSlotCount() == 2);
    CHECK(held.use(rules::momentum{.learning_rate = 1, .decay = 0.5}).reader().getSlotCount() == 1);
    CHECK(held.apply({make_tensor({1}, {0})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{4});
  }

  TEST_CASE("an update is made by the optimizer that it names, whichever is in use") {
    ownership held{make_tensor({1}, {0})};
    const std::vector<msg<wire::PushGradient>> pushes{
      make_push_gradient({}, make_tensor({1}, {-4}))};
    auto apply = [&](const update_plan& by, bool hold = false) {
      auto named = make_use_optimizer(to_settings(by));
      return held.ask<wire::UpdateApplied>(make_apply_update_of(named, 1, pushes, hold));
    };
    const update_plan momentum{.rule = rules::momentum{.learning_rate = 1, .decay = 0.5}};
    const update_plan sgd{.rule = rules::sgd{.learning_rate = 10}};
    CHECK(apply(momentum).has_come()); // the first that the owner hears of it
    CHECK(floats(held.read()) == std::vector<float>{4});
    CHECK(apply(momentum).has_come()); // its slots go on
    CHECK(floats(held.read()) == std::vector<float>{10});
    CHECK(apply(sgd).has_come());
    CHECK(floats(held.read()) == std::vector<float>{50});
    CHECK(held.apply({make_tensor({1}, {-1})}).has_come()); // an update that names none
    CHECK(floats(held.read()) == std::vector<float>{60});
    CHECK(apply(momentum, true).has_come());
    held.use(rules::sgd{.learning_rate = 100});
    CHECK(held.ask<wire::UpdateApplied>(make_release_update(1)).has_come());
    CHECK(floats(held.read()) == std::vector<float>{64});
  }

  TEST_CASE("an update that names an optimizer that is refused changes nothing") {
    ownership held{make_tensor({1}, {1})};
    held.use(rules::sgd{.learning_rate = 1});
    const std::vector<msg<wire::PushGradient>> pushes{
      make_push_gradient({}, make_tensor({1}, {1}))};
    auto named = make_use_optimizer({"magic", {}});
    CHECK(held.ask<wire::UpdateApplied>(make_apply_update_of(named, 1, pushes, false)).error().code
          == errc::not_found);
    CHECK(held.apply({make_tensor({1}, {1})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{0});
  }

  TEST_CASE("an owner that is only asked about an optimizer answers, and keeps its own") {
    ownership held{make_tensor({1}, {0})};
    auto ask = [&](const optimizer_settings& optimizer) {
      return held.ask<wire::OptimizerInUse>(make_use_optimizer(optimizer, true));
    };
    CHECK(ask(to_settings({rules::adam{}})).value().reader().getSlotCount() == 0);
    CHECK(held.apply({zeros({1})}).error().code == errc::failed_precondition);
    held.use(rules::momentum{.learning_rate = 1, .decay = 0.5});
    CHECK(held.apply({make_tensor({1}, {-4})}).has_come());
    CHECK(ask(to_settings({rules::adam{}})).has_come());
    CHECK(ask({"magic", {}}).error().code == errc::not_found);
    CHECK(held.apply({make_tensor({1}, {0})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{6}); // 4 + 0.5 * 4
  }

  TEST_CASE("an update before there is an optimizer is refused") {
    ownership held{make_tensor({1}, {1})};
    auto applied = held.apply({zeros({1})});
    CHECK(applied.error().code == errc::failed_precondition);
    CHECK(applied.error().message == "variable 'w' has no optimizer yet; send UseOptimizer first");
    CHECK(held.snapshot().reader().getVersion() == 0);
  }

  TEST_CASE("an update without gradients changes nothing: all of a step were lost") {
    ownership held{make_tensor({1}, {1})};
    held.use(rules::sgd{});
    CHECK(held.apply({}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{1});
    CHECK(held.snapshot().reader().getVersion() == 0);
  }

  TEST_CASE("an optimizer that there is not is refused, and the one in use stays") {
    ownership held{make_tensor({1}, {1})};
    held.use(rules::sgd{.learning_rate = 1});
    auto used = held.ask<wire::OptimizerInUse>(make_use_optimizer({"magic", {}}));
    CHECK(used.error().code == errc::not_found);
    auto wrong
      = held.ask<wire::OptimizerInUse>(make_use_optimizer({"sgd", {{"learning_rate", -1.0}}}));
    CHECK(wrong.error().code == errc::invalid_argument);
    auto schedule = held.ask<wire::OptimizerInUse>(
      make_use_optimizer({"sgd", {}, {"polynomial", {{"updates", -1.0}}}}));
    CHECK(schedule.error().code == errc::invalid_argument);
    CHECK(held.apply({make_tensor({1}, {1})}).has_come());
    CHECK(floats(held.read()) == std::vector<float>{0});
  }

  TEST_CASE("all owners on a device that is lost say so, however late they ask it") {
    deterministic_world stage;
    puppet trainer{stage.world};
    auto device = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true});
    auto asked = stage.spawn(gpu, gpu_config{.device = device, .world = &stage.world});
    device->lose({errc::unavailable, "CUDA error 700"});
    for (const auto* name : {"a", "b"}) {
      CAPTURE(name);
      auto owner = stage.spawn(
        variable_owner, variable_owner_config{.variable = {name, dtype::f32, {1}},
                                              .initial = zeros({1}),
                                              .world = &stage.world,
                                              .places = {{.device = asked, .owned = device}}});
      auto answer = trainer.ask<msg<wire::VariableSnapshot>>(owner, make_read_variable());
      stage.settle();
      CHECK(answer.error() == error{errc::unavailable, "gpu:0 is lost: CUDA error 700"});
      caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
    }
  }

  TEST_CASE("an owner on a device answers before the device has made the update, and readers there "
            "compute with what comes of it") {
    placed_ownership held;
    auto applied = held.apply(filled(dtype::f32, {1000}, 2));
    CHECK(applied.value().reader().getVersion() == 1);
    auto there = held.read(held.device->where());
    CHECK(there.value().reader().getVersion() == 1);
    tensor seen;
    auto computed = held.trainer.ask<device_work_done>(
      held.computing, device_work{.purpose = "a step", .launch = [&](compute_stream& on) {
                                    const tensor twice[] = {value_of(there), value_of(there)};
                                    seen = *on.to_host(*on.sum(twice));
                                  }});
    held.settle();
    auto here = held.read({});
    auto state = held.ask<wire::VariableState>(make_read_state());
    CHECK_FALSE(computed.has_come());
    CHECK_FALSE(here.has_come());
    CHECK_FALSE(state.has_come());
    held.go_on();
    held.settle();
    CHECK(computed.has_come());
    CHECK(floats(seen) == std::vector<float>(1000, 6));
    CHECK(floats(value_of(here)) == std::vector<float>(1000, 3));
    CHECK(read_state(state.value().reader(), state.value().owner()).version == 1);
  }

  TEST_CASE("copies on two devices are updated by the gradients that lie there, and read there") {
    twofold_ownership held;
    std::vector<msg<wire::PushGradient>> same;
    for (const auto& device : held.devices)
      same.push_back(
        make_push_gradient({}, *device->stream(0).to_device(filled(dtype::f32, {4}, 2))));
    const auto uploads = [&] { return held.devices[0]->uploads() + held.devices[1]->uploads(); };
    const auto before = uploads();
    auto sgd = make_use_optimizer({"sgd", {{"learning_rate", 1}}});
    auto applied = held.ask<wire::UpdateApplied>(make_apply_update_of(sgd, 1, same, false, true));
    CHECK(applied.value().reader().getVersion() == 1);
    CHECK(uploads() == before);
    for (size_t i : {0U, 1U})
      CHECK(held.copy_on(i) == std::vector<float>(4, 3));
    auto here = held.ask<wire::VariableSnapshot>(make_read_variable());
    CHECK(floats(value_of(here)) == std::vector<float>(4, 3));
  }

  TEST_CASE("a change that one of two devices refuses tears a variable, until it is restored") {
    twofold_ownership held;
    auto saved = held.ask<wire::VariableState>(make_read_state());
    auto room = *held.devices[1]->stream(0).make(dtype::f32, {100}); // all but that of the copy
    const std::vector<msg<wire::PushGradient>> pushes{
      make_push_gradient({}, filled(dtype::f32, {4}, 1))};
    auto update = make_apply_update(0, 1, pushes);
    auto refused = held.ask<wire::UpdateApplied>(update);
    CHECK(refused.error().code == errc::unavailable);
    CHECK(refused.error().message.find("variable 'w' was changed on gpu:0, and not on gpu:1 (")
          == 0);
    for (auto reader : {device{}, held.devices[0]->where(), held.devices[1]->where()}) {
      auto read = held.ask<wire::VariableSnapshot>(make_read_variable(whole_variable, reader));
      CHECK(read.error() == refused.error());
    }
    room = {};
    auto state = read_state(saved.value().reader(), saved.value().owner());
    CHECK(held.ask<wire::OptimizerInUse>(make_restore_state(state)).has_come());
    CHECK(held.ask<wire::UpdateApplied>(update).value().reader().getVersion() == 1);
    for (size_t i : {0U, 1U})
      CHECK(held.copy_on(i) == std::vector<float>(4, 4));
  }

  TEST_CASE("an optimizer that one of two devices has no room for is refused, and tears nothing") {
    twofold_ownership held;
    auto room = *held.devices[1]->stream(0).make(dtype::f32, {100}); // all but that of the copy
    auto refused = held.ask<wire::OptimizerInUse>(make_use_optimizer({"adam", {}}, true));
    CHECK(refused.error().code == errc::resource);
    room = {};
    const std::vector<msg<wire::PushGradient>> pushes{
      make_push_gradient({}, filled(dtype::f32, {4}, 1))};
    CHECK(held.ask<wire::UpdateApplied>(make_apply_update(0, 1, pushes)).has_come());
    for (size_t i : {0U, 1U})
      CHECK(held.copy_on(i) == std::vector<float>(4, 4));
  }

  TEST_CASE("copies that are not the same any more are found when a checkpoint reads them") {
    twofold_ownership held;
    CHECK(held.ask<wire::VariableState>(make_read_state()).has_come());
    auto lent
      = held.trainer.ask<lent_variable>(held.owner, lend_variable{held.devices[1]->where()});
    held.settle();
    const std::vector<gradient> gradients{filled(dtype::f32, {4}, 1)};
    auto placed = lent.value().variable->placed(gradients).value();
    REQUIRE(lent.value().variable->update({placed, 1}));
    auto refused = held.ask<wire::VariableState>(make_read_state());
    CHECK(refused.error()
          == error{errc::unavailable,
                   "variable 'w' has other bits on gpu:1 than on gpu:0; restore it"});
  }

  TEST_CASE("updates that are queued one after the other come to what they come to one by one") {
    placed_ownership held;
    for (uint64_t version : {1U, 2U, 3U})
      CHECK(held.apply(filled(dtype::f32, {1000}, 1)).value().reader().getVersion() == version);
    auto here = held.read({});
    held.go_on();
    held.settle();
    CHECK(floats(value_of(here)) == std::vector<float>(1000, 2));
  }

  TEST_CASE("a reader on the variable's device costs that nothing") {
    placed_ownership held;
    held.go_on();
    CHECK(held.apply(filled(dtype::f32, {1000}, 2)).has_come());
    auto asked = held.asked;
    CHECK(held.read(held.device->where()).value().reader().getVersion() == 1);
    CHECK(held.asked == asked);
    auto absent = held.ask<wire::VariableSnapshot>(make_read_variable(1, held.device->where()));
    CHECK(absent.error().code == errc::out_of_range);
  }

  TEST_CASE("a reader on the variable's device sees an update that was asked for before, whether "
            "that is at the device or answered") {
    std::set<uint64_t> asked;
    const std::vector<msg<wire::PushGradient>> pushes{
      make_push_gradient({}, filled(dtype::f32, {1000}, 2))};
    for (uint64_t seed = 0; seed < 20; ++seed) {
      placed_ownership held{seed};
      held.go_on();
      CHECK(held.apply(filled(dtype::f32, {1000}, 2)).has_come());
      auto before = held.asked;
      auto applied
        = held.trainer.ask<msg<wire::UpdateApplied>>(held.owner, make_apply_update(0, 0, pushes));
      auto there = held.read(held.device->where());
      CHECK(applied.has_come());
      CHECK(there.value().reader().getVersion() == 2);
      asked.insert(held.asked - before);
    }
    CHECK(asked == std::set<uint64_t>{1, 2}); // without the read, and with it
  }

  TEST_CASE("a gradient stays until the device has made the update that reads it") {
    placed_ownership held;
    std::weak_ptr<const void> memory;
    {
      auto there = *held.replicas->stream(0).to_device(filled(dtype::f32, {1000}, 2));
      memory = there.owner();
      CHECK(held.apply(there).has_come());
    }
    CHECK_FALSE(memory.expired());
    held.go_on();
    held.settle();
    CHECK(memory.expired());
  }

  TEST_CASE("an update that was answered and is never made ends the device's actor, and the owner "
            "says so from then on") {
    for (bool is_lost : {false, true}) {
      placed_ownership held;
      CHECK(held.apply(filled(dtype::f32, {1000}, 2)).has_come());
      if (is_lost) held.device->lose({errc::unavailable, "CUDA error 700"});
      held.pass(std::chrono::seconds{9});
      error reason{errc::deadline_exceeded, "gpu:0 has not done what is asked of variable 'w' in "
                                            "8.0 s, and nothing can stop it"};
      if (is_lost) reason = {errc::unavailable, "gpu:0 is lost: CUDA error 700"};
      CHECK(held.read(held.device->where()).error() == reason);
      CHECK(held.apply(filled(dtype::f32, {1000}, 2)).error() == reason);
      held.go_on();
    }
  }

  TEST_CASE("a saved state is restored, and updates go on as if nothing had happened") {
    update_plan plan{.rule = rules::adam{.learning_rate = 0.1},
                     .average = moving_average{.name = "average", .decay = 0.5}};
    auto gradient_of = [](float value) {
      return std::vector<gradient>{make_tensor({2}, {value, 1})};
    };
    ownership first{make_tensor({2}, {1, 2})};
    first.use(plan);
    first.apply(gradient_of(0.5));
    auto saved = first.ask<wire::VariableState>(make_read_state()).value();
    auto state = read_state(saved.reader(), saved.owner());
    CHECK(state.version == 1);
    CHECK(state.optimizer == "adam");
    REQUIRE(state.slots.size() == 2);
    CHECK(state.slots[0].name == "m");
    REQUIRE(state.average);
    CHECK(state.average->name == "average");
    first.apply(gradient_of(-3)); // writes elsewhere: the saved arrays stay as they are

    ownership second{zeros({2})};
    auto restored = second.ask<wire::OptimizerInUse>(make_restore_state(state)).value();
    CHECK(restored.reader().getVersion() == 1);
    CHECK(restored.reader().getSlotCount() == 2);
    second.use(plan);
    second.apply(gradient_of(-3));
    CHECK(values_of<float>(second.read()) == values_of<float>(first.read()));
    CHECK(values_of<float>(second.average("average"))
          == values_of<float>(first.average("average")));
  }

  TEST_CASE("restored slots go on until an optimizer makes an update, not until one is refused") {
    ownership held{zeros({2})};
    held.use(rules::momentum{.learning_rate = 1});
    held.apply({make_tensor({2}, {1, 1})});
    auto saved = held.ask<wire::VariableState>(make_read_state()).value();
    auto state = read_state(saved.reader(), saved.owner());
    held.use(rules::adam{});
    static_cast<void>(held.ask<wire::OptimizerInUse>(make_restore_state(state)).value());
    CHECK(held.apply({zeros({3})}).error().code == errc::invalid_argument);
    CHECK(held.use(rules::momentum{.learning_rate = 1}).reader().getSlotCount() == 1);
    held.apply({make_tensor({2}, {1, 1})});
    CHECK(floats(held.read())[0] == doctest::Approx(-2.9)); // the velocity was 1
  }

  TEST_CASE("the saved state of another variable is refused, and nothing changes") {
    ownership target{make_tensor({2}, {1, 2})};
    auto refusal = [&](const variable_payload& state) {
      return target.ask<wire::OptimizerInUse>(make_restore_state(state)).error();
    };
    auto other_type = refusal({.value = zeros({2}, dtype::f64)});
    CHECK(other_type.code == errc::type_mismatch);
    CHECK(other_type.message == "'w' was saved as f64, but variable 'w' is f32");
    auto other_shape = refusal({.version = 9, .value = zeros({3})});
    CHECK(other_shape.code == errc::invalid_argument);
    CHECK(other_shape.message == "'w' was saved with shape [3], but variable 'w' has shape [2]");
    auto other_slot = refusal({.value = zeros({2}), .slots = {{"momentum", zeros({4})}}});
    CHECK(other_slot.message.find("'momentum' was saved with shape [4]") == 0);
    CHECK(values_of<float>(target.read()) == std::vector<float>{1, 2});
    CHECK(target.snapshot().reader().getVersion() == 0);
  }
}

} // namespace variable_owner_test
