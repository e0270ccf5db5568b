// SPDX-License-Identifier: Apache-2.0
// Reads fields of JSON objects that another program has written.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace troupe {

/// The text at a key, made `printable`; empty if there is none.
[[nodiscard]] std::string text_at(const nlohmann::json& object, const char* key);

/// The number at a key, clamped to [-1e9, 1e9]; nothing if there is none.
[[nodiscard]] std::optional<double> number_at(const nlohmann::json& object, const char* key);

/// The whole number at a key; nothing if there is none, or it is negative.
[[nodiscard]] std::optional<uint64_t> count_at(const nlohmann::json& object, const char* key);

} // namespace troupe
