// SPDX-License-Identifier: Apache-2.0
// Goal: the fused update has the same bits wherever and however it is computed. Method: twins over
// rules, sizes, sources, fills, threads and places. `update_rules_test.cpp` tests the rules.
#include "kernels/updates/update.hpp"
#include "messages/mapped.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/updates/exact_rules.hpp"

#include <algorithm>
#include <iterator>
#include <tbb/global_control.h>
#include <vector>

namespace update_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 4096};

std::vector<update_rule> rules_to_test() {
  std::vector<update_rule> all{std::begin(exact_rules), std::end(exact_rules)};
  all.push_back(rules::nadam{.step = 1});
  all.push_back(rules::ftrl{.learning_rate_power = -0.3});
  all.push_back(rules::ftrl{.learning_rate = 0});
  return all;
}

/// A variable, its slots and k gradients.
template <class T>
struct job {
  guarded<T> value;
  std::vector<guarded<T>> slots;
  std::vector<guarded<float>> gradients;
  std::vector<elements> sources;

  job(size_t count, size_t slot_total, size_t k, bool with_extremes) {
    auto make = with_extremes ? array_maker<T>{extreme<T>} : array_maker<T>{normal<T>};
    auto make_gradient
      = with_extremes ? array_maker<float>{extreme<float>} : array_maker<float>{normal<float>};
    value = make(count, 1);
    for (size_t i = 0; i < slot_total; ++i) {
      slots.push_back(make(count, 10 + i));
      for (auto& element : slots.back().span())
        element = std::abs(element); // Adam's second slot is never negative
    }
    for (size_t i = 0; i < k; ++i)
      gradients.push_back(make_gradient(count, 20 + i));
    for (auto& gradient : gradients)
      sources.emplace_back(gradient.view());
  }

  [[nodiscard]] gradient_sum mean() const {
    return {sources, static_cast<double>(sources.size()), 1};
  }

  [[nodiscard]] std::vector<replaced<T>> slots_in_place() {
    return mapped(slots, [](auto& slot) { return in_place(slot.span()); });
  }

  bool same_state(job& other) {
    for (size_t i = 0; i < slots.size(); ++i)
      if (!same_bits(slots[i], other.slots[i])) return false;
    return same_bits(value, other.value);
  }
};

} // namespace

TEST_SUITE("kernels/updates/update") {
  TEST_CASE_TEMPLATE("both twins leave the same bits, whatever the size, rule and fill", T, float,
                     double) {
    for (const auto& rule : rules_to_test())
      for (bool with_extremes : {false, true})
        for (auto count : sizes)
          for (size_t k : {1, 2, 5}) {
            CAPTURE(name_of(rule));
            CAPTURE(count);
            CAPTURE(k);
            job<T> expected{count, slot_count(rule), k, with_extremes};
            auto got = job<T>{count, slot_count(rule), k, with_extremes};
            reference::update<T>(plain, rule, expected.mean(), in_place(expected.value.span()),
                                 expected.slots_in_place());
            cpu::update<T>(fast, rule, got.mean(), in_place(got.value.span()),
                           got.slots_in_place());
            CHECK(expected.same_state(got));
          }
  }

  TEST_CASE("a new version beside the old one has the bits that replacing it would give") {
    // The last size is over the limit from which on the new version is written past the caches.
    for (size_t count : {size_t{33}, size_t{16385}, size_t{3} << 20}) {
      const update_rule rule = rules::adam{};
      job<float> expected{count, 2, 3, false}, got{count, 2, 3, false};
      auto old = got.value;
      auto block = cpu_pool().allocate(count * sizeof(float) + 64);
      std::span<float> after{reinterpret_cast<float*>(block.get()), count};
      after.data()[count] = 42;
      std::vector<guarded<float>> new_slots(2, guarded<float>{count});
      const replaced<float> slots[]
        = {{got.slots[0].view(), new_slots[0].span()}, {got.slots[1].view(), new_slots[1].span()}};
      cpu::update<float>(fast, rule, got.mean(), {got.value.view(), after}, slots);
      cpu::update<float>(fast, rule, expected.mean(), in_place(expected.value.span()),
                         expected.slots_in_place());
      CHECK(first_difference<float>(after, expected.value.span()) == count);
      CHECK(same_bits(new_slots[0], expected.slots[0]));
      CHECK(same_bits(new_slots[1], expected.slots[1]));
      CHECK(same_bits(old, got.value));
      CHECK(after.data()[count] == 42);
    }
  }

  TEST_CASE("the bits are the same for any number of threads and any grain") {
    const update_rule rule = rules::lamb{.weight_decay = 0.1}; // which adds up norms, too
    job<float> expected{100003, 2, 4, false};
    reference::update<float>(plain, rule, expected.mean(), in_place(expected.value.span()),
                             expected.slots_in_place());
    for (size_t threads : {1, 2, 3, 8})
      for (size_t grain : {1, 777, 16384}) {
        tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads};
        job<float> got{100003, 2, 4, false};
        cpu::update<float>({.grain_elements = grain}, rule, got.mean(), in_place(got.value.span()),
                           got.slots_in_place());
        CHECK(expected.same_state(got));
      }
  }

  TEST_CASE("a new version that is written past the caches may begin its chunks anywhere") {
    const update_rule rule = rules::sgd{};
    constexpr size_t count = size_t{3} << 20;
    job<float> expected{count, 0, 1, false}, got{count, 0, 1, false};
    cpu::update<float>(fast, rule, expected.mean(), in_place(expected.value.span()), {});
    auto block = cpu_pool().allocate(count * sizeof(float));
    std::span<float> after{reinterpret_cast<float*>(block.get()), count};
    cpu::update<float>({.grain_elements = 777}, rule, got.mean(), {got.value.view(), after}, {});
    CHECK(first_difference<float>(after, expected.value.span()) == count);
  }

  TEST_CASE("accumulating as gradients come, then applying the mean, gives the same bits") {
    for (size_t k : {2, 8}) {
      const update_rule rule = rules::momentum{};
      job<float> fused{1009, 1, k, false}, unfused{1009, 1, k, false};
      cpu::update<float>(fast, rule, fused.mean(), in_place(fused.value.span()),
                         fused.slots_in_place());
      auto sum = unfused.gradients[0];
      for (size_t i = 1; i < k; ++i)
        cpu::accumulate<float>(fast, unfused.sources[i], sum.span());
      const elements sources[] = {sum.view()};
      cpu::update<float>(fast, rule, {sources, static_cast<double>(k), 1},
                         in_place(unfused.value.span()), unfused.slots_in_place());
      CHECK(fused.same_state(unfused));
    }
  }

  TEST_CASE_TEMPLATE("an average follows the new value, wherever that goes", T, float, double) {
    const update_rule rule = rules::sgd{.learning_rate = 0.1};
    for (auto count : {size_t{0}, size_t{33}, size_t{16385}, size_t{3} << 20}) {
      CAPTURE(count);
      job<T> replaced_values{count, 0, 2, false}, kept{count, 0, 2, false};
      auto shadow = normal<T>(count, 7), other_shadow = shadow, expected = shadow;
      reference::update<T>(plain, rule, replaced_values.mean(),
                           in_place(replaced_values.value.span()), {}, {shadow.span(), 0.125});
      for (size_t i = 0; i < count; ++i)
        expected[i] -= T{0.125} * (expected[i] - replaced_values.value[i]);
      CHECK(same_bits(shadow, expected));
      auto block = cpu_pool().allocate(count * sizeof(T));
      cpu::update<T>(fast, rule, kept.mean(),
                     {kept.value.view(), {reinterpret_cast<T*>(block.get()), count}}, {},
                     {other_shadow.span(), 0.125});
      CHECK(same_bits(other_shadow, expected));
    }
  }

  TEST_CASE_TEMPLATE("a limit cuts the mean gradient, and leaves NaN", T, float, double) {
    for (size_t count : sizes) {
      job<T> made{count, 0, 3, true};
      auto mean = made.mean();
      guarded<T> whole{count}, plain_cut{count}, fast_cut{count};
      reference::reduce<T>(plain, mean, whole.span());
      mean.limit = 0.75;
      reference::reduce<T>(plain, mean, plain_cut.span());
      cpu::reduce<T>(fast, mean, fast_cut.span());
      for (auto& value : whole.span())
        value = std::isnan(value) ? value : std::min(std::max(value, T{-0.75}), T{0.75});
      CHECK(same_bits(plain_cut, whole));
      CHECK(same_bits(fast_cut, whole));
    }
  }
}

} // namespace update_test
