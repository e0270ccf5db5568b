// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of attention agree, no position sees a later one, and gradients are those of the
// function. Method: both twins over extents around a tile, in each precision; a case worked out by
// hand; changes of later positions; central differences.
#include "kernels/math/attention.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <algorithm>
#include <utility>

namespace attention_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr attention_form cases[]
  = {{0, 3, 1, 2},  {2, 0, 1, 2},  {1, 1, 1, 1},  {2, 3, 2, 5},  {1, 5, 3, 4},
     {1, 63, 1, 8}, {1, 64, 2, 3}, {2, 65, 1, 7}, {1, 130, 2, 9}};

/// With how much an operand changes at most, of its size.
constexpr std::pair<product_precision, double> lower_precisions[]
  = {{product_precision::tf32, 0x1p-11},
     {product_precision::bf16, 0x1p-8},
     {product_precision::f16, 0x1p-11}};

/// Everything that attention and its gradient write, and the gradient that arrives.
template <class T>
struct attention_results {
  guarded<T> output, log_sums, packed_gradient;

  explicit attention_results(const attention_form& of)
    : output(of.positions() * of.width()), log_sums(of.positions() * of.heads),
      packed_gradient(3 * output.span().size()) {}

  attention_outcome<T> outcome() { return {output.view(), log_sums.view()}; }
};

/// Whether two twins wrote the same, within a bound.
template <class T>
bool agree(attention_results<T>& got, attention_results<T>& wanted, bound allowed) {
  auto are_close = [&](guarded<T>& a, guarded<T>& b) {
    return first_not_close(a.span(), b.span(), allowed) == a.span().size();
  };
  return are_close(got.output, wanted.output) && are_close(got.log_sums, wanted.log_sums)
         && are_close(got.packed_gradient, wanted.packed_gradient);
}

template <class T>
void run_reference(const attention_form& form, guarded<T>& packed, guarded<T>& arriving,
                   attention_results<T>& into) {
  reference::causal_self_attention<T>(plain, form, packed.view(), into.output.span(),
                                      into.log_sums.span());
  reference::causal_self_attention_gradient<T>(plain, form, packed.view(), into.outcome(),
                                               arriving.view(), into.packed_gradient.span());
}

template <class T>
void run_fast(const attention_form& form, guarded<T>& packed, guarded<T>& arriving,
              attention_results<T>& into) {
  cpu::causal_self_attention<T>(fast, form, packed.view(), into.output.span(),
                                into.log_sums.span());
  cpu::causal_self_attention_gradient<T>(fast, form, packed.view(), into.outcome(), arriving.view(),
                                         into.packed_gradient.span());
}

} // namespace

TEST_SUITE("kernels/math/attention") {
  // A weight's relative error is that of its score: some head_width + 3 roundings of a product
  // that is below 10 here. Sums over a context of it add as many again.
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (const auto& form : cases) {
      CAPTURE(form.context);
      CAPTURE(form.heads);
      CAPTURE(form.head_width);
      auto size = form.positions() * form.width();
      auto packed = normal<T>(3 * size, 1), arriving = normal<T>(size, 2);
      attention_results<T> got{form}, wanted{form};
      run_reference(form, packed, arriving, wanted);
      run_fast(form, packed, arriving, got);
      auto n = static_cast<double>(form.head_width + form.context);
      CHECK(
        agree(got, wanted, {.relative = roundings<T>(10 * n), .absolute = roundings<T>(40 * n)}));
    }
  }

  // A twin rounds weights before they are divided by their sum, and the other afterwards: so a
  // weight differs by up to two roundings, and what is added up with it, too.
  TEST_CASE("in less than full precision, both twins agree up to the rounding of weights") {
    for (auto form : cases)
      for (auto [precision, rounding] : lower_precisions) {
        CAPTURE(form.context);
        CAPTURE(to_string(precision));
        form.precision = precision;
        auto size = form.positions() * form.width();
        auto packed = normal<float>(3 * size, 1), arriving = normal<float>(size, 2);
        attention_results<float> got{form}, wanted{form};
        run_reference(form, packed, arriving, wanted);
        run_fast(form, packed, arriving, got);
        CHECK(agree(got, wanted, {.relative = 4 * rounding, .absolute = 16 * rounding}));
      }
  }

  TEST_CASE("operands are rounded: a lone position gives its value so, and takes its gradient so") {
    for (auto [precision, rounding] : lower_precisions) {
      const attention_form form{.batch = 3, .context = 1, .head_width = 4, .precision = precision};
      auto size = form.positions() * form.width();
      auto packed = normal<float>(3 * size, 1), arriving = normal<float>(size, 2);
      attention_results<float> got{form};
      run_fast(form, packed, arriving, got);
      for (size_t i = 0; i < size; ++i) {
        auto value = i / form.width() * 3 * form.width() + 2 * form.width() + i % form.width();
        CHECK(got.output[i] == rounded(packed[value], precision));
        CHECK(got.packed_gradient[value] == rounded(arriving[i], precision));
      }
    }
  }

  TEST_CASE(
    "queries and keys are rounded before they meet, and afterwards what their products give") {
    for (auto [precision, rounding] : lower_precisions) {
      const attention_form full{1, 70, 2, 3};
      auto form = full;
      form.precision = precision;
      auto size = form.positions() * form.width();
      auto packed = normal<float>(3 * size, 1), arriving = normal<float>(size, 2);
      attention_results<float> got{form}, of_rounded{form};
      run_fast(form, packed, arriving, got);
      for (auto* operands : {&packed, &arriving})
        for (auto& value : operands->span())
          value = rounded(value, precision);
      run_fast(full, packed, arriving, of_rounded);
      CHECK(same_bits(got.log_sums, of_rounded.log_sums));
      CHECK_FALSE(same_bits(got.output, of_rounded.output));
      CHECK_FALSE(same_bits(got.packed_gradient, of_rounded.packed_gradient));
      CHECK(agree(got, of_rounded, {.relative = 4 * rounding, .absolute = 16 * rounding}));
    }
  }

  TEST_CASE("two positions of one head, worked out by hand") {
    // q = (1, 2), k = (3, log 3 / 2), v = (10, 50): the scores of position 1 are 6 and log 3.
    const double second_key = std::log(3.0) / 2;
    const double packed[] = {1, 3, 10, 2, second_key, 50};
    const attention_form form{1, 2, 1, 1};
    attention_results<double> got{form};
    cpu::causal_self_attention<double>(fast, form, packed, got.output.span(), got.log_sums.span());
    CHECK(got.output[0] == 10);
    CHECK(got.log_sums[0] == 3);
    auto first = std::exp(6.0);
    CHECK(got.output[1] == doctest::Approx((10 * first + 50 * 3) / (first + 3)));
    CHECK(got.log_sums[1] == doctest::Approx(std::log(first + 3)));
  }

  TEST_CASE("later positions change nothing, forward and back") {
    const attention_form form{1, 70, 2, 3};
    auto size = form.positions() * form.width();
    constexpr size_t seen = 66;
    auto packed = normal<float>(3 * size, 1);
    guarded<float> arriving{size};
    std::ranges::fill(arriving.span(), 0.F);
    std::ranges::fill(arriving.span().first(seen * form.width()), 1.F);
    attention_results<float> before{form}, after{form};
    run_fast(form, packed, arriving, before);
    for (auto& value : packed.span().subspan(seen * 3 * form.width()))
      value = 3 - value;
    run_fast(form, packed, arriving, after);
    auto same = [](guarded<float>& a, guarded<float>& b, size_t count) {
      return first_difference(a.span().first(count), b.span().first(count)) == count;
    };
    CHECK(same(before.output, after.output, seen * form.width()));
    CHECK_FALSE(same_bits(before.output, after.output));
    CHECK(same(before.packed_gradient, after.packed_gradient, 3 * seen * form.width()));
  }

  TEST_CASE("scores beyond what the exponential takes give weights all the same") {
    const attention_form form{1, 66, 1, 1};
    guarded<float> packed{3 * form.context};
    for (size_t i = 0; i < form.context; ++i) { // each key is nearer to all queries
      packed[3 * i] = 1000;
      packed[3 * i + 1] = static_cast<float>(i);
      packed[3 * i + 2] = static_cast<float>(i);
    }
    attention_results<float> got{form};
    cpu::causal_self_attention<float>(fast, form, packed.view(), got.output.span(),
                                      got.log_sums.span());
    for (size_t i = 0; i < form.context; ++i) {
      CHECK(got.output[i] == static_cast<float>(i));
      CHECK(got.log_sums[i] == 1000 * static_cast<float>(i));
    }
  }

  TEST_CASE("the gradients are those that differences show") {
    for (const auto& form : {attention_form{2, 3, 2, 2}, {1, 66, 1, 1}}) {
      auto size = form.positions() * form.width();
      auto packed = normal<double>(3 * size, 1), arriving = normal<double>(size, 2);
      auto loss = [&] {
        attention_results<double> of{form};
        cpu::causal_self_attention<double>(fast, form, packed.view(), of.output.span(),
                                           of.log_sums.span());
        double sum = 0;
        for (size_t i = 0; i < size; ++i)
          sum += of.output[i] * arriving[i];
        return sum;
      };
      attention_results<double> got{form};
      run_fast(form, packed, arriving, got);
      for (size_t i = 0; i < 3 * size; ++i) {
        auto kept = std::exchange(packed[i], packed[i] + 1e-5);
        auto above = loss();
        packed[i] = kept - 1e-5;
        auto below = loss();
        packed[i] = kept;
        auto wanted = (above - below) / 2e-5;
        CHECK(std::abs(got.packed_gradient[i] - wanted) <= 1e-7 * (1 + std::abs(wanted)));
      }
    }
  }
}

} // namespace attention_test
