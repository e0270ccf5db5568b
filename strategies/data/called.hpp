// SPDX-License-Identifier: Apache-2.0
// Calls of users' functions that make elements.
#pragma once

#include "messages/errors/failure.hpp"
#include "messages/errors/printable.hpp"
#include "strategies/data/element.hpp"

#include <exception>
#include <string>
#include <string_view>

namespace troupe {

/// The name of a reader in errors, where it throws.
inline constexpr std::string_view reader_name = "dataset: a reader";

/// The element that a user's function returns; what it throws becomes an error.
/// @param name Names the function in errors: the subject of "threw".
template <class Function>
[[nodiscard]] expected<element> called(std::string_view name, const Function& function) {
  try {
    return function();
  } catch (const failure&) {
    return tl::unexpected(reason_of(std::current_exception()));
  } catch (const std::exception& thrown) {
    return fail(errc::user_code, std::string{name} + " threw: " + printable_line(thrown.what()));
  } catch (...) {
    return fail(errc::user_code, std::string{name} + " threw something unknown");
  }
}

} // namespace troupe
