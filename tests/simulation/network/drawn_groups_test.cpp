// SPDX-License-Identifier: Apache-2.0
// Goal: whatever becomes of a group's members, each question to it ends once, and says of each
// member what became of it. Method: members at the nodes of a simulated network, some of them under
// supervision, with drawn times, exceptions, cuts and crashes.
#include "actors/groups/group.hpp"
#include "actors/net/network_messages.hpp"
#include "actors/observing/observed.hpp"
#include "actors/supervision/supervisor.hpp"
#include "kernels/tensor/random.hpp"
#include "simulation/network/simulated_network.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/trial_messages.hpp"

#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace drawn_groups_test {

/// A member's message to itself: it is time to answer.
struct count_due {
  caf::typed_response_promise<troupe::msg<trial::Count>> promise;
  uint64_t value = 0;
};

} // namespace drawn_groups_test

TROUPE_LOCAL_MESSAGE(drawn_groups_test::count_due)

namespace drawn_groups_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

constexpr uint32_t members = 5;
constexpr uint64_t rounds = 12;

using juror_actor = caf::typed_actor<caf::replies_to<msg<trial::Opinion>>::with<msg<trial::Count>>,
                                     caf::reacts_to<count_due>>;

struct juror_state {
  static inline const char* name = "juror";
};

job_time drawn_time(random_stream& draw, job_time longest) {
  return job_time{static_cast<int64_t>(static_cast<double>(longest.count()) * draw.uniform())};
}

/// Answers a round's number; sometimes it throws, keeps silent, or answers with an error.
juror_actor::behavior_type juror(observed_pointer<juror_actor, juror_state> self, uint64_t seed,
                                 uint32_t index) {
  return {[=](const msg<trial::Opinion>& said) {
            auto round = static_cast<uint64_t>(
              read_tensor(said.reader().getGradient(), said.owner()).element_count());
            random_stream draw{random_key{seed, "answer", index, round}};
            auto promise = self->make_response_promise<msg<trial::Count>>();
            auto fate = draw.uniform();
            if (fate < 0.05) throw std::runtime_error{"a juror is taken ill"};
            if (fate < 0.1) return promise;
            if (fate < 0.15) {
              promise.deliver(to_caf({errc::malformed, "that is no question"}));
              return promise;
            }
            self->delayed_send(self, drawn_time(draw, 200ms), count_due{promise, round});
            return promise;
          },
          [](count_due due) { due.promise.deliver(make_count(due.value)); }};
}

network_options options_of(uint64_t seed) {
  network_options options;
  options.latency = [seed](const passage& goes) {
    random_stream draw{random_key{seed, "latency", goes.end, goes.count}};
    return drawn_time(draw, 20ms);
  };
  options.owners = members;
  options.detection = 50ms;
  network_messages known;
  known.add<trial::Opinion>("trial.Opinion").add<trial::Count>("trial.Count");
  options.messages = known;
  return options;
}

/// The record of one course.
struct course {
  std::vector<std::string> diary; ///< The summary of each question.
  std::map<member_status, size_t> count;
};

class drawn_group {
public:
  explicit drawn_group(uint64_t seed)
    : seed_(seed), draw_(random_key{seed, "course"}), world_(world::virtual_time({.seed = seed})),
      network_(world_, 1, options_of(seed)) {
    std::vector<juror_actor> seen;
    for (uint32_t i = 0; i < members; ++i) {
      auto name = fmt::format("owner {}", i); // by which it stands at a node of its own
      auto actor = i % 2 == 0 ? supervised(i) : alone(i);
      network_.placement().put(name, actor);
      seen.push_back(caf::actor_cast<juror_actor>(network_.placement().see("jury", name).value()));
    }
    jury_.emplace(world_, "juror", seen);
    victim_ = network_.nodes().owner_node(static_cast<uint32_t>(members * draw_.uniform()));
    network_.events().at(drawn_time(draw_, 2s), [this] { network_.crash(victim_, true); });
    network_.events().at(drawn_time(draw_, 2s), [this] {
      auto cut_off = network_.nodes().owner_node(static_cast<uint32_t>(members * draw_.uniform()));
      auto number
        = network_.sever({.from = [cut_off](node_index node) { return node == cut_off; }});
      network_.events().at(network_.events().now() + 300ms,
                           [this, number] { network_.heal(number); });
    });
  }

  ~drawn_group() {
    supervisors_.clear();
    jury_.reset();
    for (const auto& actor : actors_)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    while (world_.make_event()) {
    }
  }

  course run() {
    for (uint64_t round = 1; round <= rounds; ++round) {
      group_options options{.first = static_cast<size_t>((members + 1) * draw_.uniform()),
                            .limit = 10ms + drawn_time(draw_, 500ms),
                            .awaits_late = draw_.uniform() < 0.3};
      auto asked_at = world_.now();
      auto limit = options.limit;
      auto question = make_opinion(0, zeros({static_cast<int64_t>(round)}));
      if (draw_.uniform() < 0.3)
        read_stream(round, question, options);
      else
        check(round, options, jury_->ask<msg<trial::Count>>(question, options).wait());
      CHECK(world_.now() - asked_at <= limit);
    }
    return seen_;
  }

private:
  caf::actor alone(uint32_t index) {
    auto actor = caf::actor_cast<caf::actor>(world_.system().spawn(juror, seed_, index));
    actors_.push_back(actor);
    return actor;
  }

  caf::actor supervised(uint32_t index) {
    supervisors_.push_back(std::make_unique<supervisor>(
      world_, fmt::format("of juror {}", index),
      supervisor_options{.restart = {.restarts = 2, .within = 2s, .backoff = 50ms},
                         .on_warning = [](const std::string&) {}}));
    return supervisors_.back()->add<caf::actor>("juror", [this, index](const child_start&) {
      return caf::actor_cast<caf::actor>(world_.system().spawn(juror, seed_, index));
    });
  }

  void check(uint64_t round, const group_options& options,
             const group_answers<msg<trial::Count>>& answers) {
    auto wanted = options.first == 0 ? members : options.first;
    CHECK(answers.wanted == wanted);
    CHECK(answers.count(member_status::asked) == 0);
    CHECK(answers.count(member_status::counted) <= wanted);
    for (size_t i = 0; i < members; ++i) {
      const auto& one = answers.members[i];
      ++seen_.count[one.state];
      CHECK(one.has_answer == answers.replies[i].has_value());
      CHECK(one.has_answer != (one.why.code != errc::none));
      if (one.has_answer) CHECK(answers.replies[i]->reader().getValue() == round);
      if (one.state == member_status::counted) CHECK(one.has_answer);
      if (one.state == member_status::late && !options.awaits_late) CHECK_FALSE(one.has_answer);
      if (one.state == member_status::late) CHECK(one.took <= options.limit);
    }
    seen_.diary.push_back(answers.summary());
  }

  void read_stream(uint64_t round, const msg<trial::Opinion>& question,
                   const group_options& options) {
    auto ends_at = world_.now() + options.limit;
    auto answers = jury_->stream<msg<trial::Count>>(question, options);
    size_t counted = 0;
    std::vector<bool> told(members);
    std::string line = "stream";
    for (auto next = answers.next(); next; next = answers.next()) {
      CHECK_FALSE(told[next->member]);
      told[next->member] = true;
      counted += next->report.state == member_status::counted ? 1 : 0;
      CHECK(next->report.has_answer == next->reply.has_value());
      if (next->reply) CHECK(next->reply->reader().getValue() == round);
      line += fmt::format(" {}:{}", next->member, to_string(next->report.state));
    }
    auto wanted = options.first == 0 ? members : options.first;
    auto all_told = std::ranges::count(told, true) == members;
    CHECK(counted <= wanted);
    if (world_.now() < ends_at) CHECK((all_told || (counted == wanted && !options.awaits_late)));
    seen_.diary.push_back(line);
  }

  uint64_t seed_;
  random_stream draw_;
  troupe::world world_;
  simulated_network network_;
  node_index victim_ = 0;
  std::vector<caf::actor> actors_;
  std::vector<std::unique_ptr<supervisor>> supervisors_;
  std::optional<group<juror_actor>> jury_;
  course seen_;
};

} // namespace

TEST_SUITE("simulation/network/drawn_groups") {
  TEST_CASE("each question ends once and in time, and a seed runs again") {
    std::map<member_status, size_t> count;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      CAPTURE(seed);
      auto first = drawn_group{seed}.run();
      CHECK(first.diary.size() == rounds);
      for (auto [state, times] : first.count)
        count[state] += times;
      if (seed <= 20) CHECK(drawn_group{seed}.run().diary == first.diary);
    }
    CHECK(count[member_status::counted] > 1000);
    CHECK(count[member_status::late] > 500);
    CHECK(count[member_status::lost] > 200);
    CHECK(count[member_status::failed] > 50);
  }
}

} // namespace drawn_groups_test
