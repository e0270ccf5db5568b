// SPDX-License-Identifier: Apache-2.0
// Calls of functions, and what came of them, arrive as they were sent.
#include "messages/checks/limits.hpp"
#include "messages/coordinator_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"
#include "tests/messages/hostile_frame.hpp"

#include <cstring>

namespace coordinator_message_test {

using namespace troupe;

namespace {

std::vector<closure_value> one_of_each() {
  return {make_array<float>({20}, counting_to(20)), 0.5, int64_t{-2}, std::string{"a text"},
          worker_resource{1, 2, 3}};
}

void check_one_of_each(const std::vector<closure_value>& values) {
  REQUIRE(values.size() == 5);
  const auto& array = std::get<tensor>(values[0]);
  CHECK(array.extents() == shape{20});
  CHECK(std::memcmp(array.data(), counting_to(20).data(), array.bytes()) == 0);
  CHECK(std::get<double>(values[1]) == 0.5);
  CHECK(std::get<int64_t>(values[2]) == -2);
  CHECK(std::get<std::string>(values[3]) == "a text");
  CHECK(std::get<worker_resource>(values[4]) == worker_resource{1, 2, 3});
}

} // namespace

TEST_SUITE("messages/coordinator_message") {
  TEST_CASE("a call keeps its number, its function and arguments of every kind") {
    auto received
      = send_and_receive(make_run_closure(7, "step", one_of_each(), std::array<uint32_t, 1>{2}));
    CHECK(received.reader().getInstances()[0] == 2);
    CHECK(received.reader().getClosure() == 7);
    CHECK(std::string{received.reader().getFunction()} == "step");
    check_one_of_each(read_arguments(received));
  }

  TEST_CASE("the results of a function arrive, or the error of its failure") {
    auto done = send_and_receive(make_closure_done(7, one_of_each()));
    CHECK(done.reader().getClosure() == 7);
    check_one_of_each(read_results(done).value());
    error reason{errc::out_of_range, "no batch is left", "next_batch"};
    auto failed = send_and_receive(make_closure_failed(8, reason));
    CHECK(failed.reader().getClosure() == 8);
    CHECK(read_results(failed).error() == reason);
    CHECK(read_results(failed).error().throw_site == "next_batch");
  }

  TEST_CASE("the messages without values keep their fields") {
    CHECK(send_and_receive(make_worker_ready(3)).reader().getWorker() == 3);
    CHECK(send_and_receive(make_cancel_closure(7)).reader().getClosure() == 7);
  }

  TEST_CASE("a failure of a longer line is cut") {
    error reason{errc::user_code, std::string(limits::text_bytes_max + 1, 'x')};
    auto received = send_and_receive(make_closure_failed(1, reason));
    CHECK(read_results(received).error().message.size() == limits::text_bytes_max);
  }

  TEST_CASE("an array whose bytes do not fit its shape is refused, in calls and in results") {
    auto fill = [](wire::ClosureValue::Builder value) {
      auto array = value.initTensor();
      array.initShape(1).set(0, 3);
      array.initParts(1).init(0, 4);
    };
    CHECK(refusal(decode_any(hostile_frame(
            [&](auto envelope) { fill(envelope.initRunClosure().initArguments(1)[0]); })))
          == errc::malformed);
    CHECK(refusal(decode_any(hostile_frame(
            [&](auto envelope) { fill(envelope.initClosureDone().initResults(1)[0]); })))
          == errc::malformed);
  }
}

} // namespace coordinator_message_test
