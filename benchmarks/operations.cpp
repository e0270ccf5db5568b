// SPDX-License-Identifier: Apache-2.0
// Each operation of the models of `troupe train` by our kernels and by oneDNN's, on one core.
//
// The two take turns in one run, each for long enough to be measured; the table has the medians of
// the turns. Both prepare before the turns whatever they make once for a shape. OPENBLAS_LIBRARY
// names a library with cblas_sgemm, which takes its turns with products then;
// OPENBLAS_NUM_THREADS=1 belongs to it.
#include "benchmarks/stopwatch.hpp"
#include "kernels/math/activations.hpp"
#include "kernels/math/images/convolution.hpp"
#include "kernels/math/images/max_pool.hpp"
#include "kernels/math/layer_norm.hpp"
#include "kernels/math/matmul.hpp"
#include "kernels/math/one_openmp_thread.hpp"
#include "kernels/math/rms_norm.hpp"
#include "kernels/math/softmax_cross_entropy.hpp"
#include "kernels/tensor/random.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

using namespace troupe;

namespace {

using dnnl::memory;
using numbers = std::vector<float>;
using work = std::function<void()>;

const dnnl::engine processor{dnnl::engine::kind::cpu, 0};
const cpu::context here;
constexpr auto training = dnnl::prop_kind::forward_training;
constexpr auto backward = dnnl::prop_kind::backward;
constexpr auto f32 = memory::data_type::f32;

size_t turns = 15;

numbers drawn(size_t count) {
  numbers values(count);
  random_stream stream{{1, "numbers", static_cast<uint32_t>(count)}};
  for (auto& value : values)
    value = static_cast<float>(stream.normal());
  return values;
}

memory::desc laid_out(const memory::dims& extents, memory::format_tag order) {
  return {extents, f32, order};
}

memory array(const memory::desc& layout, numbers& values) {
  return {layout, processor, values.data()};
}

/// A primitive of oneDNN with its arrays, on this thread alone.
work running(const dnnl::primitive& primitive, std::unordered_map<int, memory> arrays) {
  return [primitive, arrays = std::move(arrays), stream = dnnl::stream{processor}]() mutable {
    primitive.execute(stream, arrays);
  };
}

/// Mean microseconds of calls that take half a millisecond together.
double microseconds_of(const work& call) {
  size_t calls = 0;
  auto begin = clock_type::now();
  do {
    call();
    ++calls;
  } while (seconds_since(begin) < 5e-4);
  return seconds_since(begin) / static_cast<double>(calls) * 1e6;
}

/// One row of the table. @param third Another library, or nothing.
void compare(const std::string& name, const char* in_use, const work& ours, const work& onednn,
             const work& third = {}) {
  std::vector<double> our_times, onednn_times, third_times, ratios, third_ratios;
  for (size_t turn = 0; turn <= turns; ++turn) {
    auto own = microseconds_of(ours), peer = microseconds_of(onednn);
    auto other = third ? microseconds_of(third) : 0;
    if (turn == 0) continue; // warms up
    our_times.push_back(own);
    onednn_times.push_back(peer);
    ratios.push_back(peer / own);
    third_times.push_back(other);
    third_ratios.push_back(other / own);
  }
  std::printf("| %s | %s | %.1f us | %.1f us | %.2f |", name.c_str(), in_use, median(our_times),
              median(onednn_times), median(ratios));
  if (third) std::printf(" OpenBLAS: %.1f us, %.2f |", median(third_times), median(third_ratios));
  std::printf("\n");
  std::fflush(stdout);
}

// ---- products ----

using sgemm = void (*)(int order, int transposed_a, int transposed_b, int rows, int columns,
                       int inner, float alpha, const float* a, int a_step, const float* b,
                       int b_step, float beta, float* c, int c_step);

sgemm openblas() {
  const char* name = std::getenv("OPENBLAS_LIBRARY");
  if (name == nullptr) return nullptr;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  auto found = library == nullptr ? nullptr : dlsym(library, "cblas_sgemm");
  if (found == nullptr) {
    std::fprintf(stderr, "OPENBLAS_LIBRARY=%s has no cblas_sgemm: %s\n", name, dlerror());
    std::exit(2);
  }
  return reinterpret_cast<sgemm>(found);
}

void compare_products(const std::string& name, const matmul_form& form) {
  auto extent = [](size_t value) { return static_cast<memory::dim>(value); };
  auto a = drawn(form.batch * form.rows * form.inner);
  auto b = drawn(form.batch * form.inner * form.columns);
  auto c = drawn(form.batch * form.rows * form.columns);
  auto ours = [&] { cpu::matmul<float>(here, form, a, b, c); };
  using tag = memory::format_tag;
  memory::desc left = laid_out({extent(form.batch), extent(form.rows), extent(form.inner)},
                               form.transpose_a ? tag::acb : tag::abc);
  memory::desc right = laid_out({extent(form.batch), extent(form.inner), extent(form.columns)},
                                form.transpose_b ? tag::acb : tag::abc);
  memory::desc result
    = laid_out({extent(form.batch), extent(form.rows), extent(form.columns)}, tag::abc);
  dnnl::matmul product{{{left, right, result}, processor}};
  auto onednn = running(product, {{DNNL_ARG_SRC, array(left, a)},
                                  {DNNL_ARG_WEIGHTS, array(right, b)},
                                  {DNNL_ARG_DST, array(result, c)}});
  static const auto multiply = openblas();
  work third;
  if (multiply != nullptr)
    third = [&] {
      constexpr int row_major = 101, plain = 111, transposed = 112;
      auto rows = static_cast<int>(form.rows), columns = static_cast<int>(form.columns);
      auto inner = static_cast<int>(form.inner);
      for (size_t i = 0; i < form.batch; ++i)
        multiply(row_major, form.transpose_a ? transposed : plain,
                 form.transpose_b ? transposed : plain, rows, columns, inner, 1,
                 a.data() + i * form.rows * form.inner, form.transpose_a ? rows : inner,
                 b.data() + i * form.inner * form.columns, form.transpose_b ? inner : columns, 0,
                 c.data() + i * form.rows * form.columns, columns);
    };
  compare(name, cpu::matmul_library() == "oneDNN" ? "oneDNN's sgemm" : "Eigen", ours, onednn,
          third);
}

void compare_all_products() {
  compare_products("perceptron, hidden: 64 x 160 by 160 x 512",
                   {.rows = 64, .columns = 512, .inner = 160});
  compare_products("perceptron, output: 64 x 512 by 512 x 256",
                   {.rows = 64, .columns = 256, .inner = 512});
  compare_products("its gradient by weights: 512 x 64 by 64 x 256",
                   {.rows = 512, .columns = 256, .inner = 64, .transpose_a = true});
  compare_products("its gradient by inputs: 64 x 256 by 256 x 512",
                   {.rows = 64, .columns = 512, .inner = 256, .transpose_b = true});
  compare_products("transformer, packed: 1024 x 128 by 128 x 384",
                   {.rows = 1024, .columns = 384, .inner = 128});
  compare_products("transformer, hidden: 1024 x 128 by 128 x 512",
                   {.rows = 1024, .columns = 512, .inner = 128});
  compare_products("its gradient by weights: 128 x 1024 by 1024 x 512",
                   {.rows = 128, .columns = 512, .inner = 1024, .transpose_a = true});
  compare_products("large: 1024 x 1024 by 1024 x 1024",
                   {.rows = 1024, .columns = 1024, .inner = 1024});
  compare_products("scores of heads: 64 of 64 x 32 by 32 x 64",
                   {.rows = 64, .columns = 64, .inner = 32, .transpose_b = true, .batch = 64});
  compare_products("values of heads: 64 of 64 x 64 by 64 x 32",
                   {.rows = 64, .columns = 32, .inner = 64, .batch = 64});
}

// ---- rows ----

void compare_softmax(size_t rows, size_t classes) {
  auto logits = drawn(rows * classes);
  numbers losses(rows), probabilities(rows * classes);
  const std::vector<int64_t> labels(rows, 3);
  auto ours
    = [&] { cpu::softmax_cross_entropy<float>(here, logits, labels, losses, probabilities); };
  auto layout = laid_out({static_cast<memory::dim>(rows), static_cast<memory::dim>(classes)},
                         memory::format_tag::ab);
  dnnl::softmax_forward softmax{{{training, layout, 1}, processor}};
  auto onednn = running(
    softmax, {{DNNL_ARG_SRC, array(layout, logits)}, {DNNL_ARG_DST, array(layout, probabilities)}});
  compare("softmax of " + std::to_string(rows) + " x " + std::to_string(classes), "ours", ours,
          onednn);
}

void compare_layer_norm(size_t rows, size_t columns) {
  auto input = drawn(rows * columns), gain = drawn(columns), bias = drawn(columns);
  auto arriving = drawn(rows * columns);
  numbers output(rows * columns), means(rows), deviations(rows), leaving(rows * columns);
  numbers by_gain(columns), by_bias(columns);
  auto name = std::to_string(rows) + " x " + std::to_string(columns);
  auto layout = laid_out({static_cast<memory::dim>(rows), static_cast<memory::dim>(columns)},
                         memory::format_tag::ab);
  auto each_row = laid_out({static_cast<memory::dim>(rows)}, memory::format_tag::a);
  auto each_column = laid_out({static_cast<memory::dim>(columns)}, memory::format_tag::a);
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc chosen{
    {training, layout, each_row, 1e-5F, flags}, processor};
  auto onednn = running(dnnl::layer_normalization_forward{chosen},
                        {{DNNL_ARG_SRC, array(layout, input)},
                         {DNNL_ARG_MEAN, array(each_row, means)},
                         {DNNL_ARG_VARIANCE, array(each_row, deviations)},
                         {DNNL_ARG_SCALE, array(each_column, gain)},
                         {DNNL_ARG_SHIFT, array(each_column, bias)},
                         {DNNL_ARG_DST, array(layout, output)}});
  auto ours = [&] {
    cpu::layer_norm<float>(here, 1e-5F, input, {gain, bias}, output, {means, deviations});
  };
  compare("layer normalisation of " + name, "ours", ours, onednn);

  const dnnl::layer_normalization_backward::primitive_desc back{
    {backward, layout, layout, each_row, 1e-5F, flags}, processor, chosen};
  auto onednn_back = running(dnnl::layer_normalization_backward{back},
                             {{DNNL_ARG_SRC, array(layout, input)},
                              {DNNL_ARG_MEAN, array(each_row, means)},
                              {DNNL_ARG_VARIANCE, array(each_row, deviations)},
                              {DNNL_ARG_SCALE, array(each_column, gain)},
                              {DNNL_ARG_SHIFT, array(each_column, bias)},
                              {DNNL_ARG_DIFF_DST, array(layout, arriving)},
                              {DNNL_ARG_DIFF_SRC, array(layout, leaving)},
                              {DNNL_ARG_DIFF_SCALE, array(each_column, by_gain)},
                              {DNNL_ARG_DIFF_SHIFT, array(each_column, by_bias)}});
  auto ours_back = [&] {
    cpu::layer_norm_gradient<float>(here, input, gain, {means, deviations}, arriving,
                                    {leaving, by_gain, by_bias});
  };
  compare("its gradient", "ours", ours_back, onednn_back);
}

/// oneDNN 2.6 has no such normalisation; the least that one can take is a copy of the input, and of
/// the two that the gradient reads.
void compare_rms_norm(size_t rows, size_t columns) {
  auto input = drawn(rows * columns), gain = drawn(columns), arriving = drawn(2 * rows * columns);
  numbers output(rows * columns), roots(rows), leaving(2 * rows * columns), by_gain(columns);
  auto copy_of = [](numbers& from, numbers& to) {
    auto all = laid_out({static_cast<memory::dim>(from.size())}, memory::format_tag::a);
    auto source = array(all, from), target = array(all, to);
    return running(dnnl::reorder{source, target}, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
  };
  auto ours = [&] { cpu::rms_norm<float>(here, 1e-5F, input, gain, output, roots); };
  compare("RMS normalisation of " + std::to_string(rows) + " x " + std::to_string(columns)
            + ", beside a copy",
          "ours", ours, copy_of(input, output));
  auto ours_back = [&] {
    cpu::rms_norm_gradient<float>(here, input, gain, roots,
                                  std::span{arriving}.first(rows * columns),
                                  std::span{leaving}.first(rows * columns), by_gain);
  };
  compare("its gradient, beside two copies", "ours", ours_back, copy_of(arriving, leaving));
}

// ---- element by element ----

void compare_activation(activation kind, dnnl::algorithm as, size_t count) {
  auto input = drawn(count), arriving = drawn(count);
  numbers output(count), leaving(count);
  auto name = std::string{to_string(kind)} + " of " + std::to_string(count) + " numbers";
  auto layout = laid_out({static_cast<memory::dim>(count)}, memory::format_tag::a);
  const dnnl::eltwise_forward::primitive_desc chosen{{training, as, layout}, processor};
  auto onednn = running(dnnl::eltwise_forward{chosen}, {{DNNL_ARG_SRC, array(layout, input)},
                                                        {DNNL_ARG_DST, array(layout, output)}});
  auto ours = [&] { cpu::activate<float>(here, kind, input, output); };
  compare(name, "ours", ours, onednn);

  const dnnl::eltwise_backward::primitive_desc back{{as, layout, layout}, processor, chosen};
  auto onednn_back
    = running(dnnl::eltwise_backward{back}, {{DNNL_ARG_SRC, array(layout, input)},
                                             {DNNL_ARG_DIFF_DST, array(layout, arriving)},
                                             {DNNL_ARG_DIFF_SRC, array(layout, leaving)}});
  auto ours_back
    = [&] { cpu::activate_gradient<float>(here, kind, input, output, arriving, leaving); };
  compare("its gradient", "ours", ours_back, onednn_back);
}

// ---- images ----

memory::desc images(const image_windows& form) {
  return laid_out({static_cast<memory::dim>(form.batch), static_cast<memory::dim>(form.channels),
                   static_cast<memory::dim>(form.height), static_cast<memory::dim>(form.width)},
                  memory::format_tag::nhwc);
}

memory::desc results(const image_windows& form, size_t channels) {
  return laid_out({static_cast<memory::dim>(form.batch), static_cast<memory::dim>(channels),
                   static_cast<memory::dim>(form.output_height()),
                   static_cast<memory::dim>(form.output_width())},
                  memory::format_tag::nhwc);
}

/// Convolutions are oneDNN's; our loops are the reference.
void compare_convolution(const std::string& name, const convolution_extents& form) {
  auto input = drawn(form.input_elements()), weights = drawn(form.weight_elements());
  numbers output(form.output_elements()), again(form.output_elements());
  compare(
    name, "oneDNN", [&] { reference::convolve<float>({}, form, input, weights, again); },
    [&] { cpu::convolve<float>(here, form, input, weights, output); });
}

void compare_pooling(const image_windows& form) {
  auto input = drawn(form.pixels() * form.channels);
  numbers output(form.windows() * form.channels);
  memory::dims steps{2, 2}, none{0, 0};
  const dnnl::pooling_forward::primitive_desc chosen{{training, dnnl::algorithm::pooling_max,
                                                      images(form), results(form, form.channels),
                                                      steps, steps, none, none},
                                                     processor};
  numbers places(form.windows() * form.channels); // large enough for oneDNN's notes
  memory notes{chosen.workspace_desc(), processor, places.data()};
  auto onednn = running(dnnl::pooling_forward{chosen},
                        {{DNNL_ARG_SRC, array(images(form), input)},
                         {DNNL_ARG_DST, array(results(form, form.channels), output)},
                         {DNNL_ARG_WORKSPACE, notes}});
  auto ours = [&] { cpu::max_pool<float>(here, form, input, output); };
  auto name = "pooling of 32 images of " + std::to_string(form.height) + " x "
              + std::to_string(form.width) + " x " + std::to_string(form.channels);
  compare(name, "ours", ours, onednn);

  auto arriving = drawn(output.size());
  numbers leaving(input.size());
  const dnnl::pooling_backward::primitive_desc back{{dnnl::algorithm::pooling_max, images(form),
                                                     results(form, form.channels), steps, steps,
                                                     none, none},
                                                    processor,
                                                    chosen};
  auto onednn_back = running(dnnl::pooling_backward{back},
                             {{DNNL_ARG_DIFF_DST, array(results(form, form.channels), arriving)},
                              {DNNL_ARG_DIFF_SRC, array(images(form), leaving)},
                              {DNNL_ARG_WORKSPACE, notes}});
  auto ours_back = [&] { cpu::max_pool_gradient<float>(here, form, input, arriving, leaving); };
  compare("its gradient", "ours", ours_back, onednn_back);
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1) turns = std::strtoul(argv[1], nullptr, 10);
  const cpu::detail::one_openmp_thread alone;
  const auto library = cpu::matmul_library(), instructions = cpu::matmul_instructions();
  std::printf(
    "Products by %.*s with %.*s\n\n| operation | in use | our kernel | oneDNN | oneDNN's time / "
    "ours |\n|---|---|---|---|---|\n",
    static_cast<int>(library.size()), library.data(), static_cast<int>(instructions.size()),
    instructions.data());
  compare_all_products();
  compare_softmax(64, 256);
  compare_softmax(1024, 256);
  compare_layer_norm(1024, 128);
  compare_rms_norm(1024, 128);
  compare_activation(activation::gelu, dnnl::algorithm::eltwise_gelu_tanh, 64 * 512);
  compare_activation(activation::gelu, dnnl::algorithm::eltwise_gelu_tanh, 1024 * 512);
  compare_activation(activation::tanh, dnnl::algorithm::eltwise_tanh, 64 * 512);
  compare_activation(activation::relu, dnnl::algorithm::eltwise_relu, 32 * 16 * 16 * 16);
  image_windows first{32, 16, 16, 1, 3, 3, 1, 1}, second{32, 8, 8, 16, 3, 3, 1, 1};
  compare_convolution("convolution of 32 images of 16 x 16 x 1 to 16 channels", {first, 16});
  compare_convolution("convolution of 32 images of 8 x 8 x 16 to 32 channels", {second, 32});
  compare_pooling({32, 16, 16, 16, 2, 2, 2, 0});
  compare_pooling({32, 8, 8, 32, 2, 2, 2, 0});
}
