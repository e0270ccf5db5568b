// SPDX-License-Identifier: Apache-2.0
// Goal: the product through oneDNN or Eigen is the plain one, up to the order in which it adds.
// Method: both twins over a table of extents, all transpositions, alpha and beta, NaN and infinity;
// then the same products on many threads, and at all places of memory, for their bits.
#include "kernels/math/cast.hpp"
#include "kernels/math/matmul.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <thread>

namespace matmul_test {

extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr matmul_form extents[]
  = {{0, 3, 4},    {3, 0, 4},   {3, 4, 0},    {0, 0, 0},       {1, 1, 1},
     {1, 31, 32},  {32, 33, 1}, {1, 1, 509},  {2, 3, 5},       {7, 1, 257},
     {31, 32, 33}, {64, 65, 7}, {97, 2, 193}, {101, 103, 107}, {64, 512, 160}};

/// Threads that this process has now.
long threads_now() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator{"/proc/self/task"}, fs::directory_iterator{});
}

/// Two sums of the same products in different orders differ by at most inner + 1 roundings of the
/// sum of their magnitudes; these operands are below 6, so that sum is below 36 * inner.
template <class T>
bound bound_of(const matmul_form& form) {
  auto n = static_cast<double>(form.inner);
  return {.absolute = roundings<T>(n + 3) * (36 * n + 6)};
}

constexpr product_precision less_than_full[]
  = {product_precision::tf32, product_precision::bf16, product_precision::f16};

/// Values as a cast to the format and back leaves them; tf32 by arithmetic, since no type has it.
guarded<float> in_format(product_precision format, guarded<float> values) {
  if (format == product_precision::tf32) {
    for (auto& value : values.span()) {
      int exponent = 0;
      auto fraction = std::frexp(value, &exponent);
      value = std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
    }
    return values;
  }
  auto type = format == product_precision::bf16 ? dtype::bf16 : dtype::f16;
  tensor there{type, {static_cast<int64_t>(values.span().size())}};
  reference::cast(plain, values.view(), mutable_elements{there});
  reference::cast(plain, elements{there}, values.span());
  return values;
}

/// Calls `function(form, a, b, c)` for all shapes, transpositions and precisions, batches among
/// them.
template <class Function>
void for_all_precisions(const Function& function) {
  for (auto precision : less_than_full)
    for (auto form : extents)
      for (int variant = 0; variant < 16; ++variant) {
        form.precision = precision;
        form.transpose_a = (variant & 1) != 0;
        form.transpose_b = (variant & 2) != 0;
        form.beta = (variant & 4) != 0 ? -1 : 0;
        form.batch = (variant & 8) != 0 ? 3 : 1;
        CAPTURE(to_string(precision));
        function(form, normal<float>(form.batch * form.rows * form.inner, 1),
                 normal<float>(form.batch * form.inner * form.columns, 2),
                 normal<float>(form.batch * form.rows * form.columns, 3));
      }
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

TEST_SUITE("kernels/math/matmul") {
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

  TEST_CASE_TEMPLATE("each product of a batch has the bits that it has alone", T, float, double) {
    for (auto form : extents)
      for (int variant = 0; variant < 8; ++variant) {
        form.transpose_a = (variant & 1) != 0;
        form.transpose_b = (variant & 2) != 0;
        form.beta = (variant & 4) != 0 ? -1 : 0;
        auto batched = form;
        batched.batch = 3;
        auto of_a = form.rows * form.inner, of_b = form.inner * form.columns;
        auto of_c = form.rows * form.columns;
        auto a = normal<T>(3 * of_a, 1), b = normal<T>(3 * of_b, 2), c = normal<T>(3 * of_c, 3);
        auto plain_c = c, plain_wanted = c, wanted = c;
        cpu::matmul(fast, batched, a.view(), b.view(), c.span());
        reference::matmul(plain, batched, a.view(), b.view(), plain_c.span());
        for (size_t i = 0; i < 3; ++i) {
          auto one_a = a.view().subspan(i * of_a, of_a), one_b = b.view().subspan(i * of_b, of_b);
          cpu::matmul(fast, form, one_a, one_b, wanted.span().subspan(i * of_c, of_c));
          reference::matmul(plain, form, one_a, one_b, plain_wanted.span().subspan(i * of_c, of_c));
        }
        CHECK(same_bits(c, wanted));
        CHECK(same_bits(plain_c, plain_wanted));
      }
    constexpr matmul_form none{.rows = 2, .columns = 3, .inner = 4, .batch = 0};
    compare(none, guarded<T>{0}, guarded<T>{0}, guarded<T>{0}, {});
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

  TEST_CASE_TEMPLATE("the bits are the same on any thread, whatever others compute", T, float,
                     double) {
    for (auto form : extents) {
      auto a = normal<T>(form.rows * form.inner, 1);
      auto b = normal<T>(form.inner * form.columns, 2);
      guarded<T> wanted{form.rows * form.columns};
      cpu::matmul(fast, form, a.view(), b.view(), wanted.span());
      std::vector<guarded<T>> results(4, guarded<T>{form.rows * form.columns});
      std::vector<std::jthread> threads;
      for (auto& result : results)
        threads.emplace_back([&] {
          for (int turn = 0; turn < 20; ++turn)
            cpu::matmul(fast, form, a.view(), b.view(), result.span());
        });
      threads.clear();
      for (auto& result : results)
        CHECK(same_bits(result, wanted));
    }
  }

  TEST_CASE_TEMPLATE("the bits are the same wherever the operands lie", T, float, double) {
    constexpr matmul_form form{.rows = 31, .columns = 65, .inner = 127};
    auto a = normal<T>(31 * 127, 1);
    auto b = normal<T>(127 * 65, 2);
    guarded<T> wanted{31 * 65};
    cpu::matmul(fast, form, a.view(), b.view(), wanted.span());
    for (size_t offset = 1; offset < 16; ++offset) {
      std::vector<T> all(offset + 31 * 127 + 127 * 65 + 31 * 65);
      auto parts = std::span{all}.subspan(offset);
      std::ranges::copy(a.view(), parts.begin());
      std::ranges::copy(b.view(), parts.begin() + 31 * 127);
      auto result = parts.last(31 * 65);
      cpu::matmul<T>(fast, form, parts.first(31 * 127), parts.subspan(31 * 127, 127 * 65), result);
      CHECK(first_difference(result, wanted.span()) == result.size());
    }
  }

  TEST_CASE("a product starts no threads, changes no bits with OpenMP's threads, and leaves them") {
    constexpr matmul_form form{.rows = 256, .columns = 512, .inner = 512};
    auto a = normal<float>(256 * 512, 1);
    auto b = normal<float>(512 * 512, 2);
    guarded<float> alone{256 * 512};
    guarded<float> among_many{256 * 512};
    auto before = omp_get_max_threads();
    auto threads = threads_now();
    omp_set_num_threads(1);
    cpu::matmul(fast, form, a.view(), b.view(), alone.span());
    omp_set_num_threads(7);
    cpu::matmul(fast, form, a.view(), b.view(), among_many.span());
    CHECK(omp_get_max_threads() == 7);
    CHECK(threads_now() == threads);
    CHECK(same_bits(alone, among_many));
    omp_set_num_threads(before);
  }

  TEST_CASE("tf32 is the nearest number with 10 bits of fraction, ties to even") {
    auto values = normal<float>(10'000, 1);
    auto wanted = in_format(product_precision::tf32, values);
    for (auto& value : values.span())
      value = to_tf32(value);
    CHECK(same_bits(values, wanted));
    CHECK(to_tf32(1 + 0x1p-11F) == 1);
    CHECK(to_tf32(1 + 0x3p-11F) == 1 + 0x1p-9F);
    CHECK(to_tf32(-1 - 0x1.8p-11F) == -1 - 0x1p-10F);
    using limits = std::numeric_limits<float>;
    CHECK(to_tf32(limits::max()) == limits::infinity());
    CHECK(to_tf32(-limits::infinity()) == -limits::infinity());
    CHECK(std::isnan(to_tf32(std::bit_cast<float>(0x7f800001))));
    CHECK(std::isnan(to_tf32(limits::quiet_NaN())));
  }

  TEST_CASE("a product of less precision is the one of rounded operands, in both twins") {
    for_all_precisions([](matmul_form form, guarded<float> a, guarded<float> b, guarded<float> c) {
      auto rounded_a = in_format(form.precision, a), rounded_b = in_format(form.precision, b);
      auto plain_c = c, plain_wanted = c, wanted = c;
      reference::matmul(plain, form, a.view(), b.view(), plain_c.span());
      cpu::matmul(fast, form, a.view(), b.view(), c.span());
      form.precision = product_precision::full;
      reference::matmul(plain, form, rounded_a.view(), rounded_b.view(), plain_wanted.span());
      cpu::matmul(fast, form, rounded_a.view(), rounded_b.view(), wanted.span());
      CHECK(same_bits(plain_c, plain_wanted));
      CHECK(same_bits(c, wanted));
    });
  }

  TEST_CASE("both twins agree in all precisions") {
    for_all_precisions([](const matmul_form& form, const auto& a, const auto& b, const auto& c) {
      compare(form, a, b, c, bound_of<float>(form));
    });
  }

  TEST_CASE("an operand that f16 cannot hold makes the product infinite, in no other precision") {
    constexpr float large = 65520, tiny = 0x1p-25F;
    auto product = [](product_precision precision, float a) {
      const float two = 2;
      float c = -1;
      cpu::matmul<float>(fast, {.rows = 1, .columns = 1, .inner = 1, .precision = precision},
                         {&a, 1}, {&two, 1}, {&c, 1});
      return c;
    };
    CHECK(std::isinf(product(product_precision::f16, large)));
    CHECK(product(product_precision::f16, tiny) == 0);
    CHECK(product(product_precision::bf16, large) == 131072);
    CHECK(product(product_precision::bf16, tiny) == 0x1p-24F);
    CHECK(product(product_precision::tf32, large) == 131072);
    CHECK(product(product_precision::full, large) == 131040);
  }

  TEST_CASE("the library and the instruction set of the products have names") {
#if defined(__x86_64__)
    CHECK(cpu::matmul_library() == "oneDNN");
    CHECK(!cpu::matmul_instructions().empty());
#elif defined(__aarch64__)
    CHECK(cpu::matmul_library() == "Eigen");
    CHECK(cpu::matmul_instructions() == "ARM NEON");
#endif
  }
}

} // namespace matmul_test
