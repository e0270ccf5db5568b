// SPDX-License-Identifier: Apache-2.0
// A step of the language model that `troupe train` trains, on a GPU and on one core: from variables
// that have changed, and a batch, to the loss and the gradients in the host's memory. Then matrix
// products in each precision, the casts of their operands included.
//
// gpu_step   needs nothing but a driver and cuBLAS
#include "actors/gpu/cuda_device.hpp"
#include "benchmarks/need.hpp"
#include "benchmarks/stopwatch.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/matmul.hpp"
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

/// One line for each size: how many times as long the product takes in full precision.
void compare_precisions(compute_device& gpu) {
  const auto& on = dynamic_cast<cuda_stream&>(gpu.stream(0)).context();
  std::printf("\n%8s %10s %10s %10s %10s\n", "product", "full ms", "full/tf32", "full/bf16",
              "full/f16");
  for (size_t side : {512, 2048, 8192}) {
    auto extent = static_cast<int64_t>(side);
    auto a = on.make(dtype::f32, {extent, extent}), c = on.make(dtype::f32, {extent, extent});
    cuda::fill<float>(on, a.mutable_values<float>(on.device()), 0.5F);
    auto seconds_in = [&](product_precision precision) {
      const matmul_form form{.rows = side, .columns = side, .inner = side, .precision = precision};
      return seconds_of([&] {
        cuda::matmul<float>(on, form, a.values<float>(on.device()), a.values<float>(on.device()),
                            c.mutable_values<float>(on.device()));
        need(on.synchronise());
      });
    };
    auto full = seconds_in(product_precision::full);
    std::printf("%7zu^3 %9.3f", side, full * 1e3);
    for (auto precision :
         {product_precision::tf32, product_precision::bf16, product_precision::f16})
      std::printf(" %10.2f", full / seconds_in(precision));
    std::puts("");
  }
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
  std::printf("%8s %10s %10s %10s %10s\n", "batch", "ms", "CPU ms", "CPU/GPU", "full/bf16");
  for (size_t batch : {64, 256, 1024, 4096}) {
    auto examples = draw_batch(model, text, batch, {1, "batch"});
    auto step_on = [&](compute_stream& on, product_precision precision) {
      return need(differentiate_on(on, model, updated(variables), examples, {1, "dropout"},
                                   {.precision = precision}));
    };
    auto seconds_there = [&](product_precision precision) {
      return seconds_of([&] {
        auto result = step_on(gpu->stream(0), precision); // stays until the device is done with it
        finish(*gpu);
      });
    };
    auto there = seconds_there(product_precision::full);
    auto here
      = seconds_of([&] { static_cast<void>(step_on(host_stream(), product_precision::full)); });
    std::printf("%8zu %10.3f %10.3f %10.2f %10.2f\n", batch, there * 1e3, here * 1e3, here / there,
                there / seconds_there(product_precision::bf16));
  }
  compare_precisions(*gpu);
}
