// SPDX-License-Identifier: Apache-2.0
// Goal: a process knows the messages that it was given, and two processes that know others are told
// which, and how to mend it. Method: trial.capnp, and lists that differ.
#include "actors/net/network_messages.hpp"
#include "tests/actors/net/known_trials.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/refusal.hpp"

#include <fmt/format.h>

namespace network_messages_test {

using namespace troupe;
using namespace troupe::test;

namespace {

std::string difference(const std::vector<known_message>& own,
                       const std::vector<known_message>& other) {
  auto compared = compare_known("worker:0", own, "worker:1", other);
  if (!compared) CHECK(compared.error().code == errc::failed_precondition);
  return compared ? "" : compared.error().message;
}

} // namespace

TEST_SUITE("actors/net/network_messages") {
  TEST_CASE("a message is found by its type and by the id of its struct") {
    auto known = trial_messages();
    const auto* form = known.find(typeid(msg<trial::Count>));
    REQUIRE(form != nullptr);
    CHECK(form->schema.name == "trial.Count");
    CHECK(known.find(capnp::typeId<trial::Count>()) == form);
    CHECK(known.find(typeid(msg<trial::Remark>)) == nullptr);
    CHECK(known.find(uint64_t{7}) == nullptr);
    CHECK(known.list().size() == 2);
  }

  TEST_CASE("what a network was given does not change any more") {
    network_messages known;
    std::shared_ptr<const network_messages> given = known;
    known.add<trial::Count>("trial.Count");
    CHECK(given->list().empty());
  }

  TEST_CASE("a message may be added again, but two have two names") {
    auto known = trial_messages();
    known.add<trial::Count>("trial.Count");
    CHECK(known.list().size() == 2);
    auto refused = refusal_of([&] { known.add<trial::Remark>("trial.Count"); });
    CHECK(refused.code == errc::invalid_argument);
    CHECK(refused.message == "two messages have the name trial.Count: give each its own");
    CHECK(refusal_of([&] { known.add<trial::Envoy>("trial.Envoy"); }).code == errc::unimplemented);
    CHECK(refusal_of([&] { known.add<trial::Remark>(""); }).code == errc::invalid_argument);
  }

  TEST_CASE("two processes differ in a message or its version") {
    auto all = trial_messages().list();
    CHECK(difference(all, all).empty());
    CHECK(difference({}, {}).empty());
    std::vector<known_message> one{all[0]};
    auto lacking = fmt::format("does not know the message {}", all[1].name);
    CHECK(difference(all, one)
          == "worker:1 " + lacking
               + ", which worker:0 knows; add it to the network_messages of every process");
    CHECK(difference(one, all)
          == "worker:0 " + lacking
               + ", which worker:1 knows; add it to the network_messages of every process");
    auto renewed = all;
    ++renewed[1].version;
    CHECK(difference(all, renewed)
          == fmt::format("worker:1 and worker:0 have two versions of the message {}; build both "
                         "from the same schema",
                         all[1].name));
  }

  TEST_CASE("what a node knows is told in one frame, however much it is") {
    std::vector<known_message> many;
    for (uint64_t i = 0; i < limits::own_messages_max; ++i)
      many.push_back({i, ~i, std::string(limits::own_name_bytes_max, 'x')});
    auto bytes = std::make_shared<std::vector<std::byte>>(flatten(make_known_messages(many)));
    auto read = read_known_messages({*bytes, bytes});
    REQUIRE(read);
    CHECK(*read == many);
    many.push_back({});
    bytes = std::make_shared<std::vector<std::byte>>(flatten(make_known_messages(many)));
    auto refused = read_known_messages({*bytes, bytes});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::limit_exceeded);
  }
}

} // namespace network_messages_test
