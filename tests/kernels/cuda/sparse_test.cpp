// SPDX-License-Identifier: Apache-2.0
// Goal: sparse gradients on a GPU have the bits of the reference. Method: the same calls over
// widths, numbers of rows and repeated indices.
#include "kernels/math/sparse.hpp"
#include "kernels/updates/sparse_update.hpp"
#include "kernels/updates/update.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"

#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr size_t table_rows = 50;

const update_rule row_wise_rules[] = {rules::sgd{},      rules::momentum{.weight_decay = 0.1},
                                      rules::adagrad{},  rules::rmsprop{.momentum = 0.5},
                                      rules::adadelta{}, rules::centered_rmsprop{.epsilon = 10},
                                      rules::adam{},     rules::adamw{.step = 3},
                                      rules::adamax{},   rules::nadam{.step = 7},
                                      rules::ftrl{},     rules::amsgrad{},
                                      rules::lion{}};
const update_rule layer_wise_rules[] = {rules::lars{}, rules::lamb{.step = 3}};

/// A variable of the table's size and a rule's slots, here and on the device.
template <class T>
struct table {
  std::vector<guarded<T>> here; ///< The variable, then its slots.
  std::vector<device_array<T>> there;

  table(const update_rule& rule, size_t width) {
    for (size_t i = 0; i <= slot_count(rule); ++i) {
      here.push_back(normal<T>(table_rows * width, i));
      for (auto& element : here.back().span())
        element = std::abs(element);
      there.emplace_back(here.back(), i % 2);
    }
  }

  void check_bits() {
    for (size_t i = 0; i < here.size(); ++i)
      CHECK(holds_bits(there[i], here[i]));
  }
};

/// Rows of three sources, here and on the device.
struct rows {
  std::vector<std::vector<int64_t>> indices;
  std::vector<guarded<float>> values;
  std::vector<device_array<float>> far_values;
  std::vector<row_source> here;
  std::vector<row_source> there;
  std::vector<row_entry> entries;
  std::vector<size_t> starts;
  size_t width;

  rows(size_t count, size_t of_width) : width(of_width) {
    std::mt19937_64 engine{count + width};
    for (size_t source = 0; source < 3; ++source) {
      auto& drawn = indices.emplace_back(count * source);
      for (auto& index : drawn)
        index = static_cast<int64_t>(engine() % table_rows);
      values.push_back(normal<float>(drawn.size() * width, source));
      far_values.emplace_back(values.back(), source == 1 ? 1 : 0);
    }
    for (size_t source = 0; source < 3; ++source) {
      here.emplace_back(indices[source], elements{values[source].view()});
      there.emplace_back(indices[source], elements{far_values[source].view()});
    }
    entries.resize(2 * row_count(here));
    starts.resize(row_count(here) + 1);
  }

  sparse_sum sum(std::span<const row_source> of, bool divides_by_count) {
    return {.sources = of,
            .order = order_rows(of, entries, starts),
            .width = width,
            .divisor = 3,
            .scale = 0.5,
            .limit = 0.75,
            .divides_by_count = divides_by_count};
  }
};

} // namespace

TEST_SUITE("kernels/cuda/sparse") {
  TEST_CASE_TEMPLATE("combined and dense rows have the reference's bits", T, float, double) {
    for (size_t count : {0, 1, 5, 64})
      for (size_t width : {1, 3, 8, 129})
        for (bool by_count : {false, true}) {
          rows made{count, width};
          auto here = made.sum(made.here, by_count), there = made.sum(made.there, by_count);
          guarded<T> values{here.order.distinct() * width};
          auto dense = normal<T>(table_rows * width, 9);
          device_array<T> far_values{values}, far_dense{dense, 1};
          reference::combine<T>(plain, here, values.span());
          cuda::combine<T>(gpu(), there, far_values.span());
          CHECK(holds_bits(far_values, values));
          reference::densify<T>(plain, here, dense.span());
          cuda::densify<T>(gpu(), there, far_dense.span());
          CHECK(holds_bits(far_dense, dense));
          auto norm = reference::squared_norm<T>(plain, here);
          auto got = number_from(
            [&](std::span<double> number) { cuda::squared_norm<T>(gpu(), there, number); });
          CHECK(is_close(got, norm, {1e-12, 0}));
        }
  }

  TEST_CASE_TEMPLATE("an update of some rows has the reference's bits, and leaves the others", T,
                     float, double) {
    for (const auto& rule : row_wise_rules)
      for (size_t width : {1, 33}) {
        CAPTURE(name_of(rule));
        rows made{20, width};
        table<T> both{rule, width};
        std::vector<std::span<T>> slots_here, slots_there;
        for (size_t i = 1; i < both.here.size(); ++i) {
          slots_here.push_back(both.here[i].span());
          slots_there.push_back(both.there[i].span());
        }
        for (bool by_count : {false, true}) {
          reference::sparse_update<T>(plain, rule, made.sum(made.here, by_count),
                                      both.here[0].span(), slots_here);
          cuda::sparse_update<T>(gpu(), rule, made.sum(made.there, by_count), both.there[0].span(),
                                 slots_there);
          both.check_bits();
        }
      }
  }

  TEST_CASE_TEMPLATE("a layer-wise rule takes rows in their dense form, with the reference's bits",
                     T, float, double) {
    for (const auto& rule : layer_wise_rules)
      for (size_t width : {1, 33}) {
        CAPTURE(name_of(rule));
        rows made{20, width};
        table<T> both{rule, width};
        auto dense = normal<T>(table_rows * width, 9);
        device_array<T> far_dense{dense};
        std::vector<replaced<T>> slots_here, slots_there;
        for (size_t i = 1; i < both.here.size(); ++i) {
          slots_here.push_back(in_place(both.here[i].span()));
          slots_there.push_back(in_place(both.there[i].span()));
        }
        reference::densify<T>(plain, made.sum(made.here, false), dense.span());
        cuda::densify<T>(gpu(), made.sum(made.there, false), far_dense.span());
        const elements here[] = {elements{dense.view()}}, there[] = {elements{far_dense.view()}};
        reference::update<T>(plain, rule, {here, 1}, in_place(both.here[0].span()), slots_here);
        cuda::update<T>(gpu(), rule, {there, 1}, in_place(both.there[0].span()), slots_there);
        both.check_bits();
      }
  }

  TEST_CASE("no rule is left out of these tests") {
    std::set<size_t> tested;
    for (const auto& rule : row_wise_rules)
      if (!is_layer_wise(rule)) tested.insert(rule.index());
    for (const auto& rule : layer_wise_rules)
      if (is_layer_wise(rule)) tested.insert(rule.index());
    CHECK(tested.size() == choice_names<update_rule>().size());
  }
}
