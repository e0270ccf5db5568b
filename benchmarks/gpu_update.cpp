// SPDX-License-Identifier: Apache-2.0
// The fused update on a GPU, against the rate at which it copies its own memory.
//
// gpu_update [BYTES]   of the variable, 2^30 if not given; needs 11 times that, and nothing but a
// driver
#include "benchmarks/need.hpp"
#include "benchmarks/stopwatch.hpp"
#include "kernels/cuda/context.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/updates/update.hpp"
#include "messages/mapped.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>

using namespace troupe;

namespace {

constexpr int warm_ups = 3;
constexpr int repetitions = 20;

/// Median seconds on the device of `work`, queued again and again.
template <class Work>
double seconds_of(const cuda::context& on, const Work& work) {
  auto begin = need(cuda::event::create(on.device().index, true));
  auto end = need(cuda::event::create(on.device().index, true));
  std::vector<double> times;
  for (int turn = 0; turn < warm_ups + repetitions; ++turn) {
    need(on.stream().record(begin));
    work();
    need(on.stream().record(end));
    need(on.synchronise());
    if (turn >= warm_ups) times.push_back(need(end.elapsed_since(begin)).count());
  }
  return median(times);
}

std::vector<tensor> random_tensors(const cuda::context& on, size_t tensors, int64_t elements) {
  tensor here{dtype::f32, {elements}};
  std::mt19937 engine{1};
  for (auto& value : here.mutable_values<float>())
    value = static_cast<float>(engine()) / static_cast<float>(std::mt19937::max());
  std::vector<tensor> result;
  for (size_t i = 0; i < tensors; ++i)
    result.push_back(need(cuda::to_device(on, here)));
  return result;
}

} // namespace

int main(int argument_count, char** arguments) {
  if (need(cuda::device_count()) == 0) {
    std::puts("skipped: no GPU here");
    return 77; // what Meson takes for skipped
  }
  auto bytes = argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1ULL << 30;
  auto count = static_cast<int64_t>(bytes / sizeof(float));
  auto on = need(cuda::context::create(0));
  auto name = need(cuda::device_name(0));
  std::printf("%s, %lld f32\n", name.c_str(), static_cast<long long>(count));

  auto arrays = random_tensors(on, 3, count); // the variable, m and v
  auto gradients = random_tensors(on, 8, count);
  auto copy_seconds = seconds_of(on, [&] {
    on.note(
      on.stream().copy(gradients[0].data(), gradients[1].mutable_data(), gradients[0].bytes()));
  });
  auto copy_rate = 2 * static_cast<double>(arrays[0].bytes()) / copy_seconds;
  std::printf("a copy on the device: %.3f ms, %.1f GB/s read and written; Adam with k gradients:\n",
              copy_seconds * 1e3, copy_rate / 1e9);
  std::printf("%8s %10s %10s %15s\n", "k", "ms", "GB/s", "of the copy's");

  auto at = mapped(arrays, [&](tensor& array) { return array.mutable_values<float>(on.device()); });
  const replaced<float> slots[] = {in_place(at[1]), in_place(at[2])};
  for (size_t k : {2, 4, 8}) {
    std::vector<elements> sources(gradients.begin(), gradients.begin() + static_cast<ptrdiff_t>(k));
    auto seconds = seconds_of(on, [&] {
      cuda::update<float>(on, rules::adam{.step = 10}, {sources, static_cast<double>(k)},
                          in_place(at[0]), slots);
    });
    auto moved = static_cast<double>((k + 6) * arrays[0].bytes()); // k gradients; 3 arrays twice
    std::printf("%8zu %10.3f %10.1f %15.2f\n", k, seconds * 1e3, moved / seconds / 1e9,
                moved / seconds / copy_rate);
  }
}
