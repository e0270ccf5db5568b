// SPDX-License-Identifier: Apache-2.0
// The precompiled header of tests that need no actors.
#ifndef TROUPE_TESTS_PCH
#define TROUPE_TESTS_PCH

#include "kernels/pch/formatting.hpp"

#include <doctest/doctest.h>

#endif
