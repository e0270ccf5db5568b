// SPDX-License-Identifier: Apache-2.0
// From an exception to an error, and from an error to an exception.
#pragma once

#include "messages/failure.hpp"

#include <exception>
#include <utility>

namespace troupe {

/// Why the code of a user threw: a failure's reason, else what the exception says.
[[nodiscard]] inline error reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const failure& failed) {
    return failed.reason();
  } catch (const std::exception& failed) {
    return {errc::user_code, failed.what()};
  } catch (...) {
    return {errc::user_code, "threw something that is no std::exception"};
  }
}

/// The value, or its error as an exception.
template <class T>
T value_or_throw(expected<T> result) {
  if (!result) throw failure{std::move(result.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

} // namespace troupe
