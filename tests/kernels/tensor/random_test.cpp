// SPDX-License-Identifier: Apache-2.0
// Goal: streams are the same everywhere and independent of each other, and have the distributions
// they claim. Method: published vectors, pinned draws, comparison with the C library, moments of
// long streams.
#include "kernels/tensor/random.hpp"
#include "kernels/tensor/random_lanes.hpp"
#include "messages/errors/failure.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace random_test {

using namespace troupe;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Relative distance from what long double computes.
double relative_error(double got, long double wanted) {
  return static_cast<double>(std::abs((got - wanted) / wanted));
}

} // namespace

TEST_SUITE("kernels/tensor/random") {
  // Source: the file kat_vectors of the authors' library Random123.
  TEST_CASE("Philox gives the published vectors") {
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0})
          == random_block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    constexpr uint32_t ones = 0xffffffff;
    CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones})
          == random_block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})
          == random_block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  }

  TEST_CASE("the draws of a named stream never change") {
    random_stream stream{random_key{42, "test", 7, 9}};
    CHECK(stream.next_u32() == 0x1052f31f);
    CHECK(stream.next_u64() == 0x17888773eb282c54);
    CHECK(stream.uniform() == 0x1.e96dda541b7a4p-1);
    CHECK(stream.below(1000) == 104);
    CHECK(stream.normal() == -0x1.829e8c9557624p-2);
    CHECK(stream.normal() == -0x1.0dd53066817cep-2);
    CHECK(stream.exponential() == 0x1.39bade8dc0a42p+1);
    CHECK(random_stream{random_key{42, "test"}.derive("layer")}.next_u32() == 0xbc3efc34);
  }

  TEST_CASE("every part of a name leads to another stream") {
    std::set<random_block> first_blocks;
    for (uint64_t seed : {0, 1})
      for (auto purpose : {"", "a", "b"})
        for (uint32_t index : {0, 1})
          for (uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
            random_key key{seed, purpose, index, step};
            first_blocks.insert(key.block(0));
            first_blocks.insert(key.derive("a").block(0));
            first_blocks.insert(key.derive("b").block(0));
          }
    CHECK(first_blocks.size() == 2 * 3 * 2 * 3 * 3);
  }

  TEST_CASE("a stream is its key's blocks, one after the other") {
    random_key key{3, "blocks", 1, 2};
    random_stream stream{key};
    for (uint32_t position = 0; position < 5; ++position)
      for (auto word : key.block(position))
        CHECK(stream.next_u32() == word);
  }

  TEST_CASE("the portable logarithm is as exact as it says") {
    random_stream stream{random_key{1, "log"}};
    double worst = 0;
    for (int i = 0; i < 20000; ++i) {
      double near_one = 0.5 + stream.uniform();
      double far = std::ldexp(near_one, static_cast<int>(stream.below(2040)) - 1020);
      worst = std::max(worst, relative_error(portable_log(near_one),
                                             std::log(static_cast<long double>(near_one))));
      worst = std::max(worst,
                       relative_error(portable_log(far), std::log(static_cast<long double>(far))));
    }
    CHECK(worst < 5e-16);
    CHECK(portable_log(1) == 0);
    CHECK(portable_log(0) == -infinity);
    CHECK(portable_log(infinity) == infinity);
    CHECK(std::isnan(portable_log(-1)));
    CHECK(std::isnan(portable_log(std::nan(""))));
    CHECK(portable_log(5e-324) == doctest::Approx(-744.4400719213812));
  }

  TEST_CASE("the portable exponential is as exact as it says") {
    random_stream stream{random_key{1, "exp"}};
    double worst = 0;
    for (int i = 0; i < 20000; ++i)
      for (double x : {2 * stream.uniform() - 1, 1400 * stream.uniform() - 700})
        worst
          = std::max(worst, relative_error(portable_exp(x), std::exp(static_cast<long double>(x))));
    CHECK(worst < 4e-16);
    CHECK(portable_exp(0) == 1);
    CHECK(portable_exp(710) == infinity);
    CHECK(portable_exp(infinity) == infinity);
    CHECK(portable_exp(-746) == 0);
    CHECK(portable_exp(-infinity) == 0);
    CHECK(portable_exp(-745) > 0);
    CHECK(std::isnan(portable_exp(std::nan(""))));
  }

  // Bounds of five standard errors; the seeds are fixed, so these cannot fail by chance.
  TEST_CASE("the distributions have the moments they should have") {
    random_stream stream{random_key{5, "moments"}};
    constexpr int n = 100000;
    double uniform = 0, normal = 0, square = 0, fourth = 0, exponential = 0;
    for (int i = 0; i < n; ++i) {
      uniform += stream.uniform() / n;
      exponential += stream.exponential() / n;
      double z = stream.normal();
      normal += z / n;
      square += z * z / n;
      fourth += z * z * z * z / n;
    }
    double error = 5 / std::sqrt(n);
    CHECK(std::abs(uniform - 0.5) < error * std::sqrt(1.0 / 12));
    CHECK(std::abs(exponential - 1) < error);
    CHECK(std::abs(normal) < error);
    CHECK(std::abs(square - 1) < error * std::sqrt(2));
    CHECK(std::abs(fourth - 3) < error * std::sqrt(96));
  }

  TEST_CASE("integers below n are in range, and equally frequent where n is no power of two") {
    random_stream stream{random_key{6, "below"}};
    std::vector<int> seen(6);
    constexpr int n = 60000;
    for (int i = 0; i < n; ++i)
      ++seen.at(stream.below(6));
    for (int count : seen)
      CHECK(std::abs(count - n / 6) < 5 * std::sqrt(n / 6.0));
    // Three quarters of the range: without rejection, every third result would be twice as likely.
    constexpr uint64_t large = uint64_t{3} << 62;
    int in_first_third = 0;
    for (int i = 0; i < n; ++i)
      in_first_third += stream.below(large) < large / 3 ? 1 : 0;
    CHECK(std::abs(in_first_third - n / 3) < 5 * std::sqrt(n / 3.0));
    CHECK(stream.below(1) == 0);
  }

  TEST_CASE("eight streams at once give the bits of each alone") {
    stream_lanes streams{42, "test"};
    lane_values first;
    lane_values second;
    // Across the end of the low word of the step, too.
    for (uint64_t step : {uint64_t{0}, uint64_t{5}, (uint64_t{1} << 32) - 3, ~uint64_t{0} - 7}) {
      streams.uniforms(7, step, first, second);
      for (size_t lane = 0; lane < random_lanes; ++lane) {
        random_stream alone{random_key{42, "test", 7, step + lane}};
        CHECK(first[lane] == alone.uniform());
        CHECK(second[lane] == alone.uniform());
      }
    }
  }

  TEST_CASE("logarithms and exponentials of eight numbers are those of each alone") {
    random_stream stream{random_key{2, "lanes"}};
    for (int i = 0; i < 5000; ++i) {
      lane_values x;
      lane_values y;
      for (size_t lane = 0; lane < random_lanes; ++lane) {
        x[lane] = std::ldexp(0.5 + stream.uniform(), static_cast<int>(stream.below(2040)) - 1020);
        y[lane] = 1600 * stream.uniform() - 800;
      }
      auto logarithms = x;
      log_lanes(logarithms);
      auto powers = y;
      exp_lanes(powers);
      for (size_t lane = 0; lane < random_lanes; ++lane) {
        CHECK(logarithms[lane] == portable_log(x[lane]));
        CHECK(powers[lane] == portable_exp(y[lane]));
      }
    }
    lane_values edges{0, 1, 0x1p-1022, 0.70710678118654752, 0.7071067811865476, 2, 4, 1e308};
    auto logarithms = edges;
    log_lanes(logarithms);
    for (size_t lane = 0; lane < random_lanes; ++lane)
      CHECK(logarithms[lane] == portable_log(edges[lane]));
    lane_values far{infinity, -infinity, 710, -746, 700, -700, 0, 1};
    auto powers = far;
    exp_lanes(powers);
    for (size_t lane = 0; lane < random_lanes; ++lane)
      CHECK(powers[lane] == portable_exp(far[lane]));
  }

  TEST_CASE("there is no number below 0") {
    random_stream stream{random_key{6, "below"}};
    CHECK_THROWS_AS((void)stream.below(0), failure);
  }
}

} // namespace random_test
