// SPDX-License-Identifier: Apache-2.0
// Goal: an error of CAF comes to its reader as a code to act on and a sentence. Method: the errors
// that askers get.
#include "actors/interfaces/caf_compat.hpp"
#include "tests/doctest.hpp"

#include <caf/exit_reason.hpp>
#include <caf/make_message.hpp>
#include <caf/sec.hpp>

namespace caf_compat_test {

using namespace troupe;

TEST_SUITE("actors/interfaces/caf_compat") {
  TEST_CASE("errors of CAF that askers get are sentences") {
    CHECK(from_caf(caf::sec::request_receiver_down)
          == error{errc::unavailable, "the actor that was asked has ended (was its strategy, or "
                                      "what else holds it, destroyed?)"});
    CHECK(from_caf(caf::sec::request_timeout)
          == error{errc::deadline_exceeded, "the actor that was asked did not answer in time"});
    CHECK(from_caf(caf::sec::invalid_argument)
          == error{errc::invalid_argument, "a request was made to an empty handle: spawn the "
                                           "actor, or look for it, before"});
    CHECK(from_caf(caf::sec::unexpected_message)
          == error{errc::resource, "an actor was sent a message that it does not take"});
    CHECK(from_caf(caf::exit_reason::kill) == error{errc::unavailable, "it was killed"});
    CHECK(from_caf(caf::exit_reason::user_shutdown)
          == error{errc::unavailable, "it was told to end"});
  }

  TEST_CASE("the particulars of an error of CAF stay") {
    auto reason = caf::make_error(caf::sec::runtime_error, "no file");
    CHECK(from_caf(reason)
          == error{errc::user_code, "an actor has thrown an exception: (\"no file\")"});
  }

  TEST_CASE("an error of CAF without a sentence is spelled as CAF does") {
    CHECK(from_caf(caf::sec::end_of_stream).message == "system_error(end_of_stream)");
    CHECK(from_caf(caf::exit_reason::unknown).message == "exit_reason(unknown)");
  }

  TEST_CASE("an error of ours passes through CAF unchanged, and none stays none") {
    error ours{errc::stalled, "too few tokens", "worker:2"};
    auto back = from_caf(to_caf(ours));
    CHECK(back == ours);
    CHECK(back.throw_site == "worker:2");
    CHECK(from_caf({}).code == errc::none);
  }
}

} // namespace caf_compat_test
