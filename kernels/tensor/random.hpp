// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend on nothing but their name: counter-based streams, the same on every
// machine.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe {

/// Four random words: the output of one evaluation of the generator.
using random_block = std::array<uint32_t, 4>;

/// Philox4x32 with ten rounds: a keyed bijection of 128-bit counters; its outputs pass as random.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
[[nodiscard]] constexpr random_block philox4x32(random_block counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t even = uint64_t{0xd2511f53} * counter[0];
    uint64_t odd = uint64_t{0xcd9e8d57} * counter[2];
    counter
      = {static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(odd),
         static_cast<uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(even)};
    key = {key[0] + 0x9e3779b9, key[1] + 0xbb67ae85};
  }
  return counter;
}

/// Natural logarithm by additions, multiplications and divisions alone, so that it rounds alike
/// wherever IEEE 754 holds; the C library's differs in the last bit from version to version.
/// The relative error is below 5e-16; 0 gives -infinity, negative numbers and NaN give NaN.
[[nodiscard]] double portable_log(double x);

/// e to the power x, portable like `portable_log`; relative error below 4e-16 where the result is
/// normal. Above 709.78 the result is infinity, below -745.14 it is 0, and NaN stays NaN.
[[nodiscard]] double portable_exp(double x);

/// A generator with a state makes a run depend on the order of draws. A `random_key` is the *name*
/// of a stream instead: each holder of the same name draws the same numbers, in any order, on any
/// thread, after any restart. Streams of different names are independent.
///
///     random_key key{seed, "dropout", replica, step};
///
/// Thread: a value; may be used from any thread.
class random_key {
public:
  /// @param purpose The use of the numbers; streams of two purposes never meet.
  /// @param index Which one draws: a replica, an owner, a link.
  /// @param step The holder's own step or attempt.
  random_key(uint64_t seed, std::string_view purpose, uint32_t index = 0, uint64_t step = 0);

  /// The key of a stream within this one: a layer's, a variable's.
  [[nodiscard]] random_key derive(std::string_view purpose) const;

  /// Words [4 * position, 4 * position + 4) of the stream, in constant time.
  [[nodiscard]] constexpr random_block block(uint32_t position) const {
    return philox4x32(
      {position, index_, static_cast<uint32_t>(step_), static_cast<uint32_t>(step_ >> 32)},
      {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
  }

  bool operator==(const random_key&) const = default;

private:
  uint64_t key_;
  uint64_t step_;
  uint32_t index_;
};

/// Draws from the stream that a key names, one after the other. The distributions are our own,
/// because the standard leaves the algorithms of its own to each library.
/// A stream holds 2^34 words; then it begins again.
class random_stream {
public:
  explicit random_stream(random_key key) : key_(key) {}

  /// 32 random bits.
  [[nodiscard]] uint32_t next_u32();

  /// 64 random bits: two words, the first one low.
  [[nodiscard]] uint64_t next_u64();

  /// Uniform on [0, 1): the upper 53 bits of `next_u64`, times 2^-53.
  [[nodiscard]] double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

  /// Uniform on 0, 1, ..., n - 1, without bias.
  /// Errors: throws `failure` with invalid_argument for n = 0.
  /// Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
  [[nodiscard]] uint64_t below(uint64_t n);

  /// Normal with mean 0 and standard deviation 1.
  /// Source: Marsaglia and Bray, "A convenient method for generating normal variables", 1964: the
  /// polar method; both numbers of a pair are used.
  [[nodiscard]] double normal();

  /// Exponential with mean 1: -log(1 - uniform).
  [[nodiscard]] double exponential() { return -portable_log(1.0 - uniform()); }

private:
  random_key key_;
  random_block words_{};
  uint32_t position_ = 0;
  uint32_t used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_normal_ = false;
};

} // namespace troupe
