// SPDX-License-Identifier: Apache-2.0
// Goal: a tape's precision is that of its products, forward and backward, and of nothing else.
// Method: values and gradients against plain sums of products of operands that were rounded by
// hand, on both twins; then the operations that stay full, and the refusal of f64.
#include "kernels/math/attention.hpp"
#include "kernels/tape/tape.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/tape/drawn.hpp"

#include <algorithm>
#include <functional>

namespace precision_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr product_precision less_than_full[]
  = {product_precision::tf32, product_precision::bf16, product_precision::f16};

constexpr int64_t rows = 5, inner = 7, columns = 3;

/// A matrix by its elements, so that one reads it transposed by other indices.
using matrix = std::function<float(int64_t row, int64_t column)>;

matrix elements_of(const tensor& stored, bool transposed) {
  return [=](int64_t row, int64_t column) {
    auto index
      = transposed ? column * stored.extents()[1] + row : row * stored.extents()[1] + column;
    return stored.values<float>()[static_cast<size_t>(index)];
  };
}

matrix rounded(const matrix& of, product_precision to) {
  return [=](int64_t row, int64_t column) { return troupe::rounded(of(row, column), to); };
}

matrix transposed(const matrix& of) {
  return [=](int64_t row, int64_t column) { return of(column, row); };
}

/// Whether `got` is the product, up to some roundings of its sums.
bool is_product(const matrix& got, const matrix& a, const matrix& b, shape extents, int64_t terms) {
  for (int64_t row = 0; row < extents[0]; ++row)
    for (int64_t column = 0; column < extents[1]; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < terms; ++i) {
        auto term = static_cast<double>(a(row, i)) * b(i, column);
        sum += term;
        magnitude += std::abs(term);
      }
      auto distance = std::abs(static_cast<double>(got(row, column)) - sum);
      if (distance > roundings<float>(2 * static_cast<double>(terms)) * magnitude) return false;
    }
  return true;
}

template <class Context>
tensor dense(basic_tape<Context>& t, expression loss, expression by) {
  auto gradients = t.gradients(loss, {by});
  REQUIRE(gradients);
  return std::get<tensor>(gradients->front());
}

/// The value of what `build` writes down on a tape of some precision, and its gradient by the first
/// parameter.
struct outcome {
  std::vector<float> value;
  std::vector<float> gradient;

  bool operator==(const outcome&) const = default;
};

template <class Build>
outcome outcome_of(product_precision precision, const tensor& first, const tensor& second,
                   Build build) {
  tape t{{}, {}, precision};
  auto p = t.parameter(first), q = t.parameter(second);
  auto result = build(t, p, q);
  auto value = t.value(result);
  REQUIRE_MESSAGE(value, (value ? "" : value.error().message));
  auto gradient = dense(t, t.mean(result), p);
  auto numbers = [](const tensor& of) {
    auto values = of.values<float>();
    return std::vector(values.begin(), values.end());
  };
  return {numbers(*value), numbers(gradient)};
}

} // namespace

TEST_SUITE("kernels/tape") {
  TEST_CASE_TEMPLATE("a product and its derivatives are those of rounded operands", Context,
                     reference::context, cpu::context) {
    for (auto precision : less_than_full)
      for (int variant = 0; variant < 4; ++variant) {
        const bool ta = variant % 2 != 0, tb = variant / 2 != 0;
        CAPTURE(to_string(precision));
        CAPTURE(variant);
        auto a = drawn<float>(ta ? shape{inner, rows} : shape{rows, inner}, "a");
        auto b = drawn<float>(tb ? shape{columns, inner} : shape{inner, columns}, "b");
        auto weights = drawn<float>({rows, columns}, "weights");
        basic_tape<Context> t{{}, {}, precision};
        auto p = t.parameter(a), q = t.parameter(b);
        auto c = t.matmul(p, q, {ta, tb});
        auto loss = t.scale(t.mean(t.multiply(c, t.constant(weights))), rows * columns);
        REQUIRE(t.value(loss));

        auto left = rounded(elements_of(a, ta), precision);
        auto right = rounded(elements_of(b, tb), precision);
        CHECK(is_product(elements_of(*t.value(c), false), left, right, {rows, columns}, inner));

        // The gradient of c arrives as the weights, rounded to f32 on its way through the mean.
        basic_tape<Context> of_c;
        auto given = of_c.parameter(*t.value(c));
        auto same_loss
          = of_c.scale(of_c.mean(of_c.multiply(given, of_c.constant(weights))), rows * columns);
        auto g = rounded(elements_of(dense(of_c, same_loss, given), false), precision);
        CHECK(is_product(elements_of(dense(t, loss, p), ta), g, transposed(right), {rows, inner},
                         columns));
        CHECK(is_product(elements_of(dense(t, loss, q), tb), transposed(left), g, {inner, columns},
                         rows));
      }
  }

  TEST_CASE("a product of a batch has the precision in each matrix") {
    auto a = drawn<float>({2, rows, inner}, "a"), b = drawn<float>({2, inner, columns}, "b");
    auto batch = [](auto& t, auto p, auto q) { return t.matmul(p, q); };
    auto apart = [](auto& t, auto p, auto q) {
      auto one = [&](int64_t i) {
        return t.matmul(t.reshape(t.slice(p, i, i + 1), {rows, inner}),
                        t.reshape(t.slice(q, i, i + 1), {inner, columns}));
      };
      return t.reshape(t.concatenate(one(0), one(1)), {2, rows, columns});
    };
    for (auto precision : less_than_full)
      CHECK(outcome_of(precision, a, b, batch) == outcome_of(precision, a, b, apart));
  }

  TEST_CASE("a part that is computed again has the precision again") {
    auto a = drawn<float>({rows, inner}, "a"), b = drawn<float>({inner, columns}, "b");
    auto once = [](auto& t, auto p, auto q) { return t.tanh(t.matmul(p, q)); };
    auto again = [](auto& t, auto p, auto q) {
      return t.recompute([&t, p, q] { return t.tanh(t.matmul(p, q)); });
    };
    auto full = outcome_of(product_precision::full, a, b, once);
    for (auto precision : less_than_full) {
      auto wanted = outcome_of(precision, a, b, once);
      CHECK(outcome_of(precision, a, b, again) == wanted);
      CHECK_FALSE(wanted == full);
    }
  }

  TEST_CASE("attention has the precision, forward and back") {
    auto packed = drawn<float>({2, 4, 12}, "packed"), none = drawn<float>({1}, "unused");
    auto build = [](auto& t, auto p, auto) { return t.causal_self_attention(p, 2); };
    for (auto precision : less_than_full) {
      const attention_form form{2, 4, 2, 2, precision};
      auto got = outcome_of(precision, packed, none, build);
      std::vector<float> output(32), log_sums(16), gradient(96);
      const std::vector<float> arriving(32, 1.F / 32);
      cpu::causal_self_attention<float>({}, form, packed.values<float>(), output, log_sums);
      cpu::causal_self_attention_gradient<float>({}, form, packed.values<float>(),
                                                 {output, log_sums}, arriving, gradient);
      CHECK(got.value == output);
      CHECK(got.gradient == gradient);
      CHECK_FALSE(got == outcome_of(product_precision::full, packed, none, build));
    }
  }

  TEST_CASE("row sums and convolutions are full on every tape") {
    auto check = [](const tensor& first, const tensor& second, auto build) {
      auto wanted = outcome_of(product_precision::full, first, second, build);
      for (auto precision : less_than_full)
        CHECK(outcome_of(precision, first, second, build) == wanted);
    };
    check(drawn<float>({4, 6}, "matrix"), drawn<float>({1}, "unused"),
          [](auto& t, auto p, auto) { return t.row_sums(p); });
    check(drawn<float>({2, 4, 4, 1}, "images"), drawn<float>({3, 3, 1, 2}, "weights"),
          [](auto& t, auto p, auto q) { return t.conv2d(p, q); });
  }

  TEST_CASE_TEMPLATE("gradients are divided by the scale of their loss, and numbers are told",
                     Context, reference::context, cpu::context) {
    tensor indices{dtype::i64, {3}};
    std::ranges::fill(indices.mutable_values<int64_t>(), 1);
    auto table = drawn<float>({2, 3}, "table"), factors = drawn<float>({3, 3}, "factors");
    auto gradients_of = [&](auto& t, double scale) {
      auto p = t.parameter(table), q = t.parameter(factors);
      auto loss = t.mean(t.multiply(t.embedding(p, indices), q));
      auto gradients = t.gradients(t.scale(loss, scale), {p, q});
      REQUIRE(gradients);
      return *gradients;
    };
    basic_tape<Context> t;
    auto plain = gradients_of(t, 1);
    auto unscaled = t.unscaled(gradients_of(t, 1024), 1024);
    CHECK(unscaled.non_finite.template values<double>()[0] == 0);
    auto numbers = [](const gradient& of) {
      const auto* rows = std::get_if<indexed_slices>(&of);
      auto values
        = (rows == nullptr ? std::get<tensor>(of) : rows->values).template values<float>();
      return std::vector(values.begin(), values.end());
    };
    CHECK(std::holds_alternative<indexed_slices>(unscaled.gradients[0]));
    for (size_t i = 0; i < 2; ++i)
      CHECK(numbers(unscaled.gradients[i]) == numbers(plain[i]));
    // One row of three columns, and nine factors: beyond f32, every element is infinite.
    auto lost = t.unscaled(gradients_of(t, 1e39), 1e39);
    CHECK(lost.non_finite.template values<double>()[0] == 12);
  }

  TEST_CASE("products of f64 are refused in any precision but the full one") {
    for (auto precision : less_than_full) {
      tape t{{}, {}, precision};
      auto matrix = t.constant(zeros({2, 2}, dtype::f64));
      auto refused = t.value(t.matmul(matrix, matrix));
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::type_mismatch);
      CHECK(refused.error().message
            == "matmul: f64 [2, 2] and f64 [2, 2] have a product of full precision alone, not of "
                 + std::string(to_string(precision)) + "; cast to f32");
      tape other{{}, {}, precision};
      auto packed = other.constant(zeros({1, 2, 3}, dtype::f64));
      CHECK(other.value(other.causal_self_attention(packed, 1)).error().message
            == "causal_self_attention: f64 [1, 2, 3] has products of full precision alone, not of "
                 + std::string(to_string(precision)) + "; cast to f32");
    }
  }
}

} // namespace precision_test
