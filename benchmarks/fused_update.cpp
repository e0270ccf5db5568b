// SPDX-License-Identifier: Apache-2.0
// How near the fused update comes to the bandwidth of memory, beside an update that adds up
// gradients as they come.
//
// All are measured in one run, in turns, and compared turn by turn: a busy machine slows both sides
// of a ratio. "Moved" counts the bytes that an update must move: (k + reads + writes) x bytes.
#include "benchmarks/stopwatch.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/tensor/parallel.hpp"
#include "kernels/updates/update.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>
#if defined(__SSE2__)
#  include <emmintrin.h>
#endif

using namespace troupe;

namespace {

constexpr size_t parameter_count = 25'000'000; // 100 MB of f32
constexpr size_t parameter_bytes = parameter_count * sizeof(float);
constexpr double megabyte = 1e6;
constexpr double gigabyte = 1e9;
const cpu::context on;

double seconds(const std::function<void()>& work) {
  auto begin = clock_type::now();
  work();
  return seconds_since(begin);
}

/// STREAM's triad, a = b + s * c, with stores that go through the caches.
void triad(std::span<float> a, std::span<const float> b, std::span<const float> c) {
  cpu::parallel_chunks(on, a.size(), [&](size_t begin, size_t end) {
    cpu::vectorised([=] {
      TROUPE_INDEPENDENT
      for (size_t i = begin; i < end; ++i)
        a[i] = b[i] + 3.0F * c[i];
    });
  });
}

/// The triad with stores past the caches, for which memory is not read before it is overwritten.
void streaming_triad(std::span<float> a, std::span<const float> b, std::span<const float> c) {
#if defined(__SSE2__)
  cpu::parallel_chunks(on, a.size(), [&](size_t begin, size_t end) {
    const auto factor = _mm_set1_ps(3.0F);
    for (size_t i = begin; i + 4 <= end; i += 4) {
      auto product = _mm_mul_ps(factor, _mm_load_ps(&c[i]));
      _mm_stream_ps(&a[i], _mm_add_ps(_mm_load_ps(&b[i]), product));
    }
    _mm_sfence();
  });
#else
  triad(a, b, c);
#endif
}

tensor filled(size_t count, float value) {
  tensor result{dtype::f32, shape{static_cast<int64_t>(count)}};
  cpu::fill<float>(on, result.mutable_values<float>(), value);
  return result;
}

/// The arrays that the owner of a variable holds during a step: k gradients, the variable that
/// replicas still read, its next version, and the slots.
struct job {
  update_rule rule;
  std::vector<tensor> gradients;
  tensor before = filled(parameter_count, 0.5F);
  tensor after = filled(parameter_count, 0.5F);
  std::vector<tensor> slots;
  std::vector<elements> sources;
  std::vector<replaced<float>> slots_in_place;

  job(const update_rule& of, size_t k) : rule(of) {
    for (size_t i = 0; i < k; ++i)
      gradients.push_back(filled(parameter_count, 0.25F));
    for (size_t i = 0; i < slot_count(rule); ++i)
      slots.push_back(filled(parameter_count, 0.125F));
    for (const auto& gradient : gradients)
      sources.emplace_back(gradient);
    for (auto& slot : slots)
      slots_in_place.push_back(in_place(slot.mutable_values<float>()));
  }

  /// Bytes that an update must move.
  [[nodiscard]] size_t bytes_moved() const {
    return (gradients.size() + 2 + 2 * slots.size()) * parameter_bytes;
  }

  /// Bytes of everything above.
  [[nodiscard]] size_t bytes_held() const {
    return (gradients.size() + 2 + slots.size()) * parameter_bytes;
  }

  void update(std::span<const elements> from, double divisor, const replaced<float>& variable) {
    cpu::update<float>(on, rule, {from, divisor, 1}, variable, slots_in_place);
  }

  void update_in_place() { update(sources, divisor(), in_place(before.mutable_values<float>())); }

  void update_beside() {
    update(sources, divisor(), {before.values<float>(), after.mutable_values<float>()});
  }

  /// The step to compare with: adds gradients up as they come, and applies the sum at the end.
  void accumulate_then_apply(tensor& sum) {
    auto total = sum.mutable_values<float>();
    cpu::copy<float>(on, gradients[0].values<float>(), total);
    for (size_t i = 1; i < sources.size(); ++i)
      cpu::accumulate<float>(on, sources[i], total);
    const elements mean_source[] = {std::span<const float>{total}};
    update(mean_source, divisor(), {before.values<float>(), after.mutable_values<float>()});
  }

  [[nodiscard]] double divisor() const { return static_cast<double>(sources.size()); }
};

/// The seconds of every turn.
struct timings {
  std::vector<double> triad, streaming_triad, in_place, beside, unfused;
};

timings measure(job& subject, size_t turns) {
  auto third = subject.bytes_held() / sizeof(float) / 3;
  auto a = filled(third, 1), b = filled(third, 2), c = filled(third, 3);
  auto sum = filled(parameter_count, 0);
  auto a_values = a.mutable_values<float>();
  timings result;
  for (size_t turn = 0; turn <= turns; ++turn) {
    if (turn == 1) result = {}; // the first turn only warmed up
    result.triad.push_back(seconds([&] { triad(a_values, b.values<float>(), c.values<float>()); }));
    result.in_place.push_back(seconds([&] { subject.update_in_place(); }));
    result.beside.push_back(seconds([&] { subject.update_beside(); }));
    result.streaming_triad.push_back(
      seconds([&] { streaming_triad(a_values, b.values<float>(), c.values<float>()); }));
    result.unfused.push_back(seconds([&] { subject.accumulate_then_apply(sum); }));
  }
  return result;
}

/// One line of the table.
void report(const char* name, const job& subject, const timings& taken) {
  auto triad_bytes = static_cast<double>(subject.bytes_held());
  auto moved = static_cast<double>(subject.bytes_moved());
  std::vector<double> triad_speed, in_place_speed, beside_speed, in_place_ratio, beside_ratio, gain;
  for (size_t turn = 0; turn < taken.triad.size(); ++turn) {
    auto fastest_triad = std::min(taken.triad[turn], taken.streaming_triad[turn]);
    triad_speed.push_back(triad_bytes / fastest_triad);
    in_place_speed.push_back(moved / taken.in_place[turn]);
    beside_speed.push_back(moved / taken.beside[turn]);
    in_place_ratio.push_back(in_place_speed.back() / triad_speed.back());
    beside_ratio.push_back(beside_speed.back() / triad_speed.back());
    gain.push_back(taken.unfused[turn] / taken.beside[turn]);
  }
  std::printf("%-9s %2zu  %7.1f  %8.1f  %5.2f  %7.1f  %5.2f  %7.2fx\n", name,
              subject.gradients.size(), median(triad_speed) / gigabyte,
              median(in_place_speed) / gigabyte, median(in_place_ratio),
              median(beside_speed) / gigabyte, median(beside_ratio), median(gain));
}

/// Prints the memory that the largest job takes during an update. Runs first: triads take memory,
/// too.
void report_memory() {
  job largest{rules::adam{}, 8};
  largest.update_in_place();
  largest.update_beside();
  auto held = largest.bytes_held();
  auto pool_max = cpu_pool().bytes_in_use_max();
  std::printf("memory: the pool handed out %.0f MB at most for (k + slots + 2) x P = %.0f MB; "
              "limit with 200 MB to spare: %s\n\n",
              static_cast<double>(pool_max) / megabyte, static_cast<double>(held) / megabyte,
              pool_max <= held + 200'000'000 ? "kept" : "EXCEEDED");
}

} // namespace

int main(int argc, char** argv) {
  size_t turns = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 11;
  report_memory();
  std::printf(
    "fused update of 100 MB of f32, medians of %zu turns, GB/s; the triad is the faster of\n"
    "ordinary and streaming stores; ratio = update / triad, aim 0.85\n\n"
    "optimizer  k    triad  in place  ratio   beside  ratio  instead of accumulating\n",
    turns);
  for (size_t k : {2, 4, 8}) {
    for (const auto& [name, rule] :
         {std::pair<const char*, update_rule>{"momentum", rules::momentum{}},
          {"adam", rules::adam{}}}) {
      job subject{rule, k};
      report(name, subject, measure(subject, turns));
    }
  }
}
