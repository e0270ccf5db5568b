// SPDX-License-Identifier: Apache-2.0
// The precompiled header of tests that send messages.
#ifndef TROUPE_ACTOR_TESTS_PCH
#define TROUPE_ACTOR_TESTS_PCH

#include "actors/pch/actors.hpp"

#include <doctest/doctest.h>

#endif
