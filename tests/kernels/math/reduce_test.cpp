// SPDX-License-Identifier: Apache-2.0
// Goal: gradients become one exactly as stated, and sums and norms do not depend on threads.
// Method: both twins over a table of sizes, counts and types of sources, ordinary and extreme.
#include "kernels/math/reduce.hpp"
#include "tests/kernels/arrays.hpp"

#include <tbb/global_control.h>

namespace reduce_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 4096};

/// The values rounded to another type.
template <class To>
guarded<To> rounded(guarded<float> values) {
  guarded<To> result{values.span().size()};
  for (size_t i = 0; i < result.span().size(); ++i) {
    if constexpr (std::is_same_v<To, float16>)
      result[i] = to_float16(values[i]);
    else if constexpr (std::is_same_v<To, bfloat16>)
      result[i] = to_bfloat16(values[i]);
    else
      result[i] = static_cast<To>(values[i]);
  }
  return result;
}

/// k sources of alternating types, f32 most often, with room to live in.
struct mixed_sources {
  std::vector<guarded<float>> wide;
  std::vector<guarded<float16>> half;
  std::vector<guarded<bfloat16>> brain;
  std::vector<elements> sources;

  mixed_sources(size_t k, size_t count, bool with_extremes) {
    wide.reserve(k), half.reserve(k), brain.reserve(k);
    for (size_t i = 0; i < k; ++i) {
      auto values = with_extremes ? extreme<float>(count, i) : normal<float>(count, i);
      if (i % 7 == 5)
        sources.emplace_back(half.emplace_back(rounded<float16>(values)).view());
      else if (i % 7 == 6)
        sources.emplace_back(brain.emplace_back(rounded<bfloat16>(values)).view());
      else
        sources.emplace_back(wide.emplace_back(values).view());
    }
  }
};

template <class T>
void compare_reduce(const gradient_sum& gradient) {
  size_t count = gradient.sources[0].count;
  guarded<T> expected{count}, got{count};
  reference::reduce<T>(plain, gradient, expected.span());
  cpu::reduce<T>(fast, gradient, got.span());
  CHECK(same_bits(expected, got));
}

} // namespace

TEST_SUITE("kernels/math/reduce") {
  TEST_CASE_TEMPLATE("k gradients of mixed types become one, bit for bit in both twins", T, float,
                     double) {
    for (bool with_extremes : {false, true})
      for (auto count : sizes)
        for (size_t k : {1, 2, 3, 4, 5, 6, 8, 9, 15}) {
          CAPTURE(count);
          CAPTURE(k);
          mixed_sources from{k, count, with_extremes};
          compare_reduce<T>({from.sources, static_cast<double>(k), 1});
          compare_reduce<T>({from.sources, 1, 0.125});
        }
  }

  TEST_CASE("f64 gradients of an f64 variable add up in f64") {
    auto a = normal<double>(1009, 1), b = normal<double>(1009, 2);
    const elements sources[] = {a.view(), b.view()};
    compare_reduce<double>({sources, 2, 1});
  }

  TEST_CASE("the sum is in the order of the sources") {
    const float big[] = {1e8F}, small[] = {1}, minus[] = {-1e8F};
    const elements lost[] = {std::span{big}, std::span{small}, std::span{minus}};
    const elements kept[] = {std::span{big}, std::span{minus}, std::span{small}};
    float out[1];
    cpu::reduce<float>(fast, {lost, 1, 1}, out);
    CHECK(out[0] == 0);
    cpu::reduce<float>(fast, {kept, 2, 3}, out);
    CHECK(out[0] == 1.5F);
  }

  TEST_CASE("the mean may replace the first source") {
    for (auto count : sizes) {
      auto a = normal<float>(count, 1), b = normal<float>(count, 2), out = a;
      const elements apart[] = {a.view(), b.view()};
      const elements together[] = {out.view(), b.view()};
      guarded<float> expected{count};
      reference::reduce<float>(plain, {apart, 2, 1}, expected.span());
      cpu::reduce<float>(fast, {together, 2, 1}, out.span());
      CHECK(same_bits(expected, out));
    }
  }

  TEST_CASE_TEMPLATE("accumulating agrees bit for bit", T, float, double) {
    for (auto count : sizes) {
      auto source = rounded<bfloat16>(normal<float>(count, 1));
      auto expected = normal<T>(count, 2), got = expected;
      reference::accumulate<T>(plain, source.view(), expected.span());
      cpu::accumulate<T>(fast, source.view(), got.span());
      CHECK(same_bits(expected, got));
    }
  }

  TEST_CASE_TEMPLATE("sums and norms agree but for the rounding of another order", T, float, double,
                     float16, bfloat16) {
    for (auto count : sizes) {
      CAPTURE(count);
      auto values = rounded<T>(normal<float>(count, 3));
      // n additions in double, each off by half a unit of a partial sum below n * 5 (or n * 25).
      double bound = static_cast<double>(count) * static_cast<double>(count) * 25 * 0x1p-53;
      auto difference = reference::sum(plain, values.view()) - cpu::sum(fast, values.view());
      CHECK(std::abs(difference) <= bound);
      difference
        = reference::squared_norm(plain, values.view()) - cpu::squared_norm(fast, values.view());
      CHECK(std::abs(difference) <= bound);
    }
  }

  TEST_CASE("infinities and NaN show in a sum and are counted") {
    for (auto count : sizes) {
      auto values = extreme<float>(count, 4);
      CHECK(same_bits(reference::sum(plain, values.view()), cpu::sum(fast, values.view())));
      CHECK(reference::count_non_finite(plain, values.view())
            == cpu::count_non_finite(fast, values.view()));
      auto half = rounded<float16>(values);
      CHECK(reference::count_non_finite(plain, half.view())
            == cpu::count_non_finite(fast, half.view()));
      auto wide = extreme<double>(count, 4);
      CHECK(reference::count_non_finite(plain, wide.view())
            == cpu::count_non_finite(fast, wide.view()));
    }
    const float values[] = {1, INFINITY, -INFINITY, NAN, 0, 3e38F};
    CHECK(cpu::count_non_finite(fast, std::span{values}) == 3);
  }

  TEST_CASE("the norm of combined gradients needs no memory for them") {
    for (auto count : sizes) {
      CAPTURE(count);
      mixed_sources from{5, count, false};
      gradient_sum gradient{from.sources, 5, 0.5};
      guarded<float> combined{count};
      reference::reduce<float>(plain, gradient, combined.span());
      auto norm = reference::squared_norm(plain, combined.view());
      CHECK(reference::squared_norm<float>(plain, gradient) == norm);
      CHECK(cpu::squared_norm<float>(fast, gradient) == doctest::Approx(norm).epsilon(1e-12));
    }
  }

  TEST_CASE("a sum has the same bits for any number of threads and any grain") {
    auto values = normal<double>(1000003, 5);
    std::vector<double> sums;
    for (size_t threads : {1, 2, 3, 8})
      for (size_t grain : {1000, 16384}) {
        tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads};
        sums.push_back(cpu::sum({.grain_elements = grain}, values.view()));
        CHECK(same_bits(sums.back(), sums.front()));
      }
  }
}

} // namespace reduce_test
