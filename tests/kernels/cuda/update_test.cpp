// SPDX-License-Identifier: Apache-2.0
// Goal: sums, norms and fused updates on a GPU have the bits of the cpu twins. Method: the same
// calls over rules, sizes, sources of all types, fills and places that are aligned or not.
#include "kernels/math/cast.hpp"
#include "kernels/math/clip.hpp"
#include "kernels/tensor/parallel.hpp"
#include "kernels/updates/update.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"
#include "tests/kernels/updates/exact_rules.hpp"

#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

/// Gradients of several types, here and on the device.
struct sources {
  std::vector<guarded<float>> f32;
  std::vector<guarded<bfloat16>> bf16;
  std::vector<guarded<float16>> f16;
  std::vector<device_array<float>> far_f32;
  std::vector<device_array<bfloat16>> far_bf16;
  std::vector<device_array<float16>> far_f16;
  std::vector<elements> here;
  std::vector<elements> there;

  /// Every third one of 16 bits, if `mixed`. The last one is not aligned if `offset` is not 0.
  sources(size_t count, size_t k, bool with_extremes, bool mixed, size_t offset) {
    f32.reserve(k), bf16.reserve(k), f16.reserve(k);
    for (size_t i = 0; i < k; ++i) {
      size_t begin = i + 1 == k ? offset : 0;
      auto wide = with_extremes ? extreme<float>(count, 20 + i) : normal<float>(count, 20 + i);
      if (mixed && i % 3 == 1)
        add(bf16.emplace_back(count), far_bf16, wide, begin);
      else if (mixed && i % 3 == 2)
        add(f16.emplace_back(count), far_f16, wide, begin);
      else
        add(f32.emplace_back(count), far_f32, wide, begin);
    }
  }

  template <class T>
  void add(guarded<T>& made, std::vector<device_array<T>>& far, guarded<float>& wide,
           size_t begin) {
    reference::cast(plain, wide.view(), made.span());
    here.emplace_back(made.view());
    there.emplace_back(far.emplace_back(made, begin).view());
  }

  [[nodiscard]] gradient_sum mean_here() const { return {here, static_cast<double>(here.size())}; }

  [[nodiscard]] gradient_sum mean_there() const {
    return {there, static_cast<double>(there.size())};
  }
};

/// A variable and its slots, here and on the device.
template <class T>
struct state {
  std::vector<guarded<T>> here; ///< The variable, then its slots.
  std::vector<device_array<T>> there;

  state(size_t count, size_t slots, bool with_extremes, size_t offset) {
    for (size_t i = 0; i <= slots; ++i) {
      here.push_back(with_extremes ? extreme<T>(count, i) : normal<T>(count, i));
      if (i > 0)
        for (auto& element : here.back().span())
          element = std::abs(element); // Adam's second slot is never negative
      there.emplace_back(here.back(), i == 1 ? offset : 0);
    }
  }

  std::vector<replaced<T>> slots_here() {
    std::vector<replaced<T>> result;
    for (size_t i = 1; i < here.size(); ++i)
      result.push_back(in_place(here[i].span()));
    return result;
  }

  std::vector<replaced<T>> slots_there() {
    std::vector<replaced<T>> result;
    for (size_t i = 1; i < there.size(); ++i)
      result.push_back(in_place(there[i].span()));
    return result;
  }

  bool agrees() {
    for (size_t i = 0; i < here.size(); ++i)
      if (!holds_bits(there[i], here[i])) return false;
    return true;
  }
};

template <class T>
void compare(const update_rule& rule, size_t count, size_t k, bool with_extremes, size_t offset) {
  CAPTURE(name_of(rule));
  CAPTURE(count);
  CAPTURE(k);
  sources gradients{count, k, with_extremes, k == 5, offset};
  state<T> both{count, slot_count(rule), with_extremes, offset};
  reference::update<T>(plain, rule, gradients.mean_here(), in_place(both.here[0].span()),
                       both.slots_here());
  cuda::update<T>(gpu(), rule, gradients.mean_there(), in_place(both.there[0].span()),
                  both.slots_there());
  CHECK(both.agrees());
}

/// An update with an average; its variable and slots become others and stay as they are.
template <class T>
void compare_averaged(const update_rule& rule, size_t count) {
  CAPTURE(name_of(rule));
  CAPTURE(count);
  sources gradients{count, 2, false, false, 0};
  state<T> both{count, slot_count(rule), false, 0};
  auto before = both.here;
  auto shadow = normal<T>(count, 7), nothing = guarded<T>{count};
  device_array<T> far_shadow{shadow};
  std::vector<device_array<T>> after;
  for (size_t i = 0; i < both.there.size(); ++i)
    after.emplace_back(nothing, i == 0 ? 1 : 0);
  std::vector<replaced<T>> slots;
  for (size_t i = 1; i < after.size(); ++i)
    slots.push_back({both.there[i].view(), after[i].span()});
  reference::update<T>(plain, rule, gradients.mean_here(), in_place(both.here[0].span()),
                       both.slots_here(), {shadow.span(), 0.125});
  cuda::update<T>(gpu(), rule, gradients.mean_there(), {both.there[0].view(), after[0].span()},
                  slots, {far_shadow.span(), 0.125});
  CHECK(holds_bits(far_shadow, shadow));
  for (size_t i = 0; i < after.size(); ++i) {
    CHECK(holds_bits(after[i], both.here[i]));
    CHECK(holds_bits(both.there[i], before[i]));
  }
}

} // namespace

TEST_SUITE("kernels/cuda/update") {
  TEST_CASE_TEMPLATE("every rule leaves the bits of the reference", T, float, double) {
    for (const auto& rule : exact_rules)
      for (bool with_extremes : {false, true})
        for (size_t count : {0, 1, 3, 33, 1025, 16389})
          compare<T>(rule, count, count % 2 == 0 ? 1 : 5, with_extremes, count == 1025 ? 1 : 0);
  }

  TEST_CASE("more gradients than a kernel reads at once give the same bits") {
    for (size_t k : {2, 31, 32, 33, 64, 97})
      compare<float>(rules::adam{}, 257, k, false, 0);
  }

  TEST_CASE_TEMPLATE("ftrl with any power agrees within the error of a power", T, float, double) {
    const update_rule rule = rules::ftrl{.learning_rate_power = -0.3};
    sources gradients{1009, 2, false, false, 0};
    state<T> both{1009, 2, false, 0};
    reference::update<T>(plain, rule, gradients.mean_here(), in_place(both.here[0].span()),
                         both.slots_here());
    cuda::update<T>(gpu(), rule, gradients.mean_there(), in_place(both.there[0].span()),
                    both.slots_there());
    for (size_t i = 0; i < both.here.size(); ++i) {
      auto got = both.there[i].fetch();
      CHECK(first_not_close(got.span(), both.here[i].span(), {roundings<T>(64), roundings<T>(64)})
            == 1009);
    }
  }

  TEST_CASE("no rule is left out of these tests") {
    std::set<size_t> tested;
    for (const auto& rule : exact_rules)
      tested.insert(rule.index());
    CHECK(tested.size() == choice_names<update_rule>().size());
  }

  TEST_CASE_TEMPLATE("every rule's average follows the new value, which may lie elsewhere", T,
                     float, double) {
    for (const auto& rule : exact_rules)
      for (size_t count : {0, 33, 1025})
        compare_averaged<T>(rule, count);
  }

  TEST_CASE("an update does not depend on the threads' order, and is the same each time") {
    const update_rule rule = rules::lamb{.weight_decay = 0.1};
    for (int turn = 0; turn < 4; ++turn)
      compare<float>(rule, 40007, 3, false, 0);
  }
}

TEST_SUITE("kernels/cuda/reduce") {
  TEST_CASE_TEMPLATE("a reduction of sources of all types has the reference's bits", T, float,
                     double) {
    for (auto count : device_sizes)
      for (size_t k : {1, 2, 7, 40})
        for (bool with_extremes : {false, true}) {
          CAPTURE(count);
          CAPTURE(k);
          sources gradients{count, k, with_extremes, true, k == 7 ? 1U : 0U};
          guarded<T> expected{count}, nothing{count};
          device_array<T> got{nothing};
          auto here = gradients.mean_here(), there = gradients.mean_there();
          here.scale = there.scale = 0.3;
          here.limit = there.limit = 0.75;
          reference::reduce<T>(plain, here, expected.span());
          cuda::reduce<T>(gpu(), there, got.span());
          CHECK(holds_bits(got, expected));
        }
  }

  TEST_CASE("accumulating adds one source after the other") {
    auto sum = normal<double>(1025, 1);
    auto source = normal<float>(1025, 2);
    device_array<double> far_sum{sum};
    device_array<float> far_source{source};
    reference::accumulate<double>(plain, source.view(), sum.span());
    cuda::accumulate<double>(gpu(), far_source.view(), far_sum.span());
    CHECK(holds_bits(far_sum, sum));
  }

  TEST_CASE_TEMPLATE("sums and norms have the bits of the cpu twin", T, float, double) {
    for (size_t count : {0, 1, 15, 16, 17, 127, 129, 1023, 16384, 16385, 49153, 100003, 300000})
      for (size_t offset : {0, 1}) {
        CAPTURE(count);
        auto values = normal<T>(count, 3);
        device_array<T> far{values, offset};
        CHECK(cuda::sum(gpu(), far.view()) == cpu::sum(fast, values.view()));
        CHECK(cuda::squared_norm(gpu(), far.view()) == cpu::squared_norm(fast, values.view()));
      }
    for (size_t count : {0, 1, 127, 129, 2047, 16385, 49153})
      for (size_t offset : {0, 1}) {
        sources gradients{count, 3, false, true, offset};
        auto norm = number_from([&](std::span<double> number) {
          cuda::squared_norm<T>(gpu(), gradients.mean_there(), number);
        });
        CHECK(norm == cpu::squared_norm<T>(fast, gradients.mean_here()));
      }
  }

  TEST_CASE("a sum of more chunks than a block has threads has the bits of the cpu twin") {
    auto values = normal<float>(300 * cpu::sum_chunk_elements + 7, 3);
    device_array<float> far{values};
    CHECK(cuda::sum(gpu(), far.view()) == cpu::sum(fast, values.view()));
  }

  TEST_CASE_TEMPLATE("all numbers that are not finite are counted", T, float, double) {
    for (auto count : device_sizes) {
      auto values = extreme<T>(count, 3);
      device_array<T> far{values, 1};
      auto wanted = reference::count_non_finite(plain, values.view());
      CHECK(cuda::count_non_finite(gpu(), far.view()) == wanted);
      guarded<double> number{1};
      device_array<double> of_both{number};
      const elements both[] = {far.view(), far.view()};
      cuda::count_non_finite(gpu(), both, of_both.span());
      CHECK(of_both.fetch()[0] == 2 * static_cast<double>(wanted));
    }
  }
}
