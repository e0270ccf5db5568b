// SPDX-License-Identifier: Apache-2.0
// Keeps a queue of lines for each task, and counts the lines that stand in several queues.
#include "tools/launch/line_folder.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// Bytes that count for each line beside its letters, so that empty lines are limited, too.
constexpr size_t folded_line_overhead_bytes = 128;

std::string key_of(int descriptor, const std::string& line) {
  return static_cast<char>(descriptor) + line;
}

folded_line folded(const std::string& key, std::vector<size_t> tasks) {
  std::ranges::sort(tasks);
  return {key[0], key.substr(1), std::move(tasks)};
}

} // namespace

void line_folder::add(size_t task, int descriptor, std::string line, time_point now) {
  TROUPE_ASSERT(task < waiting_.size(), task);
  auto key = key_of(descriptor, line);
  ++counts_[key][task];
  waiting_bytes_ += key.size() + folded_line_overhead_bytes;
  waiting_[task].push_back({count_++, std::move(key), now + wait_max});
}

std::vector<folded_line> line_folder::take(time_point now) {
  folded_lines lines;
  auto is_ready = [&](const waiting_line& line) {
    return line.due <= now || counts_.at(line.key).size() == waiting_.size()
           || waiting_bytes_ > waiting_bytes_max;
  };
  for (auto task = oldest(); task && is_ready(waiting_[*task].front()); task = oldest())
    give_out(*task, lines);
  return lines;
}

std::vector<folded_line> line_folder::take_all() {
  folded_lines lines;
  for (auto task = oldest(); task; task = oldest())
    give_out(*task, lines);
  return lines;
}

std::optional<line_folder::time_point> line_folder::next() const {
  auto task = oldest();
  return task ? std::optional{waiting_[*task].front().due} : std::nullopt;
}

// The task with the oldest next line.
std::optional<size_t> line_folder::oldest() const {
  std::optional<size_t> found;
  for (size_t task = 0; task < waiting_.size(); ++task) {
    if (waiting_[task].empty()) continue;
    if (!found || waiting_[task].front().number < waiting_[*found].front().number) found = task;
  }
  return found;
}

bool line_folder::is_next(size_t task, const std::string& key) const {
  return !waiting_[task].empty() && waiting_[task].front().key == key;
}

std::string line_folder::take_next(size_t task) {
  auto key = std::move(waiting_[task].front().key);
  waiting_[task].pop_front();
  waiting_bytes_ -= key.size() + folded_line_overhead_bytes;
  auto counts = counts_.find(key);
  if (--counts->second.at(task) == 0) counts->second.erase(task);
  if (counts->second.empty()) counts_.erase(counts);
  return key;
}

// Gives out the next line of a task, for all tasks that have written it.
void line_folder::give_out(size_t task, folded_lines& lines) {
  auto writers = counts_.at(waiting_[task].front().key);
  writers.erase(task);
  std::vector tasks{task};
  auto key = take_next(task);
  for (const auto& [other, count] : writers) {
    while (!is_next(other, key))
      give_out_before(other, tasks, lines);
    take_next(other);
    tasks.push_back(other);
  }
  lines.push_back(folded(key, std::move(tasks)));
}

// Gives out the next line of a task, for all tasks with the same next line, but for those that are
// busy: they are part of a line that is still to be given out.
void line_folder::give_out_before(size_t task, const std::vector<size_t>& busy,
                                  folded_lines& lines) {
  auto writers = counts_.at(waiting_[task].front().key);
  writers.erase(task);
  std::vector tasks{task};
  auto key = take_next(task);
  for (const auto& [other, count] : writers) {
    if (!is_next(other, key) || std::ranges::count(busy, other) > 0) continue;
    take_next(other);
    tasks.push_back(other);
  }
  lines.push_back(folded(key, std::move(tasks)));
}

} // namespace troupe
