// SPDX-License-Identifier: Apache-2.0
// Goal: rows that come in any order and more than once end where they belong, added up in one
// order. Method: random rows against a plain map from index to row, and both twins against each
// other.
#include "kernels/math/sparse.hpp"
#include "kernels/updates/sparse_update.hpp"
#include "kernels/updates/update.hpp"
#include "messages/mapped.hpp"
#include "tests/kernels/arrays.hpp"

#include <map>
#include <tbb/global_control.h>

namespace sparse_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 256};

/// Rows from k sources for a table, the last source in bf16, with workspace for their order.
struct random_rows {
  size_t table_rows;
  size_t width;
  std::vector<std::vector<int64_t>> indices;
  std::vector<guarded<float>> values;
  guarded<bfloat16> last_values;
  std::vector<row_source> sources;
  std::vector<row_entry> entries;
  std::vector<size_t> starts;
  sparse_sum gradient;

  random_rows(size_t k, size_t rows, size_t of_table, size_t of_width)
    : table_rows(of_table), width(of_width), last_values(rows * of_width) {
    std::mt19937_64 engine{k * 1000 + rows};
    for (size_t i = 0; i < k; ++i) {
      auto& chosen = indices.emplace_back(rows);
      for (auto& index : chosen)
        index = static_cast<int64_t>(engine() % table_rows);
      values.push_back(normal<float>(rows * width, i));
    }
    for (size_t i = 0; i < last_values.span().size(); ++i)
      last_values[i] = to_bfloat16(values.back()[i]);
    for (size_t i = 0; i < k; ++i)
      sources.emplace_back(indices[i],
                           i + 1 < k ? elements{values[i].view()} : elements{last_values.view()});
    entries.resize(2 * row_count(sources));
    starts.resize(row_count(sources) + 1);
    gradient = {sources, order_rows(sources, entries, starts), width, static_cast<double>(k)};
  }

  random_rows(const random_rows&) = delete;

  /// The combined rows by index, computed in the plainest way.
  [[nodiscard]] std::map<int64_t, std::vector<float>> oracle() const {
    std::map<int64_t, std::vector<float>> sums;
    std::map<int64_t, std::vector<size_t>> seen;
    for (size_t source = 0; source < sources.size(); ++source)
      for (size_t row = 0; row < indices[source].size(); ++row) {
        auto& sum = sums[indices[source][row]];
        auto& where = seen[indices[source][row]];
        if (where.empty() || where.back() != source) where.push_back(source);
        bool is_new = sum.empty();
        sum.resize(width);
        for (size_t column = 0; column < width; ++column) {
          size_t at = row * width + column;
          const auto& from = sources[source].values;
          float value
            = from.type == dtype::bf16 ? to_float(from.as<bfloat16>()[at]) : from.as<float>()[at];
          sum[column] = is_new ? value : sum[column] + value;
        }
      }
    for (auto& [index, sum] : sums)
      for (auto& value : sum) {
        auto divisor = gradient.divides_by_count ? static_cast<float>(seen[index].size())
                                                 : static_cast<float>(gradient.divisor);
        value = limited(value / divisor * static_cast<float>(gradient.scale),
                        static_cast<float>(gradient.limit));
      }
    return sums;
  }
};

/// The shapes that every operation is tested with: sources, rows of each, table rows, width.
constexpr size_t shapes[][4]
  = {{1, 0, 5, 3},      {1, 1, 1, 1},      {2, 7, 3, 1},      {3, 33, 1, 17},
     {4, 100, 256, 64}, {2, 31, 20000, 5}, {2, 9, 100000, 1}, {3, 5, 4, 1009}};

template <class Test>
void for_all_shapes(const Test& test) {
  for (const auto& [k, rows, table_rows, width] : shapes)
    for (bool by_count : {false, true}) {
      CAPTURE(k);
      CAPTURE(rows);
      CAPTURE(table_rows);
      CAPTURE(width);
      random_rows made{k, rows, table_rows, width};
      made.gradient.divides_by_count = by_count;
      made.gradient.scale = by_count ? 1 : 0.5;
      if (by_count) made.gradient.limit = 0.75;
      test(made);
    }
}

} // namespace

TEST_SUITE("kernels/math/sparse") {
  TEST_CASE("rows are sorted by index, then source, then place") {
    for_all_shapes([](random_rows& made) {
      const auto& order = made.gradient.order;
      CHECK(order.entries.size() == row_count(made.sources));
      CHECK(order.distinct() == made.oracle().size());
      for (size_t i = 1; i < order.entries.size(); ++i) {
        const auto& a = order.entries[i - 1];
        const auto& b = order.entries[i];
        CHECK(std::tuple{a.index, a.source, a.row} < std::tuple{b.index, b.source, b.row});
      }
      for (const auto& entry : order.entries)
        CHECK(made.indices[entry.source][entry.row] == entry.index);
    });
  }

  TEST_CASE("indices of more than 32 bits are sorted too") {
    const int64_t indices[] = {int64_t{1} << 62, 5, (int64_t{1} << 40) + 5, 5, INT64_MAX};
    const float values[] = {1, 2, 3, 4, 5};
    const row_source sources[] = {{indices, std::span{values}}};
    row_entry entries[10];
    size_t starts[6];
    auto order = order_rows(sources, entries, starts);
    CHECK(order.distinct() == 4);
    CHECK(order.index(0) == 5);
    CHECK(order.rows(0).size() == 2);
    CHECK(order.index(1) == (int64_t{1} << 40) + 5);
    CHECK(order.index(3) == INT64_MAX);
  }

  TEST_CASE("a count is the number of sources that hold an index, not of rows") {
    const row_entry rows[] = {{7, 0, 1}, {7, 0, 4}, {7, 2, 0}};
    CHECK(source_count(rows) == 2);
    CHECK(source_count({}) == 0);
  }

  TEST_CASE("rows of one index are combined in order") {
    for_all_shapes([](random_rows& made) {
      size_t count = made.gradient.order.distinct() * made.width;
      guarded<float> plain_values{count}, fast_values{count};
      reference::combine<float>(plain, made.gradient, plain_values.span());
      cpu::combine<float>(fast, made.gradient, fast_values.span());
      CHECK(same_bits(plain_values, fast_values));
      size_t position = 0, wrong = 0;
      for (const auto& [index, row] : made.oracle()) {
        wrong += made.gradient.order.index(position) == index ? 0 : 1;
        for (size_t column = 0; column < made.width; ++column)
          wrong += same_bits(row[column], plain_values[position * made.width + column]) ? 0 : 1;
        ++position;
      }
      CHECK(wrong == 0);
    });
  }

  TEST_CASE("the dense form has rows where they belong") {
    for_all_shapes([](random_rows& made) {
      size_t count = made.table_rows * made.width;
      auto plain_dense = normal<float>(count, 9), fast_dense = plain_dense;
      guarded<float> dense{count};
      std::ranges::fill(dense.span(), 0.0F);
      for (const auto& [index, row] : made.oracle())
        for (size_t column = 0; column < made.width; ++column)
          dense[static_cast<size_t>(index) * made.width + column] = row[column];
      reference::densify<float>(plain, made.gradient, plain_dense.span());
      cpu::densify<float>(fast, made.gradient, fast_dense.span());
      CHECK(same_bits(plain_dense, dense));
      CHECK(same_bits(fast_dense, dense));
    });
  }

  TEST_CASE_TEMPLATE("a sparse update changes the touched rows as a dense one would, and no others",
                     T, float, double) {
    for (auto name : choice_names<update_rule>()) {
      auto rule = at_update(choice_of_name<update_rule>("optimizer", name).value(), 3);
      CAPTURE(name);
      if (is_layer_wise(rule)) continue; // what those move is the whole variable
      for_all_shapes([&](random_rows& made) {
        size_t count = made.table_rows * made.width;
        std::vector<guarded<T>> old, dense, plain_state, fast_state;
        for (size_t i = 0; i <= slot_count(rule); ++i) {
          auto& array = old.emplace_back(normal<T>(count, 30 + i));
          for (auto& value : array.span())
            value = std::abs(value);
        }
        dense = plain_state = fast_state = old;
        auto slots = [&](std::vector<guarded<T>>& state) {
          std::vector<std::span<T>> result;
          for (size_t i = 1; i < state.size(); ++i)
            result.push_back(state[i].span());
          return result;
        };
        reference::sparse_update<T>(plain, rule, made.gradient, plain_state[0].span(),
                                    slots(plain_state));
        cpu::sparse_update<T>(fast, rule, made.gradient, fast_state[0].span(), slots(fast_state));

        guarded<T> gradient{count};
        reference::densify<T>(plain, made.gradient, gradient.span());
        const elements sources[] = {gradient.view()};
        auto dense_slots = mapped(slots(dense), [](auto slot) { return in_place(slot); });
        reference::update<T>(plain, rule, {sources, 1, 1}, in_place(dense[0].span()), dense_slots);
        std::vector<bool> touched(made.table_rows);
        for (size_t i = 0; i < made.gradient.order.distinct(); ++i)
          touched[static_cast<size_t>(made.gradient.order.index(i))] = true;
        size_t wrong = 0;
        for (size_t array = 0; array < old.size(); ++array)
          for (size_t i = 0; i < count; ++i) {
            auto expected = touched[i / made.width] ? dense[array][i] : old[array][i];
            wrong += same_bits(plain_state[array][i], expected) ? 0 : 1;
            wrong += same_bits(fast_state[array][i], expected) ? 0 : 1;
          }
        CHECK(wrong == 0);
      });
    }
  }

  TEST_CASE("the norm of combined rows needs no memory for them") {
    for_all_shapes([](random_rows& made) {
      double sum = 0;
      for (const auto& [index, row] : made.oracle())
        for (double value : row)
          sum += value * value;
      CHECK(reference::squared_norm<float>(plain, made.gradient) == sum);
      CHECK(cpu::squared_norm<float>(fast, made.gradient) == doctest::Approx(sum).epsilon(1e-12));
    });
  }

  TEST_CASE("the bits are the same for any number of threads and any grain") {
    random_rows made{4, 500, 97, 33};
    guarded<float> expected{97 * 33};
    reference::densify<float>(plain, made.gradient, expected.span());
    for (size_t threads : {1, 2, 8})
      for (size_t grain : {1, 100, 16384}) {
        tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads};
        guarded<float> got{97 * 33};
        cpu::densify<float>({.grain_elements = grain}, made.gradient, got.span());
        CHECK(same_bits(expected, got));
      }
  }
}

} // namespace sparse_test
