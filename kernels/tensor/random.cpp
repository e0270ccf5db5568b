// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend on nothing but their name: Philox and the distributions over it.
#include "kernels/tensor/random.hpp"

#include "kernels/tensor/parallel.hpp"
#include "kernels/tensor/random_lanes.hpp"
#include "messages/errors/failure.hpp"

#include <bit>
#include <cmath>
#include <limits>

#if defined(__x86_64__) && defined(__GNUC__)
#  include <immintrin.h>
#endif

namespace troupe {

namespace {

/// The finaliser of SplitMix64, a bijection that spreads each input bit over all output bits.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// 64-bit FNV-1a. Source: draft-eastlake-fnv, section 2.
uint64_t hash(std::string_view text) {
  uint64_t result = 0xcbf29ce484222325;
  for (unsigned char byte : text)
    result = (result ^ byte) * 0x100000001b3;
  return result;
}

/// The odd constant keeps a seed of 0 and an empty purpose away from the fixed point 0 of `mix`.
uint64_t combine(uint64_t seed, std::string_view purpose) {
  return mix(mix(seed + 0x9e3779b97f4a7c15) ^ hash(purpose));
}

/// `random_stream::next_u64` of each lane, twice: block 0 of its stream.
struct lane_bits {
  std::array<uint64_t, random_lanes> first;
  std::array<uint64_t, random_lanes> second;
};

lane_bits first_bits(uint64_t key, uint32_t index, uint64_t step) {
  lane_bits result;
  for (size_t lane = 0; lane < random_lanes; ++lane) {
    auto low_step = static_cast<uint32_t>(step + lane);
    auto block = philox4x32({0, index, low_step, static_cast<uint32_t>((step + lane) >> 32)},
                            {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    result.first[lane] = block[0] | uint64_t{block[1]} << 32;
    result.second[lane] = block[2] | uint64_t{block[3]} << 32;
  }
  return result;
}

#if defined(__x86_64__) && defined(__GNUC__)

/// The same. Each word has 64 bits to itself, of which the upper half has no meaning: a product
/// takes one instruction then. Without these, GCC moves words about for most of the time.
[[gnu::target("avx2")]] lane_bits first_bits_avx2(uint64_t key, uint32_t index, uint64_t step) {
  constexpr size_t width = 4;
  lane_bits result;
  for (size_t lane = 0; lane < random_lanes; lane += width) {
    auto steps = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(step + lane)),
                                  _mm256_set_epi64x(3, 2, 1, 0));
    auto word0 = _mm256_setzero_si256();
    auto word1 = _mm256_set1_epi64x(index);
    auto word2 = steps;
    auto word3 = _mm256_srli_epi64(steps, 32);
    auto low_key = _mm256_set1_epi64x(static_cast<int64_t>(key));
    auto high_key = _mm256_srli_epi64(low_key, 32);
    for (int round = 0; round < 10; ++round) {
      auto even = _mm256_mul_epu32(word0, _mm256_set1_epi64x(0xd2511f53));
      auto odd = _mm256_mul_epu32(word2, _mm256_set1_epi64x(0xcd9e8d57));
      word0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(odd, 32), word1), low_key);
      word1 = odd;
      word2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(even, 32), word3), high_key);
      word3 = even;
      low_key = _mm256_add_epi64(low_key, _mm256_set1_epi64x(0x9e3779b9));
      high_key = _mm256_add_epi64(high_key, _mm256_set1_epi64x(0xbb67ae85));
    }
    auto lower = _mm256_set1_epi64x(0xffffffff);
    auto first = _mm256_or_si256(_mm256_and_si256(word0, lower), _mm256_slli_epi64(word1, 32));
    auto second = _mm256_or_si256(_mm256_and_si256(word2, lower), _mm256_slli_epi64(word3, 32));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(&result.first[lane]), first);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(&result.second[lane]), second);
  }
  return result;
}

#endif

lane_bits drawn_bits(uint64_t key, uint32_t index, uint64_t step) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2")) return first_bits_avx2(key, index, step);
#endif
  return first_bits(key, index, step);
}

/// `random_stream::uniform` of 64 bits. AVX2 cannot convert these: each half becomes the low bits
/// of a large power of two, which is taken away again; no operation rounds.
inline double uniform_of(uint64_t bits) {
  bits >>= 11;
  auto lower = std::bit_cast<double>((bits & 0xffffffff) | 0x4330000000000000);
  auto upper = std::bit_cast<double>(bits >> 32 | 0x4530000000000000);
  return ((upper - 0x1.00000001p84) + lower) * 0x1p-53;
}

/// log(m * 2^exponent) for m within [sqrt(1/2), sqrt(2)): log m = 2 atanh((m - 1) / (m + 1)), whose
/// series in s^2 <= 0.0295 is down to 2^-57 after ten terms.
inline double log_of_parts(double m, double exponent) {
  double s = (m - 1) / (m + 1);
  double square = s * s;
  double series = 0;
  for (int n = 21; n >= 3; n -= 2)
    series = (series + 1.0 / n) * square;
  // log 2 in two parts, the first with 21 zero bits at its end: exponent * first part is exact.
  double high = exponent * 0x1.62e42feep-1;
  double low = exponent * 1.90821492927058770e-10;
  return high + (2 * s + (2 * s * series + low));
}

/// e^x = factor * 2^exponent.
struct power_parts {
  double exponent;
  double factor;
};

/// x = n log 2 + r with |r| <= 0.35; the Taylor series of e^r is down to 2^-57 after 14 terms.
inline power_parts parts_of_power(double x) {
  double n = std::floor(x * 1.4426950408889634 + 0.5);
  double r = (x - n * 0x1.62e42feep-1) - n * 1.90821492927058770e-10;
  double series = 0;
  for (int k = 14; k >= 2; --k)
    series = (series + 1.0) * r / k;
  // The last step apart: 1 + r (1 + ...) keeps the small terms together until the end.
  return {n, 1.0 + (r + r * series)};
}

// `portable_log` without its branches and calls.
inline double log_of_normal(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  auto m = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
  auto is_low = m < 0.70710678118654752;
  m = is_low ? m * 2 : m;
  // The biased exponent is of a number in [1, 2), and m is half of that or the number itself.
  auto biased = bits >> 52 | 0x4330000000000000;
  double exponent = std::bit_cast<double>(biased) - 0x1p52 - (is_low ? 1023 : 1022);
  auto result = log_of_parts(m, exponent);
  return x == 0 ? -std::numeric_limits<double>::infinity() : result;
}

constexpr double exp_lanes_max = 700; // beyond it a result may be no normal number

// `portable_exp` without its branches and calls. @pre |x| <= exp_lanes_max.
inline double exp_to_normal(double x) {
  auto [exponent, factor] = parts_of_power(x);
  // The exponent in the low bits of 1.5 * 2^52 + exponent; shifted, it is that of a power of 2.
  auto biased = std::bit_cast<uint64_t>(exponent + (0x1.8p52 + 1023)) << 52;
  return factor * std::bit_cast<double>(biased);
}

} // namespace

double portable_log(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(x)) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  return log_of_parts(m, exponent);
}

double portable_exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();
  if (x < -745.1332191019412) return 0;
  auto [exponent, factor] = parts_of_power(x);
  return std::ldexp(factor, static_cast<int>(exponent));
}

random_key::random_key(uint64_t seed, std::string_view purpose, uint32_t index, uint64_t step)
  : key_(combine(seed, purpose)), step_(step), index_(index) {}

random_key random_key::derive(std::string_view purpose) const {
  auto result = *this;
  result.key_ = combine(key_, purpose);
  return result;
}

uint32_t random_stream::next_u32() {
  if (used_ == words_.size()) {
    words_ = key_.block(position_++);
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t random_stream::next_u64() {
  uint64_t low = next_u32();
  return low | uint64_t{next_u32()} << 32;
}

uint64_t random_stream::below(uint64_t n) {
  if (n == 0) throw failure{{errc::invalid_argument, "no number is below 0: draw below 1 or more"}};
  __extension__ using uint128 = unsigned __int128;
  auto product = uint128{next_u64()} * n;
  // 2^64 mod n of the 2^64 inputs would make some results more likely: those are drawn again.
  if (static_cast<uint64_t>(product) < n) {
    uint64_t excess = (0 - n) % n;
    while (static_cast<uint64_t>(product) < excess)
      product = uint128{next_u64()} * n;
  }
  return static_cast<uint64_t>(product >> 64);
}

double random_stream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  double u = 0;
  double v = 0;
  double square = 0;
  do {
    u = 2 * uniform() - 1;
    v = 2 * uniform() - 1;
    square = u * u + v * v;
  } while (square >= 1 || square == 0);
  double factor = std::sqrt(-2 * portable_log(square) / square);
  spare_normal_ = v * factor;
  has_spare_normal_ = true;
  return u * factor;
}

stream_lanes::stream_lanes(uint64_t seed, std::string_view purpose)
  : key_(combine(seed, purpose)) {}

void stream_lanes::uniforms(uint32_t index, uint64_t step, lane_values& first,
                            lane_values& second) const {
  auto bits = drawn_bits(key_, index, step);
  cpu::vectorised([&] {
    for (size_t lane = 0; lane < random_lanes; ++lane) {
      first[lane] = uniform_of(bits.first[lane]);
      second[lane] = uniform_of(bits.second[lane]);
    }
  });
}

void log_lanes(lane_values& x) {
  cpu::vectorised([&] {
    for (auto& number : x)
      number = log_of_normal(number);
  });
}

void exp_lanes(lane_values& x) {
  auto arguments = x;
  cpu::vectorised([&] {
    for (auto& number : x)
      number = exp_to_normal(number);
  });
  for (size_t lane = 0; lane < random_lanes; ++lane)
    if (!(std::abs(arguments[lane]) <= exp_lanes_max)) x[lane] = portable_exp(arguments[lane]);
}

} // namespace troupe
