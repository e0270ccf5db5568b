// SPDX-License-Identifier: Apache-2.0
// The precompiled header of what reads and writes text: fmt and the standard library.
#ifndef TROUPE_FORMATTING_PCH
#define TROUPE_FORMATTING_PCH

#include "kernels/pch/standard.hpp"

#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <string_view>

#endif
