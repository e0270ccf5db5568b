// SPDX-License-Identifier: Apache-2.0
// Transfers that begin, end and are given up.
#include "simulation/network/card_transfers.hpp"

namespace troupe {

void card_transfers::begin(in_flight_message message, uint64_t bytes, double factor) {
  auto number = cards_.begin(message.from.node, message.to(), static_cast<double>(bytes),
                             1 / factor, events_.now());
  messages_.emplace(number, std::move(message));
  plan_look(events_.now());
}

// Not before everything that begins at the same moment has begun.
void card_transfers::plan_look(job_time time) {
  if (next_look_ && *next_look_ <= time) return;
  next_look_ = time;
  events_.at(time, [this] { look(); });
}

void card_transfers::look() {
  auto now = events_.now();
  if (next_look_ && *next_look_ <= now) next_look_.reset();
  for (auto number : cards_.finish(now))
    on_end_(take(number));
  if (auto next = cards_.next_end(now)) plan_look(*next);
}

std::vector<in_flight_message> card_transfers::give_up(node_index node) {
  std::vector<in_flight_message> messages;
  for (auto number : cards_.give_up(node, events_.now()))
    messages.push_back(take(number));
  plan_look(events_.now());
  return messages;
}

std::vector<in_flight_message> card_transfers::give_up_recalled(node_index from) {
  std::vector<in_flight_message> messages;
  for (auto number : cards_.sent_by(from)) {
    if (!is_recalled(messages_.at(number).parcel)) continue;
    cards_.give_up_one(number, events_.now());
    messages.push_back(take(number));
  }
  plan_look(events_.now());
  return messages;
}

in_flight_message card_transfers::take(uint64_t number) {
  return std::move(messages_.extract(number).mapped());
}

} // namespace troupe
