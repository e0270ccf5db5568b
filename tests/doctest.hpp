// SPDX-License-Identifier: Apache-2.0
// doctest, wherever it lies: Debian installs <doctest/doctest.h>, the wrap gives <doctest.h>.
#pragma once

#if __has_include(<doctest/doctest.h>)
#  include <doctest/doctest.h>
#else
#  include <doctest.h>
#endif
