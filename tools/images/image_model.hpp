// SPDX-License-Identifier: Apache-2.0
// The convolutional network that `troupe train --learn images` trains.
#pragma once

#include "actors/gpu/step_on_stream.hpp"
#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"
#include "tools/images/image_set.hpp"
#include "tools/model/model_variable.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The extents that a user chooses. The network has convolutions with windows of 3 x 3 and a
/// padding of 1, each with a bias, relu, and pooling that halves the sides; a hidden layer (relu);
/// and a softmax over the classes.
/// Source: LeCun et al., "Gradient-based learning applied to document recognition", 1998.
struct image_model_config {
  std::vector<int64_t> filters = {16, 32}; ///< Output channels of each convolution.
  int64_t dense = 64;                      ///< Width of the hidden layer.

  bool operator==(const image_model_config&) const = default;
};

/// The largest extent in a configuration, and the most convolutions.
inline constexpr int64_t image_model_extent_max = 65536;
inline constexpr size_t image_model_layers_max = 16;

/// The network for images of some size.
struct image_model {
  image_model_config config;
  int64_t height = 0;
  int64_t width = 0;
  int64_t classes = 0;

  /// The extents in a few words: "convolutional network, filters 16,32, dense 64, ...".
  [[nodiscard]] std::string describe() const;
};

/// Whether all fields are within their ranges.
/// Errors: invalid_argument; the line names the field, the images that cannot be halved so often,
/// or the extents that make a variable of more than `image_elements_max` elements.
[[nodiscard]] expected<void> validate(const image_model& model);

/// The variables of a model: "convolution_0/weights", "convolution_0/bias", ..., then those of
/// "hidden" and "output". The functions below take values in this order. Weights are normal with a
/// deviation of sqrt(2 / inputs), those of the output layer of sqrt(1 / inputs); biases are 0.
/// @pre `validate(model)` has a value.
[[nodiscard]] std::vector<model_variable> variables_of(const image_model& model);

/// Images to classify, with their labels.
/// Shape: pixels  [examples, height, width, 1]  f32, from 0 to 1
///        labels  [examples]                    i64
struct image_batch {
  tensor pixels;
  tensor labels;
};

/// Draws images evenly, by the key alone. @pre There is an image.
[[nodiscard]] image_batch draw_images(const labelled_images& images, size_t examples,
                                      const random_key& key);

/// The images at [begin, end). @pre begin <= end <= images.size()
[[nodiscard]] image_batch images_at(const labelled_images& images, size_t begin, size_t end);

/// The loss of a batch and its gradients, on the device of a stream.
/// Errors: cancelled, once `settings.stop` was asked to; invalid_argument, if the variables are not
/// of this model; as the stream's; unimplemented, if this build has no GPU support and the stream
/// is a GPU's.
[[nodiscard]] expected<step_on_stream> differentiate_on(compute_stream& stream,
                                                        const image_model& model,
                                                        std::span<const tensor> variables,
                                                        const image_batch& batch,
                                                        const differentiation& settings = {});

/// The number of images that `error_rate` evaluates at once: 256, or fewer if images are large or
/// filters are many, so that memory is bounded. @pre `validate(model)` has a value.
[[nodiscard]] size_t images_at_once(const image_model& model);

/// The share of images for which another class is at least as likely as the label.
/// Errors: as `differentiate_on`. @pre There is an image, and `validate(model)` has a value.
[[nodiscard]] expected<double> error_rate(const image_model& model,
                                          std::span<const tensor> variables,
                                          const labelled_images& images);

} // namespace troupe
