// SPDX-License-Identifier: Apache-2.0
// Goal: the factor of a clip shortens gradients that are too long, and no others. Method: norms
// around the limit.
#include "kernels/math/clip.hpp"
#include "tests/doctest.hpp"

#include <cmath>

namespace clip_test {

using namespace troupe;

TEST_SUITE("kernels/math/clip") {
  TEST_CASE("the factor is 1 up to the limit, and shortens beyond it") {
    CHECK(clip_factor(0, 5) == 1);
    CHECK(clip_factor(5, 5) == 1);
    CHECK(clip_factor(20, 5) == 0.25);
    CHECK(clip_factor(20, INFINITY) == 1);
    CHECK(std::isnan(clip_factor(INFINITY, 5)));
    CHECK(std::isnan(clip_factor(INFINITY, INFINITY)));
    CHECK(std::isnan(clip_factor(NAN, 5)));
  }
}

} // namespace clip_test
