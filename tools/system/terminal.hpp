// SPDX-License-Identifier: Apache-2.0
// Whether a descriptor is a terminal, and the size of its window.
#pragma once

#include <cstddef>

namespace troupe {

/// Whether the descriptor is a terminal that can overwrite a line.
[[nodiscard]] bool is_terminal(int descriptor);

/// Letters in a line of the terminal; 80 if the terminal does not say.
[[nodiscard]] size_t terminal_width(int descriptor);

/// Lines of the terminal; 24 if the terminal does not say.
[[nodiscard]] size_t terminal_height(int descriptor);

} // namespace troupe
