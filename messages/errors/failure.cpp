// SPDX-License-Identifier: Apache-2.0
// Makes an error of what the code of a user threw.
#include "messages/errors/failure.hpp"

#include "messages/errors/printable.hpp"
#include "messages/errors/system_reason.hpp"
#include "messages/errors/throw_site.hpp"

#include <system_error>

namespace troupe {

error reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const failure& failed) {
    auto reason = failed.reason();
    reason.message = printable_line(reason.message);
    return reason;
  } catch (const std::system_error& failed) {
    // The standard library says so of a thread that cannot start, without a word of its own.
    auto is_thread = failed.code() == std::errc::resource_unavailable_try_again
                     && failed.what() == failed.code().message();
    if (is_thread)
      return {errc::resource, "cannot start a thread: " + start_reason(failed.code().value())};
    return {errc::user_code, printable_line(failed.what()), throw_site_of(thrown)};
  } catch (const std::exception& failed) {
    return {errc::user_code, printable_line(failed.what()), throw_site_of(thrown)};
  } catch (...) {
    return {errc::user_code, "threw something that is no std::exception", throw_site_of(thrown)};
  }
}

} // namespace troupe
