// SPDX-License-Identifier: Apache-2.0
// Measures how small gzip and xz make a text, to compare a language model with them.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// The size of the file that `gzip -9` makes of the bytes.
/// Cost: about 50 ns a byte. Errors: `resource` if there is not enough memory.
[[nodiscard]] expected<uint64_t> gzip_bytes(std::string_view text);

/// The size of the file that `xz` makes of the bytes with its default preset 6.
/// Cost: about 500 ns a byte, and 94 MiB of memory. Errors: `resource` if there is not enough
/// memory.
[[nodiscard]] expected<uint64_t> xz_bytes(std::string_view text);

} // namespace troupe
