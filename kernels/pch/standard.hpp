// SPDX-License-Identifier: Apache-2.0
// The precompiled header of arithmetic: the standard library's headers that most of its files
// include.
#ifndef TROUPE_STANDARD_PCH
#define TROUPE_STANDARD_PCH

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>

#endif
