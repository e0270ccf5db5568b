// SPDX-License-Identifier: Apache-2.0
// Goal: an accumulator judges and collects as TensorFlow's conditional accumulators do, and touches
// no element. Method: a puppet pushes, another one takes, an owner of straw keeps what it gets.
#include "actors/training/accumulator.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

namespace accumulator_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using push_answer = answer<msg<wire::PushReply>>;
using take_answer = answer<msg<wire::UpdateApplied>>;
using updates = std::vector<msg<wire::ApplyUpdate>>;

variable_owner_actor::behavior_type straw_owner(variable_owner_actor::pointer,
                                                std::shared_ptr<updates> seen) {
  return {
    [](const msg<wire::ReadVariable>&) { return msg<wire::VariableSnapshot>{}; },
    [](const msg<wire::ChangeVariable>&) { return msg<wire::VariableSnapshot>{}; },
    [](const msg<wire::PullVariable>&) { return msg<wire::VariableChanges>{}; },
    [](const msg<wire::FollowOwner>&) { return msg<wire::OwnerFollowed>{}; },
    [](const msg<wire::ReadAverage>&) { return msg<wire::VariableSnapshot>{}; },
    [](const msg<wire::ReleaseUpdate>&) { return msg<wire::UpdateApplied>{}; },
    [](const msg<wire::ReadState>&) { return msg<wire::VariableState>{}; },
    [](const msg<wire::RestoreState>&) { return msg<wire::OptimizerInUse>{}; },
    [](const msg<wire::UseOptimizer>&) { return msg<wire::OptimizerInUse>{}; },
    [seen](const msg<wire::ApplyUpdate>& update) {
      seen->push_back(update);
      return make_update_applied({seen->size(), update.reader().getStep(), 0ns, 0ns});
    },
  };
}

/// Enough numbers for messages to refer to them instead of copying them.
const shape extents{20};

/// An accumulator for such a vector, between replicas, a chief and an owner.
struct collection : deterministic_world {
  explicit collection(uint64_t first_step = 0, std::optional<asynchronous_rule> rule = {},
                      bool requires_finite = false, bool gradients_are_sums = false)
    : owner(spawn(straw_owner, seen)),
      target(spawn(accumulator, accumulator_config{.variable = form,
                                                   .owner = owner,
                                                   .first_step = first_step,
                                                   .world = &world,
                                                   .gradients_are_sums = gradients_are_sums,
                                                   .asynchronous = rule,
                                                   .requires_finite = requires_finite})) {}

  ~collection() {
    caf::anon_send_exit(target, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
  }

  push_answer push(uint32_t replica, uint64_t local_step,
                   const optional_gradient& value = gradient{zeros(extents)},
                   uint32_t examples = 0) {
    auto message = make_push_gradient(
      {.replica = replica, .examples = examples, .local_step = local_step, .iteration = pushes++},
      value);
    auto result = replicas.ask<msg<wire::PushReply>>(target, message);
    settle();
    return result;
  }

  take_answer take(uint32_t required) {
    auto result = chief.ask<msg<wire::UpdateApplied>>(target, make_take_gradient(required));
    settle();
    return result;
  }

  /// The chief knows that so many gradients will never come.
  void miss(uint32_t gradients, uint64_t step) {
    chief.tell(target, make_count_missing(gradients, step));
    settle();
  }

  uint32_t held() {
    auto status = chief.ask<msg<wire::AccumulatorStatus>>(target, make_read_accumulator());
    settle();
    return status.value().reader().getAccumulated();
  }

  void set_step(uint64_t step) {
    chief.tell(target, make_set_step(step));
    settle();
  }

  /// The latest report to the chief.
  [[nodiscard]] wire::TakenGradient::Reader report() const {
    auto reports = chief.heard<wire::TakenGradient>();
    REQUIRE_FALSE(reports.empty());
    return reports.back().reader();
  }

  std::shared_ptr<updates> seen = std::make_shared<updates>();
  variable_form form{"w", dtype::f32, extents};
  variable_owner_actor owner;
  accumulator_actor target;
  puppet replicas{world};
  puppet chief{world};
  uint64_t pushes = 0;
};

bool is_accepted(const push_answer& push) {
  return push.value().reader().getVerdict() == wire::Verdict::ACCEPTED;
}

uint64_t next_of(const push_answer& push) {
  return push.value().reader().getNextStep();
}

uint64_t judged_at(const push_answer& push) {
  return push.value().reader().getAccumulatorStep();
}

uint64_t step_of(const take_answer& take) {
  return take.value().reader().getStep();
}

std::vector<uint32_t> replicas_of(capnp::List<wire::Arrival>::Reader arrivals) {
  return mapped(arrivals, [](auto arrival) { return arrival.getOrigin().getReplica(); });
}

const void* address_of(wire::Gradient::Reader gradient) {
  return gradient.getDense().getParts()[0].begin();
}

const optional_gradient no_gradient;

using replica_list = std::vector<uint32_t>;

} // namespace

TEST_SUITE("actors/training/accumulator") {
  TEST_CASE("a gradient of the current step is accepted, and the sender is told") {
    collection step;
    auto push = step.push(0, 0);
    CHECK(is_accepted(push));
    CHECK(judged_at(push) == 0);
  }

  TEST_CASE("a gradient of a past step is dropped, and the sender is told") {
    collection step{5};
    auto push = step.push(0, 4);
    CHECK_FALSE(is_accepted(push));
    CHECK(judged_at(push) == 5);
    CHECK_FALSE(step.take(1).has_come());
  }

  TEST_CASE("a gradient of a past step is dropped without a look at it") {
    collection step{5};
    CHECK_FALSE(is_accepted(step.push(0, 4, zeros({7, 7}))));
    CHECK_FALSE(is_accepted(step.push(0, 4, zeros(extents, dtype::f64))));
    CHECK_FALSE(is_accepted(step.push(0, 4, no_gradient)));
  }

  TEST_CASE("a gradient of a step ahead is accepted") {
    collection step;
    CHECK(is_accepted(step.push(0, 9)));
    CHECK(step.take(1).has_come());
    CHECK(step.report().getStep() == 0);
  }

  TEST_CASE("a gradient that does not fit is refused and changes nothing") {
    collection step;
    auto wrong_shape = step.push(0, 0, zeros({3}));
    CHECK(wrong_shape.error().code == errc::invalid_argument);
    CHECK(wrong_shape.error().message
          == "Shape mismatch: variable 'w' has shape [20], its gradient's is [3]");
    CHECK(step.push(0, 0, zeros(extents, dtype::f64)).error().code == errc::type_mismatch);
    CHECK(step.push(0, 0, no_gradient).error().code == errc::invalid_argument);
    auto take = step.take(2);
    CHECK(is_accepted(step.push(1, 0)));
    CHECK_FALSE(take.has_come());
    CHECK(step.push(1, 0, zeros({3})).error().code == errc::invalid_argument);
    CHECK_FALSE(take.has_come());
    CHECK(is_accepted(step.push(2, 0)));
    CHECK(take.has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{1, 2});
    CHECK(step.report().getStale().size() == 0);
  }

  TEST_CASE("a gradient with a number that is not finite is refused where that is asked for") {
    collection step{0, {}, true};
    auto spoilt = zeros(extents);
    spoilt.mutable_values<float>()[7] = std::numeric_limits<float>::infinity();
    auto refused = step.push(0, 0, spoilt);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().message
          == "variable 'w': 1 of the 20 numbers of its gradient are not finite");
    CHECK(is_accepted(step.push(0, 0)));
  }

  TEST_CASE("gradients that are sums are divided by the examples of all that are taken") {
    collection step{0, {}, false, true};
    const gradient value = zeros(extents);
    CHECK(is_accepted(step.push(0, 0, value, 5)));
    CHECK(is_accepted(step.push(1, 0, value, 2)));
    auto first = step.take(2);
    REQUIRE(step.seen->size() == 1);
    CHECK(step.seen->back().reader().getDivisor() == 7);
    auto second = step.take(1);
    CHECK(is_accepted(step.push(2, 1, value, 3)));
    REQUIRE(step.seen->size() == 2);
    CHECK(step.seen->back().reader().getDivisor() == 3);
  }

  TEST_CASE("gradients that are means are divided by their number, whatever examples they have") {
    collection step;
    CHECK(is_accepted(step.push(0, 0, gradient{zeros(extents)}, 5)));
    auto take = step.take(1);
    REQUIRE(step.seen->size() == 1);
    CHECK(step.seen->back().reader().getDivisor() == 0);
  }

  TEST_CASE("a gradient that is a sum over no examples, or over too many, is refused") {
    collection step{0, {}, false, true};
    const gradient value = zeros(extents);
    auto refused = step.push(3, 0, value);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().message
          == "variable 'w': losses_are_sums divides by the examples of a gradient, and replica 3 "
             "reports none; call context.report(loss, examples) before apply_gradients, or give "
             "minimize the examples");
    CHECK(is_accepted(step.push(0, 0, value, 1)));
    refused = step.push(1, 0, value, 4'294'967'295);
    CHECK(refused.error().message
          == "variable 'w': the gradients of a step are of more than 2^32 - 1 examples; let losses "
             "be means");
    CHECK(step.held() == 1);
    CHECK(is_accepted(step.push(1, 0, value, 4'294'967'294)));
  }

  TEST_CASE("a take of no gradients is refused, and the next one is served") {
    collection step;
    step.push(0, 0);
    auto nothing = step.take(0);
    CHECK(nothing.error().code == errc::invalid_argument);
    CHECK(nothing.error().message == "Argument num_required must be positive: it is 0");
    CHECK(step.chief.heard<wire::TakenGradient>().empty());
    CHECK(step_of(step.take(1)) == 0);
  }

  TEST_CASE("a take waits until there is enough") {
    collection step;
    auto take = step.take(3);
    for (uint32_t replica : {0U, 1U}) {
      step.push(replica, 0);
      CHECK_FALSE(take.has_come());
    }
    step.push(2, 0);
    CHECK(step_of(take) == 0);
  }

  TEST_CASE("everything that came before the take is part of it") {
    collection step;
    for (uint32_t replica : {2U, 0U, 1U})
      step.push(replica, 0);
    CHECK(step.take(2).has_come());
    CHECK(step.seen->back().reader().getGradients().size() == 3);
    CHECK(step.seen->back().reader().getDivisor() == 0);
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{2, 0, 1});
  }

  TEST_CASE("takes are served in order: a small one waits behind a large one") {
    collection step;
    auto large = step.take(2);
    auto small = step.take(1);
    step.push(0, 0);
    CHECK_FALSE(large.has_come());
    CHECK_FALSE(small.has_come());
    step.push(1, 0);
    CHECK(step_of(large) == 0);
    CHECK_FALSE(small.has_come());
    step.push(0, 1);
    CHECK(step_of(small) == 1);
    CHECK(step.seen->size() == 2);
  }

  TEST_CASE("each take raises the step by one") {
    collection step{7};
    for (uint64_t at = 7; at < 10; ++at) {
      CHECK(is_accepted(step.push(0, at)));
      CHECK(step_of(step.take(1)) == at);
      CHECK(step.report().getStep() == at);
      auto late = step.push(1, at);
      CHECK_FALSE(is_accepted(late));
      CHECK(judged_at(late) == at + 1);
    }
  }

  TEST_CASE("a take is reported to its asker, with the accepted and the dropped gradients") {
    collection step{3};
    step.push(4, 2);
    step.push(1, 3);
    step.push(5, 0);
    step.push(0, 3);
    CHECK(step.take(2).has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{1, 0});
    CHECK(replicas_of(step.report().getStale()) == replica_list{4, 5});
    step.push(2, 3);
    step.push(1, 4);
    CHECK(step.take(1).has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{1});
    CHECK(replicas_of(step.report().getStale()) == replica_list{2});
  }

  TEST_CASE("an arrival keeps its origin, and says when it came and how it was judged") {
    collection step{1};
    step.pass(5ns);
    auto push = make_push_gradient({.replica = 3,
                                    .examples = 32,
                                    .local_step = 1,
                                    .iteration = 9,
                                    .compute = 11ns,
                                    .waited = 13ns,
                                    .loss = 0.25},
                                   zeros(extents));
    step.replicas.tell(step.target, push);
    step.pass(2ns);
    CHECK(step.take(1).has_come());
    auto came = read_arrival(step.report().getAccepted()[0]);
    CHECK(came.arrived == 5ns);
    CHECK(came.accumulator_step == 1);
    CHECK(came.from.replica == 3);
    CHECK(came.from.examples == 32);
    CHECK(came.from.iteration == 9);
    CHECK(came.from.compute == 11ns);
    CHECK(came.from.waited == 13ns);
    CHECK(came.from.loss == 0.25);
  }

  TEST_CASE("gradients are handed over by reference") {
    collection step;
    auto first = zeros(extents);
    auto second = zeros(extents);
    step.push(0, 0, first);
    step.push(1, 0, second);
    CHECK(step.take(2).has_come());
    auto gradients = step.seen->back().reader().getGradients();
    CHECK(address_of(gradients[0]) == first.data());
    CHECK(address_of(gradients[1]) == second.data());
  }

  TEST_CASE("sparse gradients are handed over by reference too") {
    collection step;
    indexed_slices rows{zeros(extents, dtype::i64), zeros(extents), extents};
    step.push(0, 0, rows);
    CHECK(step.take(1).has_come());
    auto sparse = step.seen->back().reader().getGradients()[0].getSparse();
    CHECK(sparse.getValues().getParts()[0].begin() == rows.values.data());
    CHECK(sparse.getIndices().getParts()[0].begin() == rows.indices.data());
  }

  TEST_CASE("the owner gets the gradients ordered by replica, in any order of arrival") {
    collection step;
    std::vector<tensor> values;
    for (int i = 0; i < 4; ++i)
      values.push_back(zeros(extents));
    for (uint32_t replica : {3U, 1U, 0U, 2U})
      step.push(replica, 0, values[replica]);
    CHECK(step.take(4).has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{3, 1, 0, 2});
    for (uint32_t i = 0; i < 4; ++i)
      CHECK(address_of(step.seen->back().reader().getGradients()[i]) == values[i].data());
  }

  TEST_CASE("several gradients of one replica are ordered by iteration") {
    collection step;
    auto first = zeros(extents);
    auto second = zeros(extents);
    step.push(0, 0, first);
    step.push(0, 0, second);
    CHECK(step.take(2).has_come());
    CHECK(address_of(step.seen->back().reader().getGradients()[0]) == first.data());
    CHECK(address_of(step.seen->back().reader().getGradients()[1]) == second.data());
  }

  TEST_CASE("a gradient that was taken is let go, one that was dropped is not kept") {
    collection step;
    auto dropped = zeros(extents);
    step.set_step(1);
    step.push(0, 0, dropped);
    CHECK(dropped.is_unique());
    auto taken = zeros(extents);
    step.push(0, 1, taken);
    CHECK_FALSE(taken.is_unique());
    CHECK(step.take(1).has_come());
    step.seen->clear();
    CHECK(taken.is_unique());
  }

  TEST_CASE("a step that is set makes older gradients stale") {
    collection step;
    step.set_step(4);
    auto push = step.push(0, 3);
    CHECK_FALSE(is_accepted(push));
    CHECK(judged_at(push) == 4);
    CHECK(judged_at(step.push(0, 4)) == 4);
  }

  TEST_CASE("a step may be set back") {
    collection step{9};
    step.set_step(2);
    auto push = step.push(0, 2);
    CHECK(is_accepted(push));
    CHECK(judged_at(push) == 2);
    CHECK(step_of(step.take(1)) == 2);
  }

  TEST_CASE("setting the step keeps the gradients that are there") {
    collection step;
    step.push(0, 0);
    step.set_step(6);
    step.push(1, 6);
    CHECK(step_of(step.take(2)) == 6);
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{0, 1});
  }

  TEST_CASE("the asker of a take is told when the owner is gone") {
    collection step;
    caf::anon_send_exit(step.owner, caf::exit_reason::user_shutdown);
    step.settle();
    step.push(0, 0);
    CHECK(step.take(1).error().code == errc::unavailable);
  }

  TEST_CASE("the push that completes a step is answered as accepted") {
    collection step;
    auto take = step.take(1);
    auto push = step.push(0, 0);
    CHECK(is_accepted(push));
    CHECK(judged_at(push) == 0);
    CHECK(take.has_come());
  }

  TEST_CASE("where training is asynchronous a stale gradient counts, and its age is known") {
    collection step{6, asynchronous_rule{sync_policy::k_batch_async, 2}};
    auto push = step.push(0, 2);
    CHECK(is_accepted(push));
    CHECK(next_of(push) == 6);
    CHECK(next_of(step.push(1, 6)) == 7);
    auto take = step.take(2);
    CHECK(take.has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{0, 1});
    CHECK(step.report().getAccepted()[0].getAccumulatorStep() == 6);
    CHECK(step.report().getStale().size() == 0);
  }

  TEST_CASE("where training is asynchronous an update has as many gradients as it needs") {
    collection step{0, asynchronous_rule{sync_policy::k_async, 2}};
    for (uint32_t replica = 0; replica < 5; ++replica)
      CHECK(next_of(step.push(replica, 0)) == replica / 2 + 1);
    step.take(2);
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{0, 1});
    step.take(2);
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{2, 3});
    CHECK(step.report().getAccepted()[0].getAccumulatorStep() == 1);
    auto last = step.take(2);
    CHECK_FALSE(last.has_come());
    CHECK(next_of(step.push(0, 1)) == 3);
    CHECK(last.has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{4, 0});
  }

  TEST_CASE("gradients that will never come count as given, behind those that came") {
    collection step{4, asynchronous_rule{sync_policy::ssp, 2}};
    step.push(0, 4);
    auto take = step.take(2);
    step.miss(4, 3);
    CHECK_FALSE(take.has_come()); // of another step
    step.miss(4, 4);
    CHECK(take.has_come());
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{0});
    CHECK(step.seen->back().reader().getGradients().size() == 1);
    CHECK(step.held() == 3);
    step.take(2);
    CHECK(step.report().getAccepted().size() == 0);
    CHECK(step.seen->back().reader().getGradients().size() == 0);
    CHECK(next_of(step.push(1, 5)) == 7); // with the one that is still missing it makes the update
    step.take(2);
    CHECK(replicas_of(step.report().getAccepted()) == replica_list{1});
    CHECK(step.held() == 0);
  }

  TEST_CASE("where training is synchronous every gradient has to come") {
    collection step;
    auto take = step.take(1);
    step.miss(1, 0);
    CHECK_FALSE(take.has_come());
  }

  TEST_CASE("gradients that may lie on a device are added up for no caller") {
    collection step;
    auto there = step.spawn(accumulator, accumulator_config{.variable = step.form,
                                                            .owner = step.owner,
                                                            .world = &step.world,
                                                            .place = {device_kind::cuda, 1}});
    auto awaited = step.replicas.ask<msg<wire::Aggregate>>(there, make_await_aggregate(0));
    auto taken = step.chief.ask<msg<wire::Aggregate>>(there, make_take_aggregate(1));
    step.settle();
    const error refused{
      errc::unimplemented,
      "the gradients of variable 'w' stay on gpu:1, and read_aggregates adds "
      "them up on the host; leave variable_devices empty, or read_aggregates off"};
    CHECK(awaited.error() == refused);
    CHECK(taken.error() == refused);
    caf::anon_send_exit(there, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a take of an actor that has ended is forgotten, and the one behind it is served") {
    collection step;
    std::optional<puppet> asker{step.world};
    static_cast<void>(asker->ask<msg<wire::Aggregate>>(step.target, make_take_aggregate(2)));
    step.settle();
    auto next = step.replicas.ask<msg<wire::Aggregate>>(step.target, make_take_aggregate(1));
    step.push(0, 0);
    CHECK_FALSE(next.has_come());
    asker.reset();
    step.settle();
    CHECK(next.value().reader().getStep() == 0);
    CHECK(step.held() == 0);
  }

  TEST_CASE("a take may be content with fewer gradients, as long as its step is not over") {
    collection step;
    step.push(0, 0);
    auto take = step.take(3);
    step.chief.tell(step.target, make_cancel_takes(1, 7));
    step.settle();
    CHECK_FALSE(take.has_come()); // of another step
    step.replicas.tell(step.target, make_cancel_takes(1, 0));
    step.settle();
    CHECK_FALSE(take.has_come()); // not theirs
    step.chief.tell(step.target, make_cancel_takes(2, 0));
    step.settle();
    CHECK_FALSE(take.has_come());
    step.chief.tell(step.target, make_cancel_takes(1, 0));
    step.settle();
    CHECK(take.has_come());
  }
}

} // namespace accumulator_test
