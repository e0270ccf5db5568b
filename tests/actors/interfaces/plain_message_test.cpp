// SPDX-License-Identifier: Apache-2.0
// Goal: a plain struct is a message between actors of one process, as docs/trainers.md says.
// Method: its example, asked by a coroutine.
#include "actors/interfaces/caf_compat.hpp"
#include "actors/world/activity.hpp"
#include "messages/failure.hpp"
#include "tests/actors/hosted_coroutine.hpp"

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

namespace {

using namespace troupe;
using namespace troupe::test;

judge_actor::behavior_type judge() {
  return {[](const trial::guess& said) { return trial::answer{2 * said.value}; }};
}

task<void> ask_judge(activity& activity, judge_actor judge, std::vector<double>& answers) {
  auto asking = activity.request<trial::answer>(judge, trial::guess{0, 21});
  auto answer = value_or_throw(co_await asking);
  answers.push_back(answer.value);
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
}
