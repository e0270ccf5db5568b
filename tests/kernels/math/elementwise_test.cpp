// SPDX-License-Identifier: Apache-2.0
// Goal: both twins of the element-by-element operations agree bit for bit, in place or not.
// Method: every operation over a table of sizes, with ordinary and extreme values.
#include "kernels/math/elementwise.hpp"
#include "tests/kernels/arrays.hpp"

namespace elementwise_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 4096};

/// Runs both twins on three arrays each and compares what they left there.
template <class T, class Plain, class Fast>
void compare(const char* what, Plain with_reference, Fast with_cpu) {
  for (auto make : {array_maker<T>{normal<T>}, array_maker<T>{extreme<T>}})
    for (auto size : sizes) {
      CAPTURE(what);
      CAPTURE(size);
      auto a = make(size, 1), b = make(size, 2), out = make(size, 3);
      auto a_copy = a, b_copy = b, out_copy = out;
      with_reference(a.span(), b.span(), out.span());
      with_cpu(a_copy.span(), b_copy.span(), out_copy.span());
      CHECK(same_bits(a, a_copy));
      CHECK(same_bits(b, b_copy));
      CHECK(same_bits(out, out_copy));
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
      using namespace troupe::cpu;                                                                 \
      [[maybe_unused]] auto& on = fast;                                                            \
      call;                                                                                        \
    }

} // namespace

TEST_SUITE("kernels/math/elementwise") {
  TEST_CASE_TEMPLATE("both twins agree bit for bit", T, float, double) {
    compare<T>(TWINS(T, fill<T>(on, out, T{0.3})));
    compare<T>(TWINS(T, copy<T>(on, a, out)));
    compare<T>(TWINS(T, add<T>(on, a, b, out)));
    compare<T>(TWINS(T, multiply<T>(on, a, b, out)));
    compare<T>(TWINS(T, scale<T>(on, T{0.3}, a, out)));
    compare<T>(TWINS(T, lerp<T>(on, a, b, T{0.3}, out)));
  }

  TEST_CASE_TEMPLATE("the output may be an input", T, float, double) {
    compare<T>(TWINS(T, add<T>(on, a, b, a)));
    compare<T>(TWINS(T, multiply<T>(on, a, a, a)));
    compare<T>(TWINS(T, scale<T>(on, T{0.3}, a, a)));
    compare<T>(TWINS(T, lerp<T>(on, a, b, T{0.3}, b)));
  }

  TEST_CASE("each operation computes what it says") {
    const float a[] = {1, -2, 8};
    const float b[] = {3, 0.5F, 4};
    float out[3];
    auto is = [&](float x, float y, float z) { return out[0] == x && out[1] == y && out[2] == z; };
    reference::add<float>(plain, a, b, out);
    CHECK(is(4, -1.5F, 12));
    reference::multiply<float>(plain, a, b, out);
    CHECK(is(3, -1, 32));
    reference::lerp<float>(plain, a, b, 0.5F, out);
    CHECK(is(2, -0.75F, 6));
    reference::scale<float>(plain, 3, a, out);
    CHECK(is(3, -6, 24));
  }
}

} // namespace elementwise_test
