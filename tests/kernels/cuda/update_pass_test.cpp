// SPDX-License-Identifier: Apache-2.0
// Goal: a variable that lies on a GPU is updated there as its owner would update it on the CPU.
// Method: the same updates in both places, by all rules and kinds of gradients of the host, bit for
// bit.
#include "kernels/updates/update_batch.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"
#include "tests/kernels/updates/update_passes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

bool are_same(const tensor& here, const tensor& there) {
  auto copy = to_host(gpu(), there).value();
  return std::memcmp(here.data(), copy.data(), here.bytes()) == 0;
}

/// A variable here and on the GPU, with the gradients of its next update.
struct variable_twice {
  variable_state mine, other;
  update_plan plan;
  std::vector<gradient> gradients;

  void check() const {
    CHECK(mine.version == other.version);
    CHECK(are_same(mine.value, other.value));
    for (size_t slot = 0; slot < mine.slots.size(); ++slot)
      CHECK(are_same(mine.slots[slot].values, other.slots[slot].values));
    if (mine.average) CHECK(are_same(mine.average->values, other.average->values));
  }
};

/// Variables of all sizes and some rules.
template <class T>
std::vector<variable_twice> variables_of_all_kinds(drawn_arrays& drawn) {
  const std::vector<update_rule> rules{rules::adam{}, rules::momentum{}, rules::lamb{}};
  std::vector<variable_twice> all;
  for (int64_t size : device_sizes)
    for (const auto& rule : rules) {
      auto& one = all.emplace_back();
      one.plan = {.rule = rule};
      if (size % 2 == 1) one.plan.average = moving_average{.decay = 0.75};
      one.mine.value = drawn.next<T>({size, 1});
      one.other.value = to_device(gpu(), one.mine.value.clone()).value();
      prepare(cpu::context{}, one.mine, one.plan);
      prepare(gpu(), one.other, one.plan);
    }
  return all;
}

} // namespace

TEST_SUITE("kernels/cuda/update_pass") {
  TEST_CASE_TEMPLATE("a variable on a GPU has the bits of one on the CPU", T, float, double) {
    auto send = [](const tensor& value) { return to_device(gpu(), value).value(); };
    auto fetch = [](const tensor& value) { return to_host(gpu(), value).value(); };
    check_all_updates<T>(gpu(), send, fetch);
    REQUIRE(gpu().status());
  }

  TEST_CASE("a gradient that lies on the GPU is taken where it lies") {
    drawn_arrays drawn;
    const shape extents{5, 3};
    variable_state mine{.value = drawn.next<float>(extents)};
    variable_state other{.value = to_device(gpu(), mine.value.clone()).value()};
    const update_plan plan{.rule = rules::sgd{}};
    auto here = drawn.next<float>(extents);
    const std::vector<gradient> near{here}, far{to_device(gpu(), here).value()};
    update_variable(cpu::context{}, mine, plan, {near});
    update_variable(gpu(), other, plan, {far});
    auto back = to_host(gpu(), other.value).value();
    CHECK(std::memcmp(back.data(), mine.value.data(), mine.value.bytes()) == 0);
    REQUIRE(gpu().status());
  }

  TEST_CASE_TEMPLATE("variables that are updated together have the bits of one after the other", T,
                     float, double) {
    drawn_arrays drawn;
    auto variables = variables_of_all_kinds<T>(drawn);
    for (size_t step = 0; step < 3; ++step) {
      cuda::update_batch batch{gpu()};
      for (size_t i = 0; i < variables.size(); ++i) {
        auto& [mine, other, plan, gradients] = variables[i];
        const auto& extents = mine.value.extents();
        gradients = {drawn.next<T>(extents), drawn.next<T>(extents)};
        if (extents[0] > 1 && i % 4 == step) gradients = {drawn.next_rows<T>({0, 1, 0}, extents)};
        if (extents[0] > 1 && i % 5 == step) gradients.push_back(drawn.next_rows<T>({1}, extents));
        const gradient_mean mean{gradients};
        update_variable(cpu::context{}, mine, plan, mean);
        auto held = other.value; // as a reader would have it
        if (i % 3 == 0) held = {};
        batch.add(other, plan, mean);
      }
      batch.launch();
      for (const auto& one : variables)
        one.check();
    }
    REQUIRE(gpu().status());
  }
}
