// SPDX-License-Identifier: Apache-2.0
// The token by which a client of HTTP proves that it may look.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// A token that cannot be guessed: 32 letters and digits, 128 bits of chance.
[[nodiscard]] std::string draw_token();

/// Whether a text can be a token: 16 to 128 letters, digits, '-', '.', '_' or '~', which mean
/// themselves in an address.
[[nodiscard]] bool is_token(std::string_view text);

/// Whether a request shows that its client knows the token. It takes as long for every guess of the
/// same length.
/// @param token Empty: nothing has to be known.
/// @param authorization The header's value: "Bearer TOKEN", the first word in any case. @param
/// target "/path?token=TOKEN".
[[nodiscard]] bool knows_token(std::string_view token, std::string_view authorization,
                               std::string_view target);

} // namespace troupe
