// SPDX-License-Identifier: Apache-2.0
// Goal: the 16-bit formats convert as IEEE 754 says. Method: every bit pattern, every boundary
// between two neighbours, and random floats, against Eigen's conversions.
#include "kernels/math/cast.hpp"
#include "messages/errors/failure.hpp"
#include "tests/kernels/arrays.hpp"

#include <Eigen/Core>
#include <bit>

namespace cast_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast{.grain_elements = 4096};

float oracle(float16 value) {
  return static_cast<float>(std::bit_cast<Eigen::half>(value));
}

float oracle(bfloat16 value) {
  return static_cast<float>(std::bit_cast<Eigen::bfloat16>(value));
}

template <class T>
using eigen_of = std::conditional_t<std::is_same_v<T, float16>, Eigen::half, Eigen::bfloat16>;

/// True if the conversion of `value` is Eigen's, or both are NaN.
template <class T>
bool rounds_like_eigen(float value) {
  auto ours = narrow<T>(value);
  if (std::isnan(value)) return std::isnan(to_float(ours));
  return std::bit_cast<uint16_t>(eigen_of<T>(value)) == ours.bits;
}

} // namespace

TEST_SUITE("kernels/math/cast") {
  TEST_CASE_TEMPLATE("every 16-bit pattern widens exactly and comes back", T, float16, bfloat16) {
    size_t wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      T value{static_cast<uint16_t>(bits)};
      float wide = to_float(value);
      bool is_nan = std::isnan(wide);
      wrong += same_bits(wide, oracle(value)) ? 0 : 1;
      wrong += is_nan ? !std::isnan(to_float(narrow<T>(wide))) : !(narrow<T>(wide) == value);
    }
    CHECK(wrong == 0);
  }

  TEST_CASE_TEMPLATE("between two neighbours the nearer one is taken, and the even one of two", T,
                     float16, bfloat16) {
    size_t wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      float low = to_float(T{static_cast<uint16_t>(bits)});
      if (!std::isfinite(low)) continue;
      float high = to_float(T{static_cast<uint16_t>(bits + 1)});
      if (!std::isfinite(high)) high = std::copysign(65536.0F, low);
      auto middle = static_cast<float>((static_cast<double>(low) + high) / 2);
      for (float value : {middle, std::nextafter(middle, low), std::nextafter(middle, high),
                          std::nextafter(low, high)})
        wrong += rounds_like_eigen<T>(value) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }

  TEST_CASE_TEMPLATE("random bit patterns round as Eigen rounds them", T, float16, bfloat16) {
    std::mt19937 engine{7};
    size_t wrong = 0;
    for (size_t i = 0; i < 2'000'000; ++i)
      wrong += rounds_like_eigen<T>(std::bit_cast<float>(static_cast<uint32_t>(engine()))) ? 0 : 1;
    CHECK(wrong == 0);
  }

  TEST_CASE("a number that is too large becomes infinity, and one too small a zero of its sign") {
    CHECK(to_float16(65519.996F).bits == 0x7bff);
    CHECK(to_float16(65520.0F).bits == 0x7c00);
    CHECK(to_float16(-1e30F).bits == 0xfc00);
    CHECK(to_float16(0x1p-25F).bits == 0);
    CHECK(to_float16(-0x1p-25F).bits == 0x8000);
    CHECK(to_float16(0x1.000002p-25F).bits == 1);
    CHECK(to_bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
    CHECK(std::isnan(to_float(to_float16(-NAN))));
    CHECK(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001U)))));
  }

  TEST_CASE("a cast of integers, to them, or of a tensor on a GPU is refused") {
    auto refusal_of = [](const tensor& from, dtype type) {
      try {
        (void)cast(from, type);
      } catch (const failure& failed) {
        return failed.reason();
      }
      return error{};
    };
    auto of_integers = refusal_of(zeros({3}, dtype::i64), dtype::f32);
    CHECK(of_integers.code == errc::type_mismatch);
    CHECK(of_integers.message
          == "a tensor of i64 cannot be cast to f32: casts are between floating types");
    CHECK(refusal_of(zeros({3}), dtype::i32).code == errc::type_mismatch);
    float values[2] = {1, 2};
    auto on_gpu = tensor::wrap_on({device_kind::cuda, 0}, values, dtype::f32, {2}, nullptr);
    CHECK(refusal_of(on_gpu, dtype::f64).code == errc::failed_precondition);
    CHECK(cast(on_gpu, dtype::f32).data() == values);
  }

  TEST_CASE_TEMPLATE("both twins cast between all floating types alike", From, float, double,
                     float16, bfloat16) {
    for (bool with_extremes : {false, true})
      for (auto count : sizes)
        for (auto type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16}) {
          CAPTURE(count);
          CAPTURE(to_string(type));
          auto wide = with_extremes ? extreme<double>(count, 1) : normal<double>(count, 1);
          guarded<From> from{count};
          reference::cast(plain, wide.view(), from.span());
          visit_floating(type, [&](auto zero) {
            guarded<decltype(zero)> expected{count}, got{count};
            reference::cast(plain, from.view(), expected.span());
            cpu::cast(fast, from.view(), got.span());
            size_t wrong = 0;
            for (size_t i = 0; i < count; ++i)
              wrong += same_bits(widen<double>(expected[i]), widen<double>(got[i])) ? 0 : 1;
            CHECK(wrong == 0);
          });
        }
  }
}

} // namespace cast_test
