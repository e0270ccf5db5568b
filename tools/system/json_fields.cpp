// SPDX-License-Identifier: Apache-2.0
// Looks up fields that may be missing or of another type.
#include "tools/system/json_fields.hpp"

#include "messages/errors/printable.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace troupe {

std::string text_at(const nlohmann::json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return printable(found->get<std::string>());
}

std::optional<double> number_at(const nlohmann::json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return std::clamp(found->get<double>(), -1e9, 1e9);
}

std::optional<uint64_t> count_at(const nlohmann::json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

} // namespace troupe
