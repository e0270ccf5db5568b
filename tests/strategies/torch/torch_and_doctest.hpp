// SPDX-License-Identifier: Apache-2.0
// libtorch beside doctest: both have a macro CHECK, and a test means doctest's.
#pragma once

#include "tests/doctest.hpp"

#include <torch/torch.h>

#undef CHECK
#define CHECK(...) DOCTEST_CHECK(__VA_ARGS__)
