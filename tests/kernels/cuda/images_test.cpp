// SPDX-License-Identifier: Apache-2.0
// Goal: convolution and pooling on a GPU agree with the reference: bit for bit where the header
// says so. Method: the same calls over shapes and fills; a small network on both tapes.
#include "kernels/math/images/convolution.hpp"
#include "kernels/math/images/max_pool.hpp"
#include "kernels/tape/cuda_tape.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"
#include "tests/kernels/math/images/image_shapes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

tensor normal_tensor(shape extents, uint64_t seed) {
  tensor result{dtype::f32, std::move(extents)};
  auto drawn = normal<float>(result.element_count(), seed);
  std::ranges::copy(drawn.span(), result.mutable_values<float>().begin());
  return result;
}

template <class Context>
std::vector<gradient> gradients_of_network(basic_tape<Context>& t, const tensor& images,
                                           const tensor& first, const tensor& second) {
  auto a = t.parameter(first), b = t.parameter(second);
  auto hidden
    = t.max_pool2d(t.relu(t.conv2d(t.constant(images), a, {.padding = 1})), 2, {.stride = 2});
  auto logits = t.reshape(t.conv2d(hidden, b), {3, 5});
  const int64_t classes[] = {1, 4, 0};
  tensor labels{dtype::i64, {3}};
  std::ranges::copy(classes, labels.mutable_values<int64_t>().begin());
  auto result = t.gradients(t.softmax_cross_entropy(logits, labels), {a, b});
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  return *result;
}

} // namespace

TEST_SUITE("kernels/cuda/images") {
  TEST_CASE_TEMPLATE("a convolution and its gradients agree with the reference", T, float, double) {
    for (const auto& windows : image_shapes)
      for (size_t outputs : {1, 7}) {
        const convolution_extents extents{windows, outputs};
        CAPTURE(windows.height);
        CAPTURE(outputs);
        auto input = normal<T>(extents.input_elements(), 1);
        auto weights = normal<T>(extents.weight_elements(), 2);
        guarded<T> output{extents.output_elements()};
        device_array<T> far_input{input}, far_weights{weights}, far_output{output, 1};
        reference::convolve<T>(plain, extents, input.view(), weights.view(), output.span());
        cuda::convolve<T>(gpu(), extents, far_input.view(), far_weights.view(), far_output.span());
        CHECK(holds_bits(far_output, output));
        guarded<T> by_input{input.span().size()}, by_weights{weights.span().size()};
        device_array<T> far_by_input{by_input}, far_by_weights{by_weights};
        reference::convolve_input_gradient<T>(plain, extents, weights.view(), output.view(),
                                              by_input.span());
        cuda::convolve_input_gradient<T>(gpu(), extents, far_weights.view(), far_output.view(),
                                         far_by_input.span());
        CHECK(holds_bits(far_by_input, by_input));
        reference::convolve_weights_gradient<T>(plain, extents, input.view(), output.view(),
                                                by_weights.span());
        cuda::convolve_weights_gradient<T>(gpu(), extents, far_input.view(), far_output.view(),
                                           far_by_weights.span());
        // A sum of products of numbers below 6 and 200, each rounded once when it is added.
        const bound allowed{0, roundings<T>(1200 * static_cast<double>(extents.windows() + 1))};
        auto got = far_by_weights.fetch();
        CHECK(first_not_close(got.span(), by_weights.span(), allowed) == got.span().size());
      }
  }

  TEST_CASE_TEMPLATE("pooling and its gradient have the reference's bits", T, float, double) {
    for (const auto& windows : image_shapes)
      for (bool with_extremes : {false, true}) {
        CAPTURE(windows.height);
        const auto size = windows.pixels() * windows.channels;
        const auto outputs = windows.windows() * windows.channels;
        auto input = with_extremes ? extreme<T>(size, 1) : normal<T>(size, 1);
        auto arriving = normal<T>(outputs, 2);
        guarded<T> output{outputs}, gradient{size};
        device_array<T> far_input{input, 1}, far_arriving{arriving};
        device_array<T> far_output{output}, far_gradient{gradient};
        reference::max_pool<T>(plain, windows, input.view(), output.span());
        cuda::max_pool<T>(gpu(), windows, far_input.view(), far_output.span());
        CHECK(holds_bits(far_output, output));
        reference::max_pool_gradient<T>(plain, windows, input.view(), arriving.view(),
                                        gradient.span());
        cuda::max_pool_gradient<T>(gpu(), windows, far_input.view(), far_arriving.view(),
                                   far_gradient.span());
        CHECK(holds_bits(far_gradient, gradient));
      }
  }

  TEST_CASE("a convolutional network on a GPU has the gradients of the reference") {
    auto images = normal_tensor({3, 6, 6, 2}, 1), first = normal_tensor({3, 3, 2, 4}, 2);
    auto second = normal_tensor({3, 3, 4, 5}, 3);
    basic_tape<reference::context> here;
    auto wanted = gradients_of_network(here, images, first, second);
    std::vector<tensor> there;
    for (const auto& value : {images, first, second})
      there.push_back(cuda::to_device(gpu(), value).value());
    cuda_tape far{{}, gpu()};
    auto got = gradients_of_network(far, there[0], there[1], there[2]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto fetched = cuda::to_host(gpu(), std::get<tensor>(got[i])).value();
      auto expected = std::get<tensor>(wanted[i]).values<float>();
      CHECK(first_not_close(fetched.values<float>(), expected, {1e-5, 1e-5}) == expected.size());
    }
  }
}
