// SPDX-License-Identifier: Apache-2.0
// Goal: plans mean what they say: clips, exact sparse updates, averages, and state that can be
// saved. Method: one plan against another that must come to the same, bit for bit, and numbers by
// hand.
#include "kernels/tensor/random.hpp"
#include "kernels/updates/update_pass.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/updates/update_passes.hpp"

#include <algorithm>
#include <cmath>

namespace update_pass_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

template <class T>
std::vector<T> values_of(const tensor& from) {
  auto values = from.values<T>();
  return {values.begin(), values.end()};
}

template <class T>
tensor random_tensor(const shape& extents, uint32_t index) {
  random_stream draw{random_key{1, "test", index}};
  tensor result{dtype_of<T>, extents};
  for (auto& value : result.mutable_values<T>())
    value = static_cast<T>(draw.normal());
  return result;
}

double norm_of(const variable_state& state, const gradient_mean& mean) {
  const measured_mean measured{state, mean};
  return squared_norms(fast, {&measured, 1}).front();
}

indexed_slices slices(const std::vector<int64_t>& rows, const tensor& values, shape whole) {
  tensor indices{dtype::i64, {static_cast<int64_t>(rows.size())}};
  std::ranges::copy(rows, indices.mutable_values<int64_t>().begin());
  return {indices, values, std::move(whole)};
}

/// The dense form of slices with rows that differ.
template <class T>
tensor dense_form(const indexed_slices& from) {
  tensor dense = zeros(from.dense_extents, dtype_of<T>);
  std::span<T> into = dense.mutable_values<T>();
  auto rows = from.indices.values<int64_t>();
  std::span<const T> values = from.values.values<T>();
  size_t width = values.size() / rows.size();
  for (size_t i = 0; i < values.size(); ++i)
    into[static_cast<size_t>(rows[i / width]) * width + i % width] = values[i];
  return dense;
}

/// A variable that is updated.
struct updated {
  variable_state state;
  update_plan plan;

  updated(const tensor& initial, const update_plan& planned) : plan(planned) {
    state.value = initial.clone();
    prepare(fast, state, plan);
  }

  void update(const std::vector<gradient>& gradients, uint32_t divisor = 0, double scale = 1) {
    update_variable(fast, state, plan, {gradients, divisor, scale});
  }
};

template <class T>
void check_same(const updated& a, const updated& b) {
  CHECK(values_of<T>(a.state.value) == values_of<T>(b.state.value));
  for (size_t slot = 0; slot < a.state.slots.size(); ++slot)
    CHECK(values_of<T>(a.state.slots[slot].values) == values_of<T>(b.state.slots[slot].values));
}

} // namespace

TEST_SUITE("kernels/updates/update_pass") {
  TEST_CASE_TEMPLATE("the oracle comes to the same bits", T, float, double) {
    auto stay = [](const tensor& value) { return value; };
    check_all_updates<T>(reference::context{}, stay, stay, norms::close);
  }

  TEST_CASE_TEMPLATE("an exact sparse update is the update by its dense form", T, float, double) {
    for (const auto& rule : all_rules()) {
      CAPTURE(name_of(rule));
      auto initial = random_tensor<T>({7, 33}, 0);
      updated exact{initial, {.rule = rule, .sparse_exact = true}};
      updated dense{initial, {.rule = rule}};
      for (uint32_t step = 1; step <= 3; ++step) {
        auto rows = slices({6, step, 0}, random_tensor<T>({3, 33}, step), {7, 33});
        exact.update({rows});
        dense.update({dense_form<T>(rows)});
        check_same<T>(exact, dense);
      }
    }
  }

  TEST_CASE("layer-wise rules are exact, whatever the plan says") {
    auto initial = random_tensor<float>({4, 5}, 0);
    updated lazy{initial, {.rule = rules::lamb{}}};
    updated exact{initial, {.rule = rules::lamb{}, .sparse_exact = true}};
    auto rows = slices({2}, random_tensor<float>({1, 5}, 1), {4, 5});
    lazy.update({rows});
    exact.update({rows});
    check_same<float>(lazy, exact);
  }

  TEST_CASE("a lazy update leaves other rows and their momentum, an exact one does not") {
    for (bool is_exact : {false, true}) {
      updated held{
        zeros({2, 1}),
        {.rule = rules::momentum{.learning_rate = 1, .decay = 0.5}, .sparse_exact = is_exact}};
      held.update({slices({0}, make_tensor({1, 1}, {-4}), {2, 1})});
      held.update({slices({1}, make_tensor({1, 1}, {-4}), {2, 1})});
      CHECK(values_of<float>(held.state.value) == std::vector<float>{is_exact ? 6.0F : 4.0F, 4});
    }
  }

  TEST_CASE("state that is saved and restored goes on bit for bit") {
    for (const auto& rule : all_rules()) {
      CAPTURE(name_of(rule));
      update_plan plan{.rule = rule, .schedule = linear_decay(10), .average = moving_average{}};
      updated whole{random_tensor<double>({37}, 0), plan};
      for (uint32_t step = 0; step < 3; ++step)
        whole.update({random_tensor<double>({37}, step)});
      updated restored{whole.state.value, plan};
      restored.state = whole.state;
      restored.state.value = whole.state.value.clone();
      for (auto& slot : restored.state.slots)
        slot.values = slot.values.clone();
      restored.state.average->values = whole.state.average->values.clone();
      prepare(fast, restored.state, plan);
      for (uint32_t step = 3; step < 6; ++step) {
        whole.update({random_tensor<double>({37}, step)});
        restored.update({random_tensor<double>({37}, step)});
      }
      check_same<double>(whole, restored);
      CHECK(values_of<double>(whole.state.average->values)
            == values_of<double>(restored.state.average->values));
    }
  }

  TEST_CASE("slots that begin late are corrected from their own beginning") {
    updated late{make_tensor({1}, {1}), {.rule = rules::sgd{.learning_rate = 0}}};
    for (int i = 0; i < 100; ++i)
      late.update({make_tensor({1}, {1})});
    late.plan.rule = rules::adam{.learning_rate = 0.5};
    prepare(fast, late.state, late.plan);
    updated early{make_tensor({1}, {1}), late.plan};
    late.update({make_tensor({1}, {3})});
    early.update({make_tensor({1}, {3})});
    check_same<float>(late, early);
    CHECK(late.state.version == 101);
    CHECK(late.state.slots[1].name == "v");
  }

  TEST_CASE("a clip by value cuts the mean, not the gradients") {
    updated held{zeros({2}), {.rule = rules::sgd{.learning_rate = 1}, .clip = {.value_max = 1}}};
    held.update({make_tensor({2}, {8, 3}), make_tensor({2}, {-8, -1})});
    CHECK(values_of<float>(held.state.value) == std::vector<float>{0, -1});
  }

  TEST_CASE("a clip by norm shortens the mean, dense or sparse, and only if it is too long") {
    update_plan plan{.rule = rules::sgd{.learning_rate = 1}, .clip = {.norm_max = 5}};
    for (float size : {1.0F, 4.0F}) {
      const std::vector<float> expected{-3, 0, -4};
      auto gradient = make_tensor({3, 1}, {3 * size, 0, 4 * size});
      updated dense{zeros({3, 1}), plan}, sparse{zeros({3, 1}), plan};
      dense.update({gradient});
      sparse.update({slices({2, 0}, make_tensor({2, 1}, {4 * size, 3 * size}), {3, 1})});
      CHECK(values_of<float>(dense.state.value) == expected);
      CHECK(values_of<float>(sparse.state.value) == expected);
    }
  }

  TEST_CASE("a gradient whose norm is not finite makes a clipped variable NaN") {
    updated held{zeros({2}), {.rule = rules::sgd{}, .clip = {.norm_max = 1}}};
    held.update({make_tensor({2}, {INFINITY, 1})});
    for (auto value : held.state.value.values<float>())
      CHECK(std::isnan(value));
  }

  TEST_CASE("the scale multiplies the mean, and its norm") {
    updated held{zeros({2}), {.rule = rules::sgd{.learning_rate = 1}}};
    std::vector<gradient> gradients{make_tensor({2}, {6, 0}), make_tensor({2}, {0, 8})};
    CHECK(norm_of(held.state, {gradients}) == 25);
    CHECK(norm_of(held.state, {gradients, 1, 0.5}) == 25);
    held.update(gradients, 0, 0.5);
    CHECK(values_of<float>(held.state.value) == std::vector<float>{-1.5, -2});
  }

  TEST_CASE("the norm of sparse gradients is that of the mean they make") {
    updated held{zeros({3, 1}), {}};
    std::vector<gradient> gradients{slices({0, 2}, make_tensor({2, 1}, {3, 2}), {3, 1}),
                                    slices({2}, make_tensor({1, 1}, {6}), {3, 1})};
    CHECK(norm_of(held.state, {gradients}) == 25);
    CHECK(norm_of(held.state, {gradients, 2}) == 2.25 + 16);
    gradients.emplace_back(make_tensor({3, 1}, {0, 3, 4}));
    CHECK(norm_of(held.state, {gradients}) == 1 + 1 + 16);
    CHECK(norm_of(updated{zeros({0}), {}}.state, {gradients}) == 0);
  }

  TEST_CASE("an average begins at the value, and follows dense and sparse updates alike") {
    update_plan plan{.rule = rules::sgd{.learning_rate = 1},
                     .average = moving_average{.name = "mean", .decay = 0.75}};
    updated dense{make_tensor({2, 1}, {8, 8}), plan}, sparse{make_tensor({2, 1}, {8, 8}), plan};
    CHECK(dense.state.average->name == "mean");
    std::vector<float> value{8, 8}, shadow{8, 8};
    for (float by : {4.0F, 0.0F, -2.0F}) {
      dense.update({make_tensor({2, 1}, {by, 0})});
      sparse.update({slices({0}, make_tensor({1, 1}, {by}), {2, 1})});
      value[0] -= by;
      for (size_t i = 0; i < 2; ++i)
        shadow[i] -= 0.25F * (shadow[i] - value[i]);
      CHECK(values_of<float>(dense.state.average->values) == shadow);
      CHECK(values_of<float>(sparse.state.average->values) == shadow);
    }
  }

  TEST_CASE("a young average forgets faster if it counts updates") {
    moving_average average{.decay = 0.5, .num_updates = true};
    CHECK(average.decay_at(1) == 2.0 / 11);
    CHECK(average.decay_at(8) == 0.5);
    CHECK(average.decay_at(1000) == 0.5);
    average.num_updates = false;
    CHECK(average.decay_at(1) == 0.5);
    update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    plan.average = moving_average{.decay = 0.999, .num_updates = true};
    updated held{make_tensor({1}, {0}), plan};
    held.update({make_tensor({1}, {-11})});
    CHECK(held.state.average->values.values<float>()[0] == doctest::Approx(9));
  }

  TEST_CASE("a reader of an average keeps the values that it read") {
    update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    plan.average = moving_average{.decay = 0.5};
    updated held{make_tensor({1}, {4}), plan};
    auto seen = held.state.average->values;
    held.update({make_tensor({1}, {4})});
    CHECK(seen.values<float>()[0] == 4);
    CHECK(held.state.average->values.values<float>()[0] == 2);
  }

  TEST_CASE("an average goes on under a plan of the same name, and begins again under another") {
    update_plan plan{.rule = rules::sgd{.learning_rate = 1},
                     .average = moving_average{.name = "a", .decay = 0.5}};
    updated held{make_tensor({1}, {4}), plan};
    held.update({make_tensor({1}, {4})});
    prepare(fast, held.state, plan);
    CHECK(held.state.average->values.values<float>()[0] == 2);
    plan.average->name = "b";
    prepare(fast, held.state, plan);
    CHECK(held.state.average->values.values<float>()[0] == 0);
    plan.average.reset();
    prepare(fast, held.state, plan);
    CHECK_FALSE(held.state.average);
  }
}

} // namespace update_pass_test
