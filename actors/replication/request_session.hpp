// SPDX-License-Identifier: Apache-2.0
// Request sessions: a request that comes several times counts once.
#pragma once

#include "messages/checks/limits.hpp"
#include "messages/mapped.hpp"
#include "messages/payload.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

/// The client's side of a session: each request has a number, and names the oldest request without
/// an answer.
struct request_numbers {
  uint64_t client = 0;
  uint64_t count = 0;      ///< Requests so far.
  std::set<uint64_t> open; ///< The requests without an answer.

  /// Whether a new request leaves the first one without an answer within the server's memory. The
  /// server also remembers the answered ones between them.
  [[nodiscard]] bool has_room() const {
    return open.empty() || count - *open.begin() + 1 < limits::requests_of_client_max;
  }

  /// A new request, which is open from now on.
  [[nodiscard]] request_id begin() {
    open.insert(++count);
    return {client, count, *open.begin()};
  }
};

/// If a request, or its answer, is lost with a link or with an actor, its client asks again,
/// perhaps another actor that has taken over. The request may have been served already, and adding
/// twice is wrong. So the server remembers, for each client, the requests that may come again, and
/// their answers: gradients, requests for tokens and changes of variables.
///
/// Bounded by `limits::requests_of_client_max`, beyond which a client's earliest requests are over,
/// and by a number of answers in all, beyond which the client that has asked nothing new for
/// longest is unknown again. A client that makes one request after the other needs one answer: so
/// as many replicas are remembered as a job may have.
template <class Answer>
class request_table {
public:
  /// @param answers_max The most answers to remember, of all clients together.
  explicit request_table(size_t answers_max = limits::list_elements_max)
    : answers_max_(answers_max) {}

  /// The answer to a request that has come before; null if it has not, or is over.
  [[nodiscard]] const Answer* find(const request_id& id) const {
    auto known = clients_.find(id.client);
    if (known == clients_.end()) return nullptr;
    auto found = known->second.answers.find(id.number);
    return found == known->second.answers.end() ? nullptr : &found->second;
  }

  /// Whether the client has said that it has the answer already, or the answer is forgotten.
  [[nodiscard]] bool is_over(const request_id& id) const {
    auto known = clients_.find(id.client);
    return known != clients_.end() && id.number < known->second.oldest;
  }

  /// Remembers a request with its answer, in place of an earlier answer, and forgets the answers
  /// that the client has no more use for. A peer that sends nonsense loses only its own answers.
  void add(const request_id& id, Answer answer) {
    auto& known = clients_[id.client];
    known.last_request = ++count_;
    known.oldest = std::max(known.oldest, std::min(id.oldest, id.number));
    auto& answers = known.answers;
    answers_ -= answers.size();
    answers.insert_or_assign(id.number, std::move(answer));
    if (answers.size() > limits::requests_of_client_max)
      known.oldest = std::max(known.oldest, std::next(answers.begin())->first);
    answers.erase(answers.begin(), answers.lower_bound(known.oldest));
    answers_ += answers.size();
    while (answers_ > answers_max_)
      forget_longest_silent();
  }

  /// All answers that are remembered; those of the client that asked last come last.
  [[nodiscard]] std::vector<Answer> all() const {
    auto in_order = mapped(clients_, [](const auto& one) { return &one.second; });
    std::ranges::sort(in_order, {}, &client::last_request);
    std::vector<Answer> answers;
    for (const auto* known : in_order)
      for (const auto& [number, answer] : known->answers)
        answers.push_back(answer);
    return answers;
  }

  void clear() {
    clients_.clear();
    answers_ = 0;
    count_ = 0;
  }

private:
  struct client {
    uint64_t oldest = 0;       ///< Earlier requests are over.
    uint64_t last_request = 0; ///< Its place in the count of all requests.
    std::map<uint64_t, Answer> answers;
  };

  void forget_longest_silent() {
    auto last_request = [](const auto& item) { return item.second.last_request; };
    auto longest = std::ranges::min_element(clients_, {}, last_request);
    answers_ -= longest->second.answers.size();
    clients_.erase(longest);
  }

  size_t answers_max_;
  size_t answers_ = 0; ///< Answers remembered, of all clients.
  std::map<uint64_t, client> clients_;
  uint64_t count_ = 0; ///< Requests that were added.
};

} // namespace troupe
