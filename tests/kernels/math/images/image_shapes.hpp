// SPDX-License-Identifier: Apache-2.0
// Windows over images for the tests of convolution and pooling: none, one, overlapping, apart,
// padded, larger than the image, and those of an ordinary network.
#pragma once

#include "kernels/math/images/image_windows.hpp"

namespace troupe::test {

/// batch, height, width, channels, window height and width, stride, padding
inline constexpr image_windows image_shapes[]
  = {{0, 5, 5, 2, 3, 3, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 0},  {2, 5, 7, 3, 3, 2, 1, 1},
     {1, 6, 6, 5, 2, 2, 2, 0}, {3, 9, 4, 1, 4, 3, 3, 2},  {1, 7, 7, 67, 1, 1, 5, 0},
     {2, 2, 2, 3, 5, 5, 2, 2}, {4, 14, 14, 8, 5, 5, 1, 2}};

} // namespace troupe::test
