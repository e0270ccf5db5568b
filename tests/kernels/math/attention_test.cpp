// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of attention agree, no position sees a later one, and gradients are those of the
// function. Method: both twins over extents around a tile; a case worked out by hand; changes of
// later positions; central differences.
#include "kernels/math/attention.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <algorithm>
#include <utility>

namespace attention_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const reference::context plain;
const cpu::context fast;

constexpr attention_extents cases[]
  = {{0, 3, 1, 2},  {2, 0, 1, 2},  {1, 1, 1, 1},  {2, 3, 2, 5},  {1, 5, 3, 4},
     {1, 63, 1, 8}, {1, 64, 2, 3}, {2, 65, 1, 7}, {1, 130, 2, 9}};

/// Everything that attention and its gradient write, and the gradient that arrives.
template <class T>
struct attention_results {
  guarded<T> output, log_sums, packed_gradient;

  explicit attention_results(const attention_extents& of)
    : output(of.positions() * of.width()), log_sums(of.positions() * of.heads),
      packed_gradient(3 * output.span().size()) {}

  attention_outcome<T> outcome() { return {output.view(), log_sums.view()}; }
};

} // namespace

TEST_SUITE("kernels/math/attention") {
  // A weight's relative error is that of its score: some head_width + 3 roundings of a product
  // that is below 10 here. Sums over a context of it add as many again.
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (const auto& extents : cases) {
      CAPTURE(extents.context);
      CAPTURE(extents.heads);
      CAPTURE(extents.head_width);
      auto size = extents.positions() * extents.width();
      auto packed = normal<T>(3 * size, 1), arriving = normal<T>(size, 2);
      attention_results<T> got{extents}, wanted{extents};
      reference::causal_self_attention<T>(plain, extents, packed.view(), wanted.output.span(),
                                          wanted.log_sums.span());
      cpu::causal_self_attention<T>(fast, extents, packed.view(), got.output.span(),
                                    got.log_sums.span());
      reference::causal_self_attention_gradient<T>(plain, extents, packed.view(), wanted.outcome(),
                                                   arriving.view(), wanted.packed_gradient.span());
      cpu::causal_self_attention_gradient<T>(fast, extents, packed.view(), got.outcome(),
                                             arriving.view(), got.packed_gradient.span());
      auto n = static_cast<double>(extents.head_width + extents.context);
      bound allowed{.relative = roundings<T>(10 * n), .absolute = roundings<T>(40 * n)};
      auto agree = [&](guarded<T>& a, guarded<T>& b) {
        return first_not_close(a.span(), b.span(), allowed) == a.span().size();
      };
      CHECK(agree(got.output, wanted.output));
      CHECK(agree(got.log_sums, wanted.log_sums));
      CHECK(agree(got.packed_gradient, wanted.packed_gradient));
    }
  }

  TEST_CASE("two positions of one head, worked out by hand") {
    // q = (1, 2), k = (3, log 3 / 2), v = (10, 50): the scores of position 1 are 6 and log 3.
    const double second_key = std::log(3.0) / 2;
    const double packed[] = {1, 3, 10, 2, second_key, 50};
    const attention_extents extents{1, 2, 1, 1};
    attention_results<double> got{extents};
    cpu::causal_self_attention<double>(fast, extents, packed, got.output.span(),
                                       got.log_sums.span());
    CHECK(got.output[0] == 10);
    CHECK(got.log_sums[0] == 3);
    auto first = std::exp(6.0);
    CHECK(got.output[1] == doctest::Approx((10 * first + 50 * 3) / (first + 3)));
    CHECK(got.log_sums[1] == doctest::Approx(std::log(first + 3)));
  }

  TEST_CASE("what comes later changes nothing, forward and back") {
    const attention_extents extents{1, 70, 2, 3};
    auto size = extents.positions() * extents.width();
    constexpr size_t seen = 66;
    auto packed = normal<float>(3 * size, 1);
    guarded<float> arriving{size};
    std::ranges::fill(arriving.span(), 0.F);
    std::ranges::fill(arriving.span().first(seen * extents.width()), 1.F);
    attention_results<float> before{extents}, after{extents};
    auto run = [&](attention_results<float>& into) {
      cpu::causal_self_attention<float>(fast, extents, packed.view(), into.output.span(),
                                        into.log_sums.span());
      cpu::causal_self_attention_gradient<float>(fast, extents, packed.view(), into.outcome(),
                                                 arriving.view(), into.packed_gradient.span());
    };
    run(before);
    for (auto& value : packed.span().subspan(seen * 3 * extents.width()))
      value = 3 - value;
    run(after);
    auto same = [](guarded<float>& a, guarded<float>& b, size_t count) {
      return first_difference(a.span().first(count), b.span().first(count)) == count;
    };
    CHECK(same(before.output, after.output, seen * extents.width()));
    CHECK_FALSE(same_bits(before.output, after.output));
    CHECK(same(before.packed_gradient, after.packed_gradient, 3 * seen * extents.width()));
  }

  TEST_CASE("scores beyond what the exponential takes give weights all the same") {
    const attention_extents extents{1, 66, 1, 1};
    guarded<float> packed{3 * extents.context};
    for (size_t i = 0; i < extents.context; ++i) { // each key is nearer to all queries
      packed[3 * i] = 1000;
      packed[3 * i + 1] = static_cast<float>(i);
      packed[3 * i + 2] = static_cast<float>(i);
    }
    attention_results<float> got{extents};
    cpu::causal_self_attention<float>(fast, extents, packed.view(), got.output.span(),
                                      got.log_sums.span());
    for (size_t i = 0; i < extents.context; ++i) {
      CHECK(got.output[i] == static_cast<float>(i));
      CHECK(got.log_sums[i] == 1000 * static_cast<float>(i));
    }
  }

  TEST_CASE("the gradients are those that differences show") {
    for (const auto& extents : {attention_extents{2, 3, 2, 2}, {1, 66, 1, 1}}) {
      auto size = extents.positions() * extents.width();
      auto packed = normal<double>(3 * size, 1), arriving = normal<double>(size, 2);
      auto loss = [&] {
        attention_results<double> of{extents};
        cpu::causal_self_attention<double>(fast, extents, packed.view(), of.output.span(),
                                           of.log_sums.span());
        double sum = 0;
        for (size_t i = 0; i < size; ++i)
          sum += of.output[i] * arriving[i];
        return sum;
      };
      attention_results<double> got{extents};
      cpu::causal_self_attention<double>(fast, extents, packed.view(), got.output.span(),
                                         got.log_sums.span());
      cpu::causal_self_attention_gradient<double>(fast, extents, packed.view(), got.outcome(),
                                                  arriving.view(), got.packed_gradient.span());
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
