// SPDX-License-Identifier: Apache-2.0
// Goal: the numbers that scripts rely on do not move. Method: write them out.
#include "messages/errors/throw_failure.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tests/doctest.hpp"
#include "tests/taken_output.hpp"

#include <csignal>
#include <stdexcept>
#include <string>

namespace exit_codes_test {

TEST_SUITE("strategies/jobs/exit_codes") {
  using namespace troupe;

  TEST_CASE("keeps its numbers") {
    CHECK(static_cast<int>(exit_code::finished) == 0);
    CHECK(static_cast<int>(exit_code::user_error) == 1);
    CHECK(static_cast<int>(exit_code::usage) == 2);
    CHECK(static_cast<int>(exit_code::no_cluster) == 3);
    CHECK(static_cast<int>(exit_code::lost_peer) == 4);
    CHECK(static_cast<int>(exit_code::stalled) == 5);
    CHECK(static_cast<int>(exit_code::bad_checkpoint) == 6);
    CHECK(exit_code_of_signal(SIGINT) == 130);
    CHECK(exit_code_of_signal(SIGTERM) == 143);
  }

  TEST_CASE("answers a failed job by what failed") {
    CHECK(exit_code_of(errc::none) == exit_code::finished);
    CHECK(exit_code_of(errc::user_code) == exit_code::user_error);
    CHECK(exit_code_of(errc::resource) == exit_code::user_error);
    CHECK(exit_code_of(errc::invalid_argument) == exit_code::user_error);
    CHECK(exit_code_of(errc::unavailable) == exit_code::lost_peer);
    CHECK(exit_code_of(errc::stalled) == exit_code::stalled);
    CHECK(exit_code_of(errc::deadline_exceeded) == exit_code::stalled);
  }

  TEST_CASE("a main ends with its own code, or with that of the failure that it names") {
    auto fails = []() -> int { throw_failure(errc::unavailable, "worker:1\nis gone"); };
    test::taken_output output;
    CHECK(run_main([] { return 7; }) == 7);
    CHECK(output.said().empty());
    CHECK(run_main(fails) == static_cast<int>(exit_code::lost_peer));
    CHECK(output.said() == "worker:1 is gone\n");
    CHECK(run_main(fails, "trainer") == static_cast<int>(exit_code::lost_peer));
    CHECK(output.said() == "worker:1 is gone\ntrainer: worker:1 is gone\n");
    auto throws = []() -> int { throw std::logic_error{"a bug"}; };
    CHECK_THROWS_AS(static_cast<void>(run_main(throws)), std::logic_error);
  }

  TEST_CASE("answers a join in vain by whether the chief's process had come") {
    CHECK(exit_code_of_join(errc::deadline_exceeded) == exit_code::no_cluster);
    CHECK(exit_code_of_join(errc::failed_precondition) == exit_code::no_cluster);
    CHECK(exit_code_of_join(errc::unavailable) == exit_code::lost_peer);
    CHECK(exit_code_of_join(errc::cancelled) == exit_code::user_error);
  }

  TEST_CASE("explains each number on a line of its own") {
    const auto text = exit_codes_text();
    for (const char* number : {"0", "1", "2", "3", "4", "5", "6", "128+n"})
      CHECK(text.find(std::string{"\n  "} + number + " ") != std::string::npos);
  }
}

} // namespace exit_codes_test
