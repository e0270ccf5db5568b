// SPDX-License-Identifier: Apache-2.0
// Goal: the cuda twins of the element-by-element operations, of casts and of dropout have the bits
// of the reference. Method: every operation over sizes, fills, and places that are aligned or not.
#include "kernels/math/cast.hpp"
#include "kernels/math/dropout.hpp"
#include "kernels/math/elementwise.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

template <class T, class Plain, class Gpu>
void compare(const char* what, Plain with_reference, Gpu with_gpu) {
  for (auto make : {array_maker<T>{normal<T>}, array_maker<T>{extreme<T>}})
    for (auto size : device_sizes)
      for (size_t offset : {0, 1}) {
        CAPTURE(what);
        CAPTURE(size);
        CAPTURE(offset);
        auto a = make(size, 1), b = make(size, 2), out = make(size, 3);
        device_array<T> far_a{a, offset}, far_b{b}, far_out{out, offset};
        with_reference(a.span(), b.span(), out.span());
        with_gpu(far_a.span(), far_b.span(), far_out.span());
        CHECK(holds_bits(far_a, a));
        CHECK(holds_bits(far_b, b));
        CHECK(holds_bits(far_out, out));
      }
}

// The same call in both namespaces, as an argument list for `compare`.
#define TWINS(T, call)                                                                             \
#call,                                                                                           \
    [](std::span<T> a, std::span<T> b, std::span<T> out) {                                         \
      using namespace troupe::reference;                                                           \
      [[maybe_unused]] auto& on = plain;                                                           \
      call;                                                                                        \
    },                                                                                             \
    [](std::span<T> a, std::span<T> b, std::span<T> out) {                                         \
      using namespace troupe::cuda;                                                                \
      [[maybe_unused]] auto& on = gpu();                                                           \
      call;                                                                                        \
    }

template <class From, class To>
void compare_casts() {
  for (auto size : device_sizes)
    for (size_t offset : {0, 1}) {
      CAPTURE(size);
      auto wide = extreme<float>(size, 1);
      guarded<From> from{size};
      reference::cast(plain, wide.view(), from.span());
      guarded<To> expected{size};
      device_array<From> far_from{from, offset};
      device_array<To> far_to{expected};
      reference::cast(plain, from.view(), expected.span());
      cuda::cast(gpu(), far_from.view(), far_to.span());
      auto got = far_to.fetch();
      // NaN in any payload: compared as numbers.
      guarded<double> got_wide{size}, expected_wide{size};
      reference::cast(plain, got.view(), got_wide.span());
      reference::cast(plain, expected.view(), expected_wide.span());
      CHECK(same_bits(got_wide, expected_wide));
    }
}

} // namespace

TEST_SUITE("kernels/cuda/elementwise") {
  TEST_CASE_TEMPLATE("both twins agree bit for bit", T, float, double) {
    compare<T>(TWINS(T, fill<T>(on, out, T{0.3})));
    compare<T>(TWINS(T, copy<T>(on, a, out)));
    compare<T>(TWINS(T, add<T>(on, a, b, out)));
    compare<T>(TWINS(T, multiply<T>(on, a, b, out)));
    compare<T>(TWINS(T, scale<T>(on, T{0.3}, a, out)));
    compare<T>(TWINS(T, lerp<T>(on, a, b, T{0.3}, out)));
  }

  TEST_CASE_TEMPLATE("the output may be an input", T, float, double) {
    compare<T>(TWINS(T, copy<T>(on, a, a)));
    compare<T>(TWINS(T, add<T>(on, a, b, a)));
    compare<T>(TWINS(T, multiply<T>(on, a, a, a)));
    compare<T>(TWINS(T, lerp<T>(on, a, b, T{0.3}, b)));
  }

  TEST_CASE("casts between all floating types agree bit for bit") {
    compare_casts<float, float>();
    compare_casts<float, double>();
    compare_casts<float, float16>();
    compare_casts<float, bfloat16>();
    compare_casts<double, float>();
    compare_casts<double, float16>();
    compare_casts<double, bfloat16>();
    compare_casts<float16, float>();
    compare_casts<float16, bfloat16>();
    compare_casts<float16, double>();
    compare_casts<bfloat16, float>();
    compare_casts<bfloat16, float16>();
    compare_casts<bfloat16, double>();
  }

  TEST_CASE_TEMPLATE("dropout drops the same elements", T, float, double) {
    const random_key key{3, "dropout", 1, 7};
    for (auto size : device_sizes)
      for (double rate : {0.0, 0.1, 0.75}) {
        auto input = normal<T>(size, 5);
        device_array<T> far{input, 1};
        reference::dropout<T>(plain, rate, key, input.view(), input.span());
        device_array<T> by_placed_key{far.fetch().view()};
        cuda::dropout<T>(gpu(), rate, key, far.view(), far.span());
        auto placed = gpu().workspace(sizeof key);
        REQUIRE(gpu().stream().copy(&key, placed.get(), sizeof key));
        cuda::dropout<T>(gpu(), rate, reinterpret_cast<const random_key*>(placed.get()),
                         by_placed_key.view(), by_placed_key.span());
        CHECK(holds_bits(by_placed_key, input));
        CHECK(holds_bits(far, input));
      }
  }
}
