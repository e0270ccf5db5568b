// SPDX-License-Identifier: Apache-2.0
// Tokens: drawn, checked, and found in requests.
#include "actors/observing/http_token.hpp"

#include "messages/text.hpp"

#include <cstddef>
#include <fmt/format.h>
#include <random>

namespace troupe {

namespace {

// The first parameter of that name behind the question mark of a target; empty if there is none.
std::string_view token_in(std::string_view target) {
  constexpr std::string_view name = "token=";
  for (auto mark = target.find('?'); mark != std::string_view::npos; mark = target.find('&')) {
    target.remove_prefix(mark + 1);
    if (target.starts_with(name)) return target.substr(name.size(), target.find('&') - name.size());
  }
  return {};
}

bool is_same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return difference == 0;
}

} // namespace

std::string draw_token() {
  std::random_device source;
  std::string token;
  while (token.size() < 32)
    token += fmt::format("{:08x}", source());
  return token;
}

bool is_token(std::string_view text) {
  constexpr std::string_view letters
    = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  return text.size() >= 16 && text.size() <= 128
         && text.find_first_not_of(letters) == std::string_view::npos;
}

bool knows_token(std::string_view token, std::string_view authorization, std::string_view target) {
  if (token.empty()) return true;
  constexpr std::string_view scheme = "bearer ";
  if (lower_case(authorization.substr(0, scheme.size())) == scheme
      && is_same_secret(authorization.substr(scheme.size()), token))
    return true;
  return is_same_secret(token_in(target), token);
}

} // namespace troupe
