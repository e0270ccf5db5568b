// SPDX-License-Identifier: Apache-2.0
// How small the well-known compressors make a text: the yardstick for a language model.
#pragma once

#include "messages/errc.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// Size of what `gzip -9` makes of the bytes, headers included.
/// Cost: about 50 ns a byte. Errors: `resource` if there is not enough memory.
[[nodiscard]] expected<uint64_t> gzip_bytes(std::string_view text);

/// Size of what `xz` makes of the bytes with its default preset 6, headers included.
/// Cost: about 500 ns a byte, and 94 MiB of memory. Errors: `resource` if there is not enough
/// memory.
[[nodiscard]] expected<uint64_t> xz_bytes(std::string_view text);

} // namespace troupe
