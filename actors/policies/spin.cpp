// SPDX-License-Identifier: Apache-2.0
// Finding the processors of a process, and the rules of looking for messages.
#include "actors/policies/spin.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

// Longer than a message takes to and fro on loopback, and no more than it costs to sleep and wake.
constexpr std::chrono::microseconds usual_bound{50};

// A look takes less, with the offer of the processor if no thread takes it; the time beyond this is
// another thread's.
constexpr auto look_max = 5us;

// After so long another thread is one that computes: threads that wait offer their processor
// earlier.
constexpr auto lost_min = 1ms;
constexpr spin_policy::duration pause_min = 16ms;
constexpr spin_policy::duration pause_max = 1s;

constexpr uint32_t fruitless_max = 6; // 63 waits

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// The quota of a control group of version 2, or of version 1.
std::optional<double> quota_of_group(const std::string& path) {
  if (auto quota = quota_of(text_of("/sys/fs/cgroup" + path + "/cpu.max"))) return quota;
  auto older = "/sys/fs/cgroup/cpu" + path + "/cpu.cfs_";
  return quota_of(text_of(older + "quota_us") + " " + text_of(older + "period_us"));
}

uint32_t usable_processors() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) == 0)
    return static_cast<uint32_t>(CPU_COUNT(&usable));
  return std::max(1U, std::thread::hardware_concurrency());
}

} // namespace

processor_facts processors_of_this_process() {
  processor_facts facts{.processors = usable_processors()};
  auto limit = [&](const std::string& group) {
    auto quota = quota_of_group(group);
    if (quota && (!facts.quota || *quota < *facts.quota)) facts.quota = quota;
  };
  std::ifstream groups{"/proc/self/cgroup"};
  for (std::string line; std::getline(groups, line);) { // "4:cpu,cpuacct:/user.slice/job"
    auto group = line.substr(std::min(line.find('/'), line.size()));
    for (; !group.empty(); group.resize(group.rfind('/')))
      limit(group);
  }
  limit("");
  return facts;
}

std::optional<double> quota_of(std::string_view cpu_max) {
  double quota = 0;
  double period = 0;
  const auto* end = cpu_max.data() + cpu_max.size();
  auto [behind, failed] = std::from_chars(cpu_max.data(), end, quota);
  if (failed != std::errc{}) return std::nullopt; // "max"
  while (behind != end && (*behind == ' ' || *behind == '\n'))
    ++behind;
  if (std::from_chars(behind, end, period).ec != std::errc{}) return std::nullopt;
  if (!(quota > 0) || !(period > 0)) return std::nullopt; // -1 in version 1
  return quota / period;
}

std::chrono::microseconds usual_spin(const processor_facts& facts) {
  auto is_enough
    = facts.processors > 1 && facts.quota.value_or(facts.processors) >= facts.processors;
  return is_enough ? usual_bound : 0us;
}

bool spin_policy::begins(time_point now) {
  if (bound_ <= 0us || now < is_alone_at_) return false;
  if (skipped_ > 0) {
    --skipped_;
    return false;
  }
  looked_ = now;
  spent_ = 0us;
  return true;
}

bool spin_policy::goes_on(time_point now) {
  auto took = now - std::exchange(looked_, now);
  if (took >= lost_min) {
    lose_processor(now);
    return false;
  }
  spent_ += std::min<duration>(took, look_max);
  if (spent_ < bound_) return true;
  fruitless_ = std::min(fruitless_ + 1, fruitless_max);
  skipped_ = (1U << fruitless_) - 1;
  return false;
}

// Another thread has kept the processor. The pause doubles if that happens as soon as the thread
// looks again.
void spin_policy::lose_processor(time_point now) {
  auto is_again = now < is_alone_at_ + 2 * pause_;
  pause_ = is_again ? std::clamp(2 * pause_, pause_min, pause_max) : pause_min;
  is_alone_at_ = now + pause_;
}

void spin_policy::has_slept(duration slept) {
  if (slept >= 2 * bound_) return; // half of it may be the way out of sleep
  fruitless_ = 0;
  skipped_ = 0;
}

} // namespace troupe
