// SPDX-License-Identifier: Apache-2.0
// A step of the language model that `troupe train` trains, on a GPU and on one core: from variables
// that have changed, and a batch, to the loss and the gradients in the host's memory. Then matrix
// products in each precision, the casts of their operands included, and attention.
//
// gpu_step   needs nothing but a driver and cuBLAS
#include "actors/gpu/cuda_device.hpp"
#include "benchmarks/need.hpp"
#include "benchmarks/stopwatch.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/math/attention.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/matmul.hpp"
#include "messages/mapped.hpp"
#include "tools/language/language_model.hpp"

#include <cstdio>
#include <fmt/format.h>
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

/// Fresh copies of the variables, as an update leaves them: they are copied to a device again.
std::vector<tensor> updated(const std::vector<initial_variable>& variables) {
  return mapped(variables, [](const auto& variable) { return variable.value.clone(); });
}

void finish(compute_device& device) {
  std::promise<void> done;
  need(device.notify(0, [&] { done.set_value(); }));
  done.get_future().wait();
}

/// Prints how many times as long work takes in full precision. @param work Queues it.
template <class Work>
void compare_precisions(const cuda::context& on, const std::string& name, const Work& work) {
  auto seconds_in = [&](product_precision precision) {
    return seconds_of([&] {
      work(precision);
      need(on.synchronise());
    });
  };
  auto full = seconds_in(product_precision::full);
  std::printf("%-24s %9.3f", name.c_str(), full * 1e3);
  for (auto precision : {product_precision::tf32, product_precision::bf16, product_precision::f16})
    std::printf(" %10.2f", full / seconds_in(precision));
  std::puts("");
}

tensor filled(const cuda::context& on, const shape& extents) {
  auto result = on.make(dtype::f32, extents);
  cuda::fill<float>(on, result.mutable_values<float>(on.device()), 0.5F);
  return result;
}

void compare_products(const cuda::context& on) {
  for (size_t side : {512, 2048, 8192}) {
    auto extent = static_cast<int64_t>(side);
    auto a = filled(on, {extent, extent}), c = filled(on, {extent, extent});
    compare_precisions(on, fmt::format("product of {0} x {0}", side), [&](auto precision) {
      const matmul_form form{.rows = side, .columns = side, .inner = side, .precision = precision};
      cuda::matmul<float>(on, form, a.values<float>(on.device()), a.values<float>(on.device()),
                          c.mutable_values<float>(on.device()));
    });
  }
}

/// Compares attention over 4,096 positions with 12 heads of 64, forward and back.
void compare_attention(const cuda::context& on) {
  for (size_t context : {64, 256, 1024}) {
    attention_form form{.batch = 4096 / context, .context = context, .heads = 12, .head_width = 64};
    auto elements = static_cast<int64_t>(form.positions() * form.width());
    auto packed = filled(on, {3 * elements}), gradient = filled(on, {3 * elements});
    auto output = filled(on, {elements});
    auto sums = filled(on, {static_cast<int64_t>(form.positions() * form.heads)});
    auto there = [&](tensor& array) { return array.mutable_values<float>(on.device()); };
    compare_precisions(on, fmt::format("attention to {}", context), [&](auto precision) {
      form.precision = precision;
      cuda::causal_self_attention<float>(on, form, there(packed), there(output), there(sums));
      cuda::causal_self_attention_gradient<float>(
        on, form, there(packed), {there(output), there(sums)}, there(output), there(gradient));
    });
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
  const auto& on = dynamic_cast<cuda_stream&>(gpu->stream(0)).context();
  std::printf("\n%-24s %9s %10s %10s %10s\n", "", "full ms", "full/tf32", "full/bf16", "full/f16");
  compare_products(on);
  compare_attention(on);
}
