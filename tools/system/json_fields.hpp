// SPDX-License-Identifier: Apache-2.0
// Fields of JSON objects that another program has written.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace troupe {

/// The text at a key, as `printable`; empty if there is none.
[[nodiscard]] std::string text_at(const nlohmann::json& object, const char* key);

/// The number at a key; nothing if there is none. From -1e9 to 1e9: greater ones are cut.
[[nodiscard]] std::optional<double> number_at(const nlohmann::json& object, const char* key);

/// The whole number at a key; nothing if there is none, or it is negative.
[[nodiscard]] std::optional<uint64_t> count_at(const nlohmann::json& object, const char* key);

} // namespace troupe
