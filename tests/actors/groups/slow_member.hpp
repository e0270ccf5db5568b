// SPDX-License-Identifier: Apache-2.0
// A member of a group that takes its time.
#pragma once

#include "actors/interfaces/caf_compat.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_actor.hpp>

#include <chrono>
#include <string>

namespace troupe::test {

/// A member's message to itself: it is time to answer.
struct answer_due {
  caf::response_promise promise;
  int number = 0;
};

} // namespace troupe::test

TROUPE_LOCAL_MESSAGE(troupe::test::answer_due)

namespace troupe::test {

/// Doubles a number. The text tells it to stop.
using doubler_actor
  = caf::typed_actor<caf::replies_to<int>::with<int>, caf::reacts_to<std::string>>;

/// It answers after `delay`. @param told Counts the texts; may be null.
inline caf::behavior slow_doubler(caf::event_based_actor* self, std::chrono::nanoseconds delay,
                                  int* told = nullptr) {
  return {[self, delay](int number) {
            auto promise = self->make_response_promise();
            self->delayed_send(self, delay, answer_due{promise, number});
            return promise;
          },
          [](answer_due due) { due.promise.deliver(2 * due.number); },
          [told](const std::string&) {
            if (told != nullptr) ++*told;
          }};
}

/// It answers with an error.
inline caf::behavior failing_doubler() {
  return {[](int) -> caf::result<int> {
    return to_caf({errc::invalid_argument, "7 is not to be doubled"});
  }};
}

/// It never answers.
inline caf::behavior silent_doubler(caf::event_based_actor* self) {
  return {[self](int) { return self->make_response_promise(); }};
}

} // namespace troupe::test
