// SPDX-License-Identifier: Apache-2.0
// Goal: an exception becomes an error that can be printed. Method: exceptions with texts that no
// terminal should get.
#include "messages/errors/failure.hpp"
#include "tests/doctest.hpp"

#include <exception>
#include <stdexcept>
#include <system_error>

namespace failure_test {

using namespace troupe;

TEST_SUITE("messages/errors/failure") {
  TEST_CASE("the error of an exception is one line that may be printed") {
    constexpr auto said = "bad \x1b[31m\nsecond \xff line";
    auto plain = std::make_exception_ptr(std::runtime_error{said});
    auto own = std::make_exception_ptr(failure{{errc::not_found, said}});
    CHECK(reason_of(plain) == error{errc::user_code, "bad ?[31m second ? line"});
    CHECK(reason_of(own) == error{errc::not_found, "bad ?[31m second ? line"});
  }

  TEST_CASE("a thread that cannot start is told from another error of the system") {
    auto again = std::make_error_code(std::errc::resource_unavailable_try_again);
    auto of_thread = std::make_exception_ptr(std::system_error{again});
    auto of_file = std::make_exception_ptr(std::system_error{again, "cannot write to file"});
    CHECK(reason_of(of_thread)
          == error{errc::resource,
                   "cannot start a thread: Resource temporarily unavailable; ulimit -u, or the "
                   "container's limit on processes, sets how many"});
    CHECK(reason_of(of_file)
          == error{errc::user_code, "cannot write to file: Resource temporarily unavailable"});
  }

  TEST_CASE("an exception that is caught keeps its own text") {
    constexpr auto said = "two\nlines";
    try {
      value_or_throw(expected<int>{fail(errc::not_found, said)});
      FAIL("has thrown nothing");
    } catch (const failure& failed) {
      CHECK(std::string{failed.what()} == said);
      CHECK(failed.reason().message == said);
    }
  }
}

} // namespace failure_test
