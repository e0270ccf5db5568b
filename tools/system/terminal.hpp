// SPDX-License-Identifier: Apache-2.0
// Whether a user is watching, and how large the window is.
#pragma once

#include <cstddef>

namespace troupe {

/// True if the descriptor is a terminal that can overwrite a line.
[[nodiscard]] bool is_terminal(int descriptor);

/// Letters in a line of the terminal; 80 if it does not tell.
[[nodiscard]] size_t terminal_width(int descriptor);

/// Lines of the terminal; 24 if it does not tell.
[[nodiscard]] size_t terminal_height(int descriptor);

} // namespace troupe
