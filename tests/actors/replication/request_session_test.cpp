// SPDX-License-Identifier: Apache-2.0
// Goal: a request that comes again is known as long as it may come, and memory is bounded. Method:
// requests of clients by number, and what is known of them afterwards; clients and a server whose
// messages are lost, doubled and late.
#include "actors/replication/request_session.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/checks/limits.hpp"
#include "tests/doctest.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace request_session_test {

using namespace troupe;

namespace {

/// A table of answers that say which requests they are of.
struct table : request_table<request_id> {
  using request_table::request_table;

  void serve(const request_id& id) { add(id, id); }
};

/// A request, or the answer to one.
struct message {
  request_id id;
  std::optional<uint64_t> answer;
};

/// A link that loses messages, doubles others, and delivers them in any order.
class bad_link {
public:
  explicit bad_link(uint64_t seed) : draw_(random_key{seed, "bad link", 0, 0}) {}

  void send(const message& what) {
    for (auto copies = draw_.uniform() < 0.3 ? 2 : 1; copies > 0; --copies)
      if (draw_.uniform() > 0.3) on_way_.push_back(what);
  }

  /// Nothing, if nothing comes now.
  std::optional<message> deliver() {
    if (on_way_.empty() || draw_.uniform() < 0.2) return std::nullopt;
    auto which = static_cast<size_t>(draw_.uniform() * static_cast<double>(on_way_.size()));
    std::swap(on_way_[which], on_way_.back());
    auto came = on_way_.back();
    on_way_.pop_back();
    return came;
  }

private:
  random_stream draw_;
  std::vector<message> on_way_;
};

/// Counts, and gives each request that it counts a number of its own.
struct counting_server {
  request_table<uint64_t> served;
  uint64_t count = 0;

  /// Nothing for a request that is over: its client has the answer.
  std::optional<uint64_t> serve(const request_id& id) {
    if (const auto* known = served.find(id)) return *known;
    if (served.is_over(id)) return std::nullopt;
    served.add(id, ++count);
    return count;
  }
};

/// Makes some requests at a time, and makes those again that have no answer.
struct persistent_client {
  request_numbers numbers;
  std::vector<request_id> asked{};
  std::vector<uint64_t> answers{};

  void ask(bad_link& link, uint64_t requests) {
    if (numbers.open.size() < 3 && numbers.count < requests) asked.push_back(numbers.begin());
    for (const auto& id : asked)
      link.send({id, std::nullopt});
  }

  void hear(const message& came) {
    if (numbers.open.erase(came.id.number) == 0) return;
    std::erase_if(asked, [&](const auto& id) { return id.number == came.id.number; });
    answers.push_back(*came.answer);
  }
};

} // namespace

TEST_SUITE("actors/replication/request_session") {
  TEST_CASE("a client's requests count up, and say which is the first without an answer") {
    request_numbers numbers{.client = 7};
    CHECK(numbers.begin() == request_id{7, 1, 1});
    CHECK(numbers.begin() == request_id{7, 2, 1});
    numbers.open.erase(1);
    CHECK(numbers.begin() == request_id{7, 3, 2});
  }

  TEST_CASE("over a link that loses, doubles and reorders, each request counts once") {
    constexpr uint64_t requests = 40;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      bad_link link{seed};
      counting_server server;
      std::array<persistent_client, 3> clients{{{{1}}, {{2}}, {{3}}}};
      auto is_done = [](const persistent_client& one) { return one.answers.size() == requests; };
      for (int turn = 0; turn < 100'000 && !std::ranges::all_of(clients, is_done); ++turn) {
        for (auto& one : clients)
          one.ask(link, requests);
        while (auto came = link.deliver())
          if (came->answer)
            clients[came->id.client - 1].hear(*came);
          else if (auto answer = server.serve(came->id))
            link.send({came->id, answer});
      }
      INFO("seed ", seed);
      CHECK(server.count == clients.size() * requests);
      std::vector<uint64_t> answers;
      for (const auto& one : clients)
        answers.insert(answers.end(), one.answers.begin(), one.answers.end());
      std::ranges::sort(answers);
      REQUIRE(answers.size() == server.count);
      for (uint64_t i = 0; i < answers.size(); ++i)
        CHECK(answers[i] == i + 1);
    }
  }

  TEST_CASE("a request is known until its client has the answer") {
    request_table<int> requests;
    CHECK(requests.find({1, 1, 1}) == nullptr);
    requests.add({1, 1, 1}, 5);
    REQUIRE(requests.find({1, 1, 1}) != nullptr);
    CHECK(*requests.find({1, 1, 1}) == 5);
    CHECK(requests.find({2, 1, 1}) == nullptr); // another's
    requests.add({1, 2, 1}, 6);
    CHECK(requests.find({1, 1, 1}) != nullptr);
    requests.add({1, 3, 2}, 7);
    CHECK(requests.find({1, 1, 1}) == nullptr);
    CHECK(requests.is_over({1, 1, 1}));
    CHECK(!requests.is_over({1, 2, 1}));
    CHECK(!requests.is_over({1, 4, 4}));
    CHECK(!requests.is_over({2, 1, 1}));
  }

  TEST_CASE("a request that waits for its answer is known, and gets one later") {
    request_table<std::optional<int>> requests;
    requests.add({1, 1, 1}, std::nullopt);
    REQUIRE(requests.find({1, 1, 1}) != nullptr);
    CHECK_FALSE(requests.find({1, 1, 1})->has_value());
    requests.add({1, 1, 1}, 5);
    CHECK(requests.find({1, 1, 1})->value() == 5);
  }

  TEST_CASE("an earlier request may come after a later one") {
    table requests;
    requests.serve({1, 2, 1});
    CHECK(requests.find({1, 1, 1}) == nullptr);
    CHECK(!requests.is_over({1, 1, 1}));
    requests.serve({1, 1, 1});
    CHECK(requests.find({1, 1, 1}) != nullptr);
    CHECK(requests.find({1, 2, 1}) != nullptr);
  }

  TEST_CASE("another server that is told all knows as much") {
    table requests;
    requests.serve({1, 7, 6});
    requests.serve({2, 3, 3});
    requests.serve({1, 6, 6});
    table other;
    other.serve({9, 1, 1});
    other.clear();
    for (const auto& id : requests.all())
      other.serve(id);
    CHECK(other.find({1, 7, 6}) != nullptr);
    CHECK(other.find({1, 6, 6}) != nullptr);
    CHECK(other.find({2, 3, 3}) != nullptr);
    CHECK(other.is_over({1, 5, 5}));
    CHECK(other.find({9, 1, 1}) == nullptr);
    CHECK(other.all().size() == 3);
    CHECK(other.all().front().client == 2);
  }

  TEST_CASE("a client that never has an answer is refused what was forgotten") {
    table requests;
    for (uint64_t number = 1; number <= limits::requests_of_client_max + 1; ++number)
      requests.serve({1, number, 1});
    CHECK(requests.all().size() == limits::requests_of_client_max);
    CHECK(requests.is_over({1, 1, 1}));
    CHECK(requests.find({1, 2, 1}) != nullptr);
  }

  TEST_CASE("the client that has not asked for longest is forgotten") {
    table requests{3};
    for (uint64_t client = 1; client <= 3; ++client)
      requests.serve({client, 1, 1});
    requests.serve({1, 2, 2});
    requests.serve({4, 1, 1});
    CHECK(requests.find({2, 1, 1}) == nullptr);
    CHECK(requests.find({1, 2, 2}) != nullptr);
    CHECK(requests.all().size() == 3);
  }

  TEST_CASE("a client that asks one thing after the other is remembered, among thousands") {
    constexpr uint64_t clients = 10'000;
    table requests;
    for (uint64_t number : {1, 2})
      for (uint64_t client = 1; client <= clients; ++client)
        requests.serve({client, number, number});
    CHECK(requests.find({1, 2, 2}) != nullptr);
    CHECK(requests.all().size() == clients);
  }

  TEST_CASE("nonsense forgets nothing of others") {
    table requests;
    requests.serve({1, 1, 1});
    requests.serve({2, 3, 1'000});
    CHECK(requests.find({2, 3, 1'000}) != nullptr);
    CHECK(requests.find({1, 1, 1}) != nullptr);
    CHECK(!requests.is_over({2, 4, 4}));
  }
}

} // namespace request_session_test
