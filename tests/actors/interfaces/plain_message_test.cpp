// SPDX-License-Identifier: Apache-2.0
// Goal: a plain struct is a message between actors of one process, as docs/trainers.md says.
// Method: its example, asked by a coroutine.
#include "actors/interfaces/caf_compat.hpp"
#include "actors/world/activity.hpp"
#include "messages/errors/failure.hpp"
#include "tests/actors/hosted_coroutine.hpp"

#include <caf/meta/type_name.hpp>

#include <stdexcept>
#include <vector>

namespace trial {
struct guess {
  uint32_t replica = 0;
  double value = 0;
};

struct answer {
  double value = 0;
};
} // namespace trial

TROUPE_LOCAL_MESSAGE(trial::guess)
TROUPE_LOCAL_MESSAGE(trial::answer)

using judge_actor = caf::typed_actor<caf::replies_to<trial::guess>::with<trial::answer>>;

namespace trial {
struct hint {
  double value = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& inspector, hint& what) {
  return inspector(caf::meta::type_name("hint"), what.value);
}
} // namespace trial

namespace {

using namespace troupe;
using namespace troupe::test;

judge_actor::behavior_type judge() {
  return {[](const trial::guess& said) { return trial::answer{2 * said.value}; }};
}

using adviser_actor = caf::typed_actor<caf::replies_to<trial::hint>::with<trial::hint>>;

adviser_actor::behavior_type adviser() {
  return {[](const trial::hint& said) { return trial::hint{2 * said.value}; }};
}

task<void> ask_adviser(activity& activity, adviser_actor adviser, std::vector<double>& answers) {
  auto asking = activity.request<trial::hint>(adviser, trial::hint{21});
  auto answer = value_or_throw(co_await asking);
  answers.push_back(answer.value);
}

task<void> ask_judge(activity& activity, judge_actor judge, std::vector<double>& answers) {
  auto asking = activity.request<trial::answer>(judge, trial::guess{0, 21});
  auto answer = value_or_throw(co_await asking);
  answers.push_back(answer.value);
}

judge_actor::behavior_type throwing_judge() {
  return {[](const trial::guess& /*said*/) -> trial::answer { throw std::runtime_error{"no"}; }};
}

task<void> ask_in_vain(activity& activity, std::vector<judge_actor> judges,
                       std::vector<error>& reasons) {
  for (const auto& judge : judges) {
    auto asking = activity.request<trial::answer>(judge, trial::guess{0, 21});
    auto answer = co_await asking;
    if (!answer) reasons.push_back(answer.error());
  }
}

} // namespace

TEST_SUITE("actors/interfaces/plain_message") {
  TEST_CASE("a plain struct is asked and answered with") {
    std::vector<double> answers;
    judge_actor asked;
    hosted_coroutine stage{[&](activity& activity) {
      asked = activity.world().system().spawn(judge);
      return ask_judge(activity, asked, answers);
    }};
    stage.settle();
    CHECK(answers == std::vector<double>{42});
    caf::anon_send_exit(asked, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("one that can be inspected is a message without more") {
    std::vector<double> answers;
    adviser_actor asked;
    hosted_coroutine stage{[&](activity& activity) {
      asked = activity.world().system().spawn(adviser);
      return ask_adviser(activity, asked, answers);
    }};
    stage.settle();
    CHECK(answers == std::vector<double>{42});
    caf::anon_send_exit(asked, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a request to an empty handle says so, and a handler that throws is the user's code") {
    std::vector<error> reasons;
    judge_actor asked;
    hosted_coroutine stage{[&](activity& activity) {
      asked = activity.world().system().spawn(throwing_judge);
      return ask_in_vain(activity, {judge_actor{}, asked}, reasons);
    }};
    stage.settle();
    REQUIRE(reasons.size() == 2);
    CHECK(reasons[0]
          == error{errc::invalid_argument, "a request was made to an empty handle: spawn the "
                                           "actor, or look for it, before"});
    CHECK(reasons[1] == error{errc::user_code, "an actor has thrown an exception"});
  }
}
