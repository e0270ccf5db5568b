// SPDX-License-Identifier: Apache-2.0
// Convolution through oneDNN in single precision, which is all it has, else as the reference.
#include "kernels/math/images/convolution.hpp"

#include "kernels/math/one_openmp_thread.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>

namespace troupe::cpu {

namespace {

using dnnl::memory;

const dnnl::engine& processor() {
  static const dnnl::engine only{dnnl::engine::kind::cpu, 0};
  return only;
}

memory::dim dim(size_t extent) {
  return static_cast<memory::dim>(extent);
}

/// The arrays of a convolution as oneDNN counts their extents, whatever the order in memory.
struct layouts {
  memory::desc input;
  memory::desc weights;
  memory::desc output;
  memory::dims strides;
  memory::dims padding;

  explicit layouts(const convolution_extents& extents)
    : input({dim(extents.batch), dim(extents.channels), dim(extents.height), dim(extents.width)},
            memory::data_type::f32, memory::format_tag::nhwc),
      weights({dim(extents.outputs), dim(extents.channels), dim(extents.window_height),
               dim(extents.window_width)},
              memory::data_type::f32, memory::format_tag::hwio),
      output({dim(extents.batch), dim(extents.outputs), dim(extents.output_height()),
              dim(extents.output_width())},
             memory::data_type::f32, memory::format_tag::nhwc),
      strides{dim(extents.stride), dim(extents.stride)}, padding{dim(extents.padding),
                                                                 dim(extents.padding)} {}

  /// Weights in whatever order is the fastest.
  [[nodiscard]] memory::desc fast_weights() const {
    return {weights.dims(), memory::data_type::f32, memory::format_tag::any};
  }

  [[nodiscard]] dnnl::convolution_forward::primitive_desc forward() const {
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, input,
             fast_weights(), output, strides, padding, padding},
            processor()};
  }
};

/// Wraps an array, even one that is only read: oneDNN has no type for const arrays.
memory array(const memory::desc& layout, std::span<const float> values) {
  return {layout, processor(), const_cast<float*>(values.data())};
}

void copy(dnnl::stream& on, memory& from, memory& to) {
  dnnl::reorder{from, to}.execute(on, from, to);
}

memory reordered(dnnl::stream& on, memory given, const memory::desc& layout) {
  if (given.get_desc() == layout) return given;
  memory result{layout, processor()};
  copy(on, given, result);
  return result;
}

/// Runs `work(stream)` on this thread alone.
template <class Work>
void with_onednn(Work work) {
  const detail::one_openmp_thread caller_alone;
  try {
    dnnl::stream stream{processor()};
    work(stream);
    stream.wait();
  } catch (const dnnl::error& failure) {
    TROUPE_ASSERT(failure.status == dnnl_out_of_memory, static_cast<int>(failure.status),
                  failure.message);
    throw std::bad_alloc{};
  }
}

void forward(const convolution_extents& extents, std::span<const float> input,
             std::span<const float> weights, std::span<float> output) {
  with_onednn([&](dnnl::stream& on) {
    const layouts arrays{extents};
    const auto chosen = arrays.forward();
    auto ordered_weights = reordered(on, array(arrays.weights, weights), chosen.weights_desc());
    dnnl::convolution_forward{chosen}.execute(on, {{DNNL_ARG_SRC, array(arrays.input, input)},
                                                   {DNNL_ARG_WEIGHTS, ordered_weights},
                                                   {DNNL_ARG_DST, array(arrays.output, output)}});
  });
}

void input_backward(const convolution_extents& extents, std::span<const float> weights,
                    std::span<const float> output_gradient, std::span<float> input_gradient) {
  with_onednn([&](dnnl::stream& on) {
    const layouts arrays{extents};
    const dnnl::convolution_backward_data::primitive_desc chosen{
      {dnnl::algorithm::convolution_direct, arrays.input, arrays.fast_weights(), arrays.output,
       arrays.strides, arrays.padding, arrays.padding},
      processor(),
      arrays.forward()};
    auto ordered_weights = reordered(on, array(arrays.weights, weights), chosen.weights_desc());
    dnnl::convolution_backward_data{chosen}.execute(
      on, {{DNNL_ARG_DIFF_DST, array(arrays.output, output_gradient)},
           {DNNL_ARG_WEIGHTS, ordered_weights},
           {DNNL_ARG_DIFF_SRC, array(arrays.input, input_gradient)}});
  });
}

void weights_backward(const convolution_extents& extents, std::span<const float> input,
                      std::span<const float> output_gradient, std::span<float> weights_gradient) {
  with_onednn([&](dnnl::stream& on) {
    const layouts arrays{extents};
    const dnnl::convolution_backward_weights::primitive_desc chosen{
      {dnnl::algorithm::convolution_direct, arrays.input, arrays.fast_weights(), arrays.output,
       arrays.strides, arrays.padding, arrays.padding},
      processor(),
      arrays.forward()};
    auto target = array(arrays.weights, weights_gradient);
    const auto& computed = chosen.diff_weights_desc();
    auto result = computed == arrays.weights ? target : memory{computed, processor()};
    dnnl::convolution_backward_weights{chosen}.execute(
      on, {{DNNL_ARG_SRC, array(arrays.input, input)},
           {DNNL_ARG_DIFF_DST, array(arrays.output, output_gradient)},
           {DNNL_ARG_DIFF_WEIGHTS, result}});
    if (computed != arrays.weights) copy(on, result, target);
  });
}

void forward(const convolution_extents& extents, std::span<const double> input,
             std::span<const double> weights, std::span<double> output) {
  reference::convolve({}, extents, input, weights, output);
}

void input_backward(const convolution_extents& extents, std::span<const double> weights,
                    std::span<const double> output_gradient, std::span<double> input_gradient) {
  reference::convolve_input_gradient({}, extents, weights, output_gradient, input_gradient);
}

void weights_backward(const convolution_extents& extents, std::span<const double> input,
                      std::span<const double> output_gradient, std::span<double> weights_gradient) {
  reference::convolve_weights_gradient({}, extents, input, output_gradient, weights_gradient);
}

} // namespace

template <class T>
void convolve(const context&, const convolution_extents& extents, std::span<const T> input,
              std::span<const T> weights, std::span<T> output) {
  troupe::detail::check_sizes(extents, input.size(), weights.size(), output.size());
  if (!output.empty()) forward(extents, input, weights, output);
}

template <class T>
void convolve_input_gradient(const context&, const convolution_extents& extents,
                             std::span<const T> weights, std::span<const T> output_gradient,
                             std::span<T> input_gradient) {
  troupe::detail::check_sizes(extents, input_gradient.size(), weights.size(),
                              output_gradient.size());
  if (!input_gradient.empty()) input_backward(extents, weights, output_gradient, input_gradient);
}

template <class T>
void convolve_weights_gradient(const context&, const convolution_extents& extents,
                               std::span<const T> input, std::span<const T> output_gradient,
                               std::span<T> weights_gradient) {
  troupe::detail::check_sizes(extents, input.size(), weights_gradient.size(),
                              output_gradient.size());
  if (input.empty())
    std::ranges::fill(weights_gradient, T{0});
  else
    weights_backward(extents, input, output_gradient, weights_gradient);
}

template void convolve(const context&, const convolution_extents&, std::span<const float>,
                       std::span<const float>, std::span<float>);
template void convolve(const context&, const convolution_extents&, std::span<const double>,
                       std::span<const double>, std::span<double>);
template void convolve_input_gradient(const context&, const convolution_extents&,
                                      std::span<const float>, std::span<const float>,
                                      std::span<float>);
template void convolve_input_gradient(const context&, const convolution_extents&,
                                      std::span<const double>, std::span<const double>,
                                      std::span<double>);
template void convolve_weights_gradient(const context&, const convolution_extents&,
                                        std::span<const float>, std::span<const float>,
                                        std::span<float>);
template void convolve_weights_gradient(const context&, const convolution_extents&,
                                        std::span<const double>, std::span<const double>,
                                        std::span<double>);

} // namespace troupe::cpu
