// SPDX-License-Identifier: Apache-2.0
// A queue, and where in it each line stands.
#include "tools/launch/line_folder.hpp"

#include "messages/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// What a line takes beside its letters, so that empty lines cannot be without number.
constexpr size_t bytes_beside = 128;

std::string key_of(int descriptor, const std::string& line) {
  return static_cast<char>(descriptor) + line;
}

} // namespace

line_folder::line_folder(size_t tasks) : free_since_(tasks) {}

void line_folder::add(size_t task, int descriptor, std::string line, time_point now) {
  TROUPE_ASSERT(task < free_since_.size(), task);
  auto& numbers = numbers_[key_of(descriptor, line)];
  auto joined = std::ranges::lower_bound(numbers, free_since_[task]);
  if (joined != numbers.end()) {
    waiting_[*joined - first_number_].folded.tasks.push_back(task);
    free_since_[task] = *joined + 1;
    return;
  }
  auto number = first_number_ + waiting_.size();
  numbers.push_back(number);
  free_since_[task] = number + 1;
  waiting_bytes_ += line.size() + bytes_beside;
  waiting_.push_back({{descriptor, std::move(line), {task}}, now + wait_max});
}

std::vector<folded_line> line_folder::take(time_point now) {
  std::vector<folded_line> lines;
  auto is_ready = [&](const waiting_line& oldest) {
    return oldest.due <= now || oldest.folded.tasks.size() == free_since_.size()
           || waiting_bytes_ > waiting_bytes_max;
  };
  while (!waiting_.empty() && is_ready(waiting_.front()))
    lines.push_back(take_oldest());
  return lines;
}

std::vector<folded_line> line_folder::take_all() {
  std::vector<folded_line> lines;
  while (!waiting_.empty())
    lines.push_back(take_oldest());
  return lines;
}

std::optional<line_folder::time_point> line_folder::next() const {
  return waiting_.empty() ? std::nullopt : std::optional{waiting_.front().due};
}

folded_line line_folder::take_oldest() {
  auto oldest = std::move(waiting_.front().folded);
  waiting_.pop_front();
  auto numbers = numbers_.find(key_of(oldest.descriptor, oldest.line));
  numbers->second.pop_front();
  if (numbers->second.empty()) numbers_.erase(numbers);
  ++first_number_;
  waiting_bytes_ -= oldest.line.size() + bytes_beside;
  return oldest;
}

} // namespace troupe
