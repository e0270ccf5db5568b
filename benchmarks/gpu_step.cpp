// SPDX-License-Identifier: Apache-2.0
// A step of the language model that `troupe train` trains, on a GPU and on one core: from variables
// that have changed, and a batch, to the loss and the gradients in the host's memory.
//
// gpu_step   needs nothing but a driver and cuBLAS
#include "actors/gpu/cuda_device.hpp"
#include "benchmarks/need.hpp"
#include "benchmarks/stopwatch.hpp"
#include "kernels/cuda/device.hpp"
#include "tools/language/language_model.hpp"

#include <cstdio>
#include <future>
#include <string>

using namespace troupe;

namespace {

constexpr int warm_ups = 3;
constexpr int repetitions = 20;

/// Median seconds of `work`, which waits for its end.
template <class Work>
double seconds_of(const Work& work) {
  std::vector<double> times;
  for (int turn = 0; turn < warm_ups + repetitions; ++turn) {
    auto begin = clock_type::now();
    work();
    if (turn >= warm_ups) times.push_back(seconds_since(begin));
  }
  return median(times);
}

/// Fresh copies of the variables, as an update leaves them: a device has to be given these anew.
std::vector<tensor> updated(const std::vector<initial_variable>& variables) {
  std::vector<tensor> result;
  for (const auto& variable : variables)
    result.push_back(variable.value.clone());
  return result;
}

void finish(compute_device& device) {
  std::promise<void> done;
  need(device.notify(0, [&] { done.set_value(); }));
  done.get_future().wait();
}

} // namespace

int main() {
  if (need(cuda::device_count()) == 0) {
    std::puts("skipped: no GPU here");
    return 77; // what Meson takes for skipped
  }
  const language_model_config model;
  const auto variables = initial_values(variables_of(model), 1);
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text.push_back(static_cast<char>((i * 7919) % 127));
  auto gpu = need(open_cuda_device(0, 1));
  std::printf("%s, and one core; a step of one replica\n", gpu->name().c_str());
  std::printf("%8s %10s %10s %10s\n", "batch", "ms", "CPU ms", "CPU/GPU");
  for (size_t batch : {64, 256, 1024, 4096}) {
    auto examples = draw_batch(model, text, batch, {1, "batch"});
    auto step_on = [&](compute_stream& on) {
      return need(differentiate_on(on, model, updated(variables), examples, {1, "dropout"}, {}));
    };
    auto there = seconds_of([&] {
      auto result = step_on(gpu->stream(0)); // stays until the device is done with it
      finish(*gpu);
    });
    auto here = seconds_of([&] { static_cast<void>(step_on(host_stream())); });
    std::printf("%8zu %10.3f %10.3f %10.2f\n", batch, there * 1e3, here * 1e3, here / there);
  }
}
