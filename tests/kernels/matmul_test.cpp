// SPDX-License-Identifier: Apache-2.0
// Goal: the product through OpenBLAS is the plain one, up to the order in which it adds.
// Method: both twins over a table of extents, all transpositions, alpha and beta, NaN and infinity.
#include "kernels/matmul.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

const reference::context plain;
const cpu::context fast;

constexpr matmul_form extents[]
  = {{0, 3, 4},   {3, 0, 4},    {3, 4, 0},   {1, 1, 1},      {1, 31, 32},
     {32, 33, 1}, {31, 32, 33}, {64, 65, 7}, {101, 103, 107}};

/// Two sums of the same products in different orders differ by at most inner + 1 roundings of the
/// sum of their magnitudes; these operands are below 6, so that sum is below 36 * inner.
template <class T>
bound bound_of(const matmul_form& form) {
  auto n = static_cast<double>(form.inner);
  return {.absolute = roundings<T>(n + 3) * (36 * n + 6)};
}

template <class T>
void compare(const matmul_form& form, guarded<T> a, guarded<T> b, guarded<T> c, bound allowed) {
  auto wanted = c;
  reference::matmul(plain, form, a.view(), b.view(), wanted.span());
  cpu::matmul(fast, form, a.view(), b.view(), c.span());
  CAPTURE(form.rows);
  CAPTURE(form.columns);
  CAPTURE(form.inner);
  CAPTURE(form.transpose_a);
  CAPTURE(form.transpose_b);
  CHECK(first_not_close(c.span(), wanted.span(), allowed) == c.span().size());
}

} // namespace

TEST_SUITE("kernels/matmul") {
  TEST_CASE_TEMPLATE("both twins agree for all shapes and transpositions", T, float, double) {
    for (auto form : extents)
      for (int variant = 0; variant < 16; ++variant) {
        form.transpose_a = (variant & 1) != 0;
        form.transpose_b = (variant & 2) != 0;
        form.alpha = (variant & 4) != 0 ? 0.5 : 1;
        form.beta = (variant & 8) != 0 ? -1 : 0;
        compare(form, normal<T>(form.rows * form.inner, 1), normal<T>(form.inner * form.columns, 2),
                normal<T>(form.rows * form.columns, 3), bound_of<T>(form));
      }
  }

  TEST_CASE_TEMPLATE("NaN and infinity reach the same elements", T, float, double) {
    constexpr matmul_form form{.rows = 33, .columns = 17, .inner = 40};
    for (T poison : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
      auto a = normal<T>(33 * 40, 1);
      auto b = normal<T>(40 * 17, 2);
      a[5 * 40 + 7] = poison;
      b[3 * 17 + 11] = poison;
      compare(form, a, b, normal<T>(33 * 17, 3), bound_of<T>(form));
    }
  }

  TEST_CASE_TEMPLATE("with beta = 0 the old contents do not matter", T, float, double) {
    constexpr matmul_form form{.rows = 9, .columns = 10, .inner = 11};
    guarded<T> c{90};
    for (auto& value : c.span())
      value = std::numeric_limits<T>::quiet_NaN();
    compare(form, normal<T>(99, 1), normal<T>(110, 2), c, bound_of<T>(form));
  }

  TEST_CASE("the products of a small example are right") {
    const float a[] = {1, 2, 3, 4, 5, 6};
    const float b[] = {1, 0, -1, 2, 1, 1};
    float c[4];
    reference::matmul<float>(plain, {.rows = 2, .columns = 2, .inner = 3}, a, b, c);
    CHECK(std::vector<float>(c, c + 4) == std::vector<float>{2, 7, 5, 16});
    reference::matmul<float>(plain, {.rows = 2, .columns = 2, .inner = 3, .transpose_a = true}, a,
                             b, c);
    CHECK(std::vector<float>(c, c + 4) == std::vector<float>{3, 11, 4, 14});
  }

  TEST_CASE("the bits are the same on any thread, however many there are") {
    constexpr matmul_form form{.rows = 64, .columns = 256, .inner = 300};
    auto a = normal<float>(64 * 300, 1);
    auto b = normal<float>(300 * 256, 2);
    guarded<float> wanted{64 * 256};
    cpu::matmul(fast, form, a.view(), b.view(), wanted.span());
    std::vector<guarded<float>> results(4, guarded<float>{64 * 256});
    std::vector<std::jthread> threads;
    for (auto& result : results)
      threads.emplace_back([&] { cpu::matmul(fast, form, a.view(), b.view(), result.span()); });
    threads.clear();
    for (auto& result : results)
      CHECK(same_bits(result, wanted));
  }
}
