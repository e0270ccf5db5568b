// SPDX-License-Identifier: Apache-2.0
// Every message arrives as it was sent: each is built, framed, decoded and compared field by field.
#include "messages/body.hpp"
#include "messages/checks/limits.hpp"
#include "messages/cluster_message.hpp"
#include "messages/collective_message.hpp"
#include "messages/link_message.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"

#include <capnp/schema.h>

#include <cmath>
#include <functional>

namespace training_message_test {

using namespace troupe;
using std::chrono::nanoseconds;

namespace {

std::string_view text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

std::vector<float> floats_of(const tensor& tensor) {
  auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

} // namespace

TEST_SUITE("messages/training_message") {
  TEST_CASE("there is an example of every message that the envelope lists, in its order") {
    auto bodies = capnp::Schema::from<wire::Envelope>().getUnionFields();
    REQUIRE(message_examples().size() == bodies.size());
    for (size_t i = 0; i < bodies.size(); ++i) {
      std::string_view name = bodies[static_cast<capnp::uint>(i)].getProto().getName().cStr();
      CHECK(message_examples()[i].name == name);
    }
  }

  TEST_CASE("every example arrives and prints") {
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      auto received = decode_any(receive(example.frame));
      REQUIRE(received);
      CHECK(body_name(received->which()) == example.name);
      CHECK(print(*received).size() >= 2);
    }
  }

  TEST_CASE("an empty message has the defaults of its fields") {
    msg<wire::PushGradient> empty;
    CHECK(empty.is_empty());
    CHECK(empty.reader().getOrigin().getLocalStep() == 0);
    CHECK(std::isnan(empty.reader().getOrigin().getLoss()));
    CHECK(empty.reader().getGradient().isNone());
  }

  TEST_CASE("a copy is the same message, an equal one is not") {
    auto token = make_token(3);
    auto copy = token;
    CHECK(copy == token);
    CHECK(make_token(3) != token);
  }

  TEST_CASE("a push keeps its origin and its dense gradient") {
    origin from{.replica = 2,
                .examples = 32,
                .local_step = 7,
                .iteration = 9,
                .compute = nanoseconds(11),
                .waited = nanoseconds(13),
                .loss = 0};
    auto push = send_and_receive(make_push_gradient(from, make_array<float>({2, 2}, {1, 2, 3, 4})));
    auto got = read_origin(push.reader().getOrigin());
    CHECK(got.replica == 2);
    CHECK(got.examples == 32);
    CHECK(got.local_step == 7);
    CHECK(got.iteration == 9);
    CHECK(got.compute == nanoseconds(11));
    CHECK(got.waited == nanoseconds(13));
    CHECK(got.loss == 0);
    auto gradient = read_gradient(push.reader().getGradient(), push.owner());
    auto& dense = std::get<tensor>(*gradient);
    CHECK(dense.type() == dtype::f32);
    CHECK(dense.extents() == shape{2, 2});
    CHECK(floats_of(dense) == std::vector<float>{1, 2, 3, 4});
  }

  TEST_CASE("a push keeps its sparse gradient") {
    auto push = send_and_receive(make_push_gradient({}, make_slices()));
    auto gradient = read_gradient(push.reader().getGradient(), push.owner());
    auto& slices = std::get<indexed_slices>(*gradient);
    CHECK(slices.dense_extents == shape{4, 10});
    CHECK(slices.indices.extents() == shape{2});
    CHECK(slices.indices.bytes() == 16);
    CHECK(slices.values.extents() == shape{2, 10});
    CHECK(floats_of(slices.values) == counting_to(20));
  }

  TEST_CASE("a push without a gradient says so") {
    auto push = send_and_receive(make_push_gradient({}, std::nullopt));
    auto gradient = read_gradient(push.reader().getGradient(), push.owner());
    CHECK(!gradient);
  }

  TEST_CASE("a loss that was not reported arrives as NaN") {
    auto push = send_and_receive(make_push_gradient({}, std::nullopt));
    CHECK(std::isnan(read_origin(push.reader().getOrigin()).loss));
  }

  TEST_CASE("a length of time never arrives negative") {
    origin backwards{.compute = nanoseconds(-5)};
    auto push = send_and_receive(make_push_gradient(backwards, std::nullopt));
    CHECK(read_origin(push.reader().getOrigin()).compute == nanoseconds(0));
  }

  TEST_CASE("a snapshot keeps its version and value") {
    auto snapshot = send_and_receive(make_variable_snapshot(5, make_array<double>({}, {2.5})));
    CHECK(snapshot.reader().getVersion() == 5);
    auto value = read_tensor(snapshot.reader().getValue(), snapshot.owner());
    CHECK(value.type() == dtype::f64);
    CHECK(value.rank() == 0);
    CHECK(value.bytes() == 8);
  }

  TEST_CASE("the messages between a replica, an accumulator and the queue keep their fields") {
    CHECK(send_and_receive(make_read_variable()).reader().getComponent() == whole_variable);
    CHECK(send_and_receive(make_read_variable(3)).reader().getComponent() == 3);
    auto reply = send_and_receive(make_push_reply(verdict::stale, 8, 9));
    CHECK(reply.reader().getVerdict() == wire::Verdict::STALE);
    CHECK(reply.reader().getAccumulatorStep() == 8);
    CHECK(reply.reader().getNextStep() == 9);
    auto take = send_and_receive(make_take_token(2, 7, 9, 11));
    CHECK(take.reader().getRequest() == 11);
    CHECK(take.reader().getReplica() == 2);
    CHECK(take.reader().getLocalStep() == 7);
    CHECK(take.reader().getNotBefore() == 9);
    CHECK(send_and_receive(make_token(UINT64_MAX)).reader().getStep() == UINT64_MAX);
    CHECK(send_and_receive(make_join_job(6)).reader().getReplica() == 6);
    auto farewell = send_and_receive(make_farewell(4, {errc::user_code, "it threw", "step"}));
    CHECK(farewell.reader().getReplica() == 4);
    CHECK(read_errc(farewell.reader().getCode()) == errc::user_code);
    CHECK(text_of(farewell.reader().getReason()) == "it threw");
    CHECK(text_of(farewell.reader().getThrowSite()) == "step");
  }

  TEST_CASE("the error of another process is one line that may be printed") {
    auto farewell
      = send_and_receive(make_farewell(4, {errc::user_code, "two\nlines \x1b[2J", "a\nb \xff"}));
    auto reason = read_error(farewell.reader());
    CHECK(reason == error{errc::user_code, "two lines ?[2J"});
    CHECK(reason.throw_site == "a b ?");
  }

  TEST_CASE("the messages of the chief keep their fields") {
    auto take = send_and_receive(make_take_gradient(3, false, true));
    CHECK_FALSE(take.reader().getHold());
    CHECK(take.reader().getMeasure());
    auto measured
      = send_and_receive(make_update_applied({.squared_norm = 3, .mean_squared_norm = 5}));
    CHECK(measured.reader().getSquaredNorm() == 3);
    CHECK(measured.reader().getMeanSquaredNorm() == 5);
    auto fewer = send_and_receive(make_cancel_takes(3, 7));
    CHECK(fewer.reader().getAtMost() == 3);
    CHECK(fewer.reader().getStep() == 7);
    auto missing = send_and_receive(make_count_missing(2, 7));
    CHECK(missing.reader().getGradients() == 2);
    CHECK(missing.reader().getStep() == 7);
    CHECK(send_and_receive(make_take_gradient(3)).reader().getRequired() == 3);
    auto applied = send_and_receive(make_update_applied({6, 5, nanoseconds(9), nanoseconds(4)}));
    CHECK(applied.reader().getVersion() == 6);
    CHECK(applied.reader().getStep() == 5);
    CHECK(send_and_receive(make_set_step(9)).reader().getStep() == 9);
    CHECK(send_and_receive(make_cancel_step(10)).reader().getStep() == 10);
    auto tokens = send_and_receive(make_put_tokens(8, 4));
    CHECK(tokens.reader().getStep() == 8);
    CHECK(tokens.reader().getCount() == 4);
    auto stop = send_and_receive(make_stop_job("interrupted"));
    CHECK(text_of(stop.reader().getReason()) == "interrupted");
  }

  TEST_CASE("the queue tells its tokens from the head on") {
    uint64_t steps[] = {11, 11, 12};
    auto status = send_and_receive(make_queue_status(steps, {}));
    CHECK(status.reader().getTokens() == 3);
    CHECK(status.reader().getNextStep() == 11);
    auto got = mapped(status.reader().getSteps(), std::identity{});
    CHECK(got == std::vector<uint64_t>{11, 11, 12});
  }

  TEST_CASE("the queue names the replicas that wait, in the order of asking") {
    uint32_t waiting[] = {3, 0, 2};
    auto status = send_and_receive(make_queue_status({}, waiting));
    CHECK(status.reader().getTokens() == 0);
    CHECK(status.reader().getNextStep() == 0);
    auto replicas = mapped(status.reader().getWaiting(), std::identity{});
    CHECK(replicas == std::vector<uint32_t>{3, 0, 2});
  }

  TEST_CASE("the chief learns of every arrival, in order") {
    std::vector<arrival> accepted;
    for (uint32_t i = 0; i < 50; ++i)
      accepted.push_back({{.replica = 49 - i, .local_step = 7}, nanoseconds(i), 7});
    arrival stale{{.replica = 60, .local_step = 5}, nanoseconds(-1), 7};
    auto taken = send_and_receive(make_taken_gradient(7, accepted, std::span(&stale, 1)));
    CHECK(taken.reader().getStep() == 7);
    REQUIRE(taken.reader().getAccepted().size() == 50);
    for (uint32_t i = 0; i < 50; ++i) {
      auto got = read_arrival(taken.reader().getAccepted()[i]);
      CHECK(got.from.replica == 49 - i);
      CHECK(got.arrived == nanoseconds(i));
    }
    auto got = read_arrival(taken.reader().getStale()[0]);
    CHECK(got.from.local_step == 5);
    CHECK(got.arrived == nanoseconds(-1));
    CHECK(got.accumulator_step == 7);
  }

  TEST_CASE("an update orders its gradients by replica, then by iteration") {
    auto push = [](uint32_t replica, uint64_t iteration, float value) {
      return make_push_gradient({.replica = replica, .iteration = iteration},
                                make_array<float>({1}, {value}));
    };
    auto pushes = std::vector{push(2, 0, 4), push(0, 5, 2), push(1, 0, 3), push(0, 4, 1)};
    auto update = send_and_receive(make_apply_update(7, 0, pushes));
    CHECK(update.reader().getStep() == 7);
    CHECK(update.reader().getDivisor() == 0);
    REQUIRE(update.reader().getGradients().size() == 4);
    for (capnp::uint i = 0; i < 4; ++i) {
      auto gradient = read_gradient(update.reader().getGradients()[i], update.owner());
      CHECK(floats_of(std::get<tensor>(*gradient))[0] == static_cast<float>(i + 1));
    }
  }

  TEST_CASE("an update that belongs to an optimizer names it, with a number, too") {
    auto push = make_push_gradient({}, make_array<float>({1}, {1}));
    auto adam = make_use_optimizer({"adam", {{"beta1", 0.9}}, {"cosine", {{"updates", 9}}}});
    auto update = make_apply_update_of(adam, 2, std::span(&push, 1), true, true);
    for (const auto& each : {update, send_and_receive(update), numbered(update, {1, 2, 1})}) {
      auto body = each.reader();
      CHECK(are_same(body.getOptimizer(), adam.reader()));
      CHECK(body.getDivisor() == 2);
      CHECK(body.getHold());
      CHECK(body.getOneForEachDevice());
      CHECK(body.getGradients().size() == 1);
    }
    for (const auto& other : {make_use_optimizer({"adam", {{"beta1", 0.8}}}),
                              make_use_optimizer({"adam", {{"beta1", 0.9}}}),
                              make_use_optimizer({"sgd", {{"beta1", 0.9}}})})
      CHECK_FALSE(are_same(other.reader(), adam.reader()));
    CHECK_FALSE(make_apply_update(0, 0, std::span(&push, 1)).reader().hasOptimizer());
  }

  TEST_CASE("the list of all messages is the envelope's") {
    auto in_list = []<class... Bodies>(body_list<Bodies...>) {
      return std::vector<uint64_t>{capnp::typeId<Bodies>()...};
    }(every_body{});
    auto members = capnp::Schema::from<wire::Envelope>().getUnionFields();
    REQUIRE(in_list.size() == members.size());
    for (auto member : members) {
      auto proto = member.getProto();
      CAPTURE(proto.getName().cStr());
      CHECK(in_list[proto.getDiscriminantValue()]
            == member.getType().asStruct().getProto().getId());
    }
  }

  TEST_CASE("the messages of links keep their fields") {
    greeting who{"job 7", 4, 2, 1, nanoseconds(500), 1 << 20};
    CHECK(read_hello(send_and_receive(make_hello(who)).reader()) == who);
    auto find = send_and_receive(make_find_actor("token queue"));
    CHECK(text_of(find.reader().getName()) == "token queue");
    auto abort = send_and_receive(make_abort({errc::malformed, "bad frame"}));
    CHECK(read_errc(abort.reader().getCode()) == errc::malformed);
    CHECK(text_of(abort.reader().getReason()) == "bad frame");
  }

  TEST_CASE("messages of processes about their job keep their fields") {
    entrance who{3, nanoseconds(500), 7, 8, "batch = 8\nhidden = [16]\n"};
    CHECK(read_enter_job(send_and_receive(make_enter_job(who)).reader()) == who);
    std::vector<replica_progress> replicas(2);
    replicas[1] = {.replica = 4,
                   .computing = true,
                   .local_step = 9,
                   .iteration = 11,
                   .compute = nanoseconds(12)};
    auto begins = send_and_receive(make_job_begins(9, nanoseconds(600), replicas));
    CHECK(begins.reader().getFirstStep() == 9);
    CHECK(begins.reader().getClockNanoseconds() == 600);
    auto read = read_replicas(begins);
    REQUIRE(read.size() == 2);
    CHECK(read[1].replica == 4);
    CHECK(read[1].iteration == 11);
    CHECK(read[1].compute == nanoseconds(12));
    CHECK(send_and_receive(make_await_end(3)).reader().getMember() == 3);
    CHECK(send_and_receive(make_leave_job(3)).reader().getMember() == 3);
  }

  TEST_CASE("messages by which processes combine arrays keep their fields") {
    collective_meaning meaning{.kind = collective_kind::all_reduce,
                               .algorithm = collective_algorithm::ring,
                               .fixed_order = false,
                               .dtype = 1,
                               .contributions = 2,
                               .root = 0,
                               .name = "a",
                               .extents = {40}};
    auto payload = make_array<float>({20}, counting_to(20));
    collective_part part{.call = 3,
                         .rank = 1,
                         .stage = collective_stage::own,
                         .strand = 4,
                         .begin = 16,
                         .values = {payload, payload}};
    auto came = send_and_receive(make_collective_part(meaning, part));
    CHECK(read_meaning(came.reader().getMeaning()) == meaning);
    CHECK(means(came.reader().getMeaning(), meaning));
    auto other = meaning;
    other.extents = {41};
    CHECK_FALSE(means(came.reader().getMeaning(), other));
    other = meaning;
    other.name = std::string{'b'};
    CHECK_FALSE(means(came.reader().getMeaning(), other));
    auto read = read_collective_part(came);
    CHECK(read.call == 3);
    CHECK(read.rank == 1);
    CHECK(read.stage == collective_stage::own);
    CHECK(read.strand == 4);
    CHECK(read.begin == 16);
    REQUIRE(read.values.size() == 2);
    CHECK(read.values[1].extents() == shape{20});
    CHECK(read.values[1].bytes() == 80);
    collective_failure how{7, 2, {errc::unavailable, "worker:1 is gone"}};
    CHECK(read_collective_failed(send_and_receive(make_collective_failed(how)).reader()) == how);
  }

  TEST_CASE("how a job ended is the same for all processes, however it did") {
    for (const auto& how :
         {job_ending{5, std::nullopt, std::nullopt}, job_ending{5, std::nullopt, "interrupted"},
          job_ending{5, error{errc::stalled, "no token is left"}, std::nullopt},
          job_ending{5, std::nullopt, ""}})
      CHECK(read_job_ended(send_and_receive(make_job_ended(how)).reader()) == how);
  }

  TEST_CASE("a reason of any length arrives whole, in any number of segments") {
    for (size_t length = 0; length <= 2 * limits::first_segment_words * 8; ++length) {
      auto stop = make_stop_job(std::string(length, 'x'));
      CHECK(text_of(stop.reader().getReason()) == std::string(length, 'x'));
      CHECK(text_of(send_and_receive(stop).reader().getReason()) == std::string(length, 'x'));
    }
  }

  TEST_CASE("a reason that is too long is cut between two characters") {
    auto reason = std::string(limits::text_bytes_max - 1, 'x') + "\xC3\xA9 and more";
    auto farewell = send_and_receive(make_farewell(0, {errc::none, reason}));
    CHECK(text_of(farewell.reader().getReason()) == std::string(limits::text_bytes_max - 1, 'x'));
    CHECK(text_of(make_farewell(0).reader().getReason()).empty());
  }
}

} // namespace training_message_test
