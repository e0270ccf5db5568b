// SPDX-License-Identifier: Apache-2.0
// Variables, batches, losses and gradients of the convolutional network.
#include "tools/images/image_model.hpp"

#include "kernels/math/images/image_windows.hpp"
#include "messages/errors/assert.hpp"
#include "messages/mapped.hpp"

#if TROUPE_CUDA
#  include "actors/gpu/cuda_device.hpp"
#  include "kernels/tape/cuda_tape.hpp"
#endif

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <initializer_list>
#include <utility>

namespace troupe {

namespace {

/// The most numbers behind one convolution that an evaluation holds at once, and the most images.
constexpr int64_t numbers_at_once = int64_t{1} << 24;
constexpr int64_t images_at_once_max = 256;

constexpr int64_t window = 3;

/// The height and width of an image after some convolutions, each of which halves them.
shape sides_after(const image_model& model, size_t convolutions) {
  return {model.height >> convolutions, model.width >> convolutions};
}

expected<void> check_width(std::string_view name, int64_t value) {
  if (value >= 1 && value <= image_model_extent_max) return {};
  return fail(errc::invalid_argument, fmt::format("image model: {} is {}, not within [1, {}]", name,
                                                  value, image_model_extent_max));
}

/// Whether a variable may be so large.
bool is_possible(std::initializer_list<int64_t> extents) {
  return !has_more_elements(extents, static_cast<int64_t>(image_elements_max));
}

expected<void> check_count(const image_model& model, std::span<const tensor> variables) {
  const auto count = 2 * model.config.filters.size() + 4;
  if (variables.size() == count) return {};
  return fail(errc::invalid_argument,
              fmt::format("the image model has {} variables, not {}", count, variables.size()));
}

/// The logits of a batch. @param variables As many as the model has.
template <class Context>
expression logits_of(basic_tape<Context>& t, const image_model& model,
                     std::span<const expression> variables, expression pixels, int64_t examples) {
  auto h = pixels;
  const auto convolutions = model.config.filters.size();
  for (size_t layer = 0; layer < convolutions; ++layer) {
    h = t.conv2d(h, variables[2 * layer], {.padding = window / 2});
    h = t.max_pool2d(t.relu(t.add_bias(h, variables[2 * layer + 1])), 2, {.stride = 2});
  }
  const auto rest = variables.subspan(2 * convolutions);
  const auto sides = sides_after(model, convolutions);
  h = t.reshape(h, {examples, sides.element_count() * model.config.filters.back()});
  h = t.relu(t.linear(h, rest[0], rest[1]));
  return t.linear(h, rest[2], rest[3]);
}

/// The batch of the images that `index_of` gives for 0, 1, ..., examples - 1.
template <class Function>
image_batch gather_images(const labelled_images& images, size_t examples, Function index_of) {
  const auto count = static_cast<int64_t>(examples);
  const auto size = images.height * images.width;
  image_batch result{
    {dtype::f32,
     {count, static_cast<int64_t>(images.height), static_cast<int64_t>(images.width), 1}},
    {dtype::i64, {count}}};
  auto pixels = result.pixels.mutable_values<float>();
  auto labels = result.labels.mutable_values<int64_t>();
  for (size_t i = 0; i < examples; ++i) {
    const size_t index = index_of(i);
    std::ranges::transform(images.image(index), pixels.subspan(i * size, size).begin(),
                           [](uint8_t pixel) { return static_cast<float>(pixel) / 255; });
    labels[i] = images.labels[index];
  }
  return result;
}

bool is_likeliest(std::span<const float> logits, size_t label) {
  for (size_t i = 0; i < logits.size(); ++i)
    if (i != label && !(logits[label] > logits[i])) return false; // a NaN is never likeliest
  return true;
}

} // namespace

std::string image_model::describe() const {
  return fmt::format("convolutional network, filters {}, dense {}, images {} x {}, classes {}",
                     fmt::join(config.filters, ","), config.dense, height, width, classes);
}

expected<void> validate(const image_model& model) {
  const auto& filters = model.config.filters;
  if (filters.empty() || filters.size() > image_model_layers_max)
    return fail(errc::invalid_argument, fmt::format("image model: {} convolutions, not 1 to {}",
                                                    filters.size(), image_model_layers_max));
  for (auto count : filters)
    if (auto ok = check_width("filters", count); !ok) return ok;
  if (auto ok = check_width("dense", model.config.dense); !ok) return ok;
  if (std::min(model.height, model.width) >> filters.size() < 1)
    return fail(errc::invalid_argument,
                fmt::format("image model: images of {} x {} cannot be halved by {} convolutions; "
                            "list fewer of them",
                            model.height, model.width, filters.size()));
  const auto sides = sides_after(model, filters.size());
  bool fits = is_possible({sides[0], sides[1], filters.back(), model.config.dense})
              && is_possible({model.config.dense, model.classes});
  int64_t channels = 1;
  for (auto count : filters)
    fits &= is_possible({window, window, std::exchange(channels, count), count});
  if (fits) return {};
  return fail(errc::invalid_argument,
              fmt::format("image model: filters {}, dense {} and images of {} x {} make a variable "
                          "of more than {} elements; choose smaller ones",
                          fmt::join(filters, ","), model.config.dense, model.height, model.width,
                          image_elements_max));
}

std::vector<model_variable> variables_of(const image_model& model) {
  TROUPE_ASSERT(validate(model).has_value());
  std::vector<model_variable> result;
  auto add = [&](const std::string& name, const shape& weights, double gain) {
    const auto& extents = weights.dims();
    const auto outputs = extents.back();
    const auto inputs = static_cast<double>(weights.element_count() / outputs);
    result.push_back({name + "/weights", weights, std::sqrt(gain / inputs), 0, name});
    result.push_back({name + "/bias", {outputs}});
  };
  const auto& filters = model.config.filters;
  int64_t channels = 1;
  for (size_t layer = 0; layer < filters.size(); ++layer) {
    add("convolution_" + std::to_string(layer), {window, window, channels, filters[layer]}, 2);
    channels = filters[layer];
  }
  const auto pixels = sides_after(model, filters.size()).element_count();
  add("hidden", {pixels * channels, model.config.dense}, 2);
  add("output", {model.config.dense, model.classes}, 1);
  return result;
}

image_batch draw_images(const labelled_images& images, size_t examples, const random_key& key) {
  TROUPE_ASSERT(images.size() > 0);
  random_stream stream{key};
  return gather_images(images, examples, [&](size_t) { return stream.below(images.size()); });
}

image_batch images_at(const labelled_images& images, size_t begin, size_t end) {
  TROUPE_ASSERT(begin <= end, begin, end);
  TROUPE_ASSERT(end <= images.size(), end, images.size());
  return gather_images(images, end - begin, [&](size_t i) { return begin + i; });
}

expected<step_on_stream> differentiate_on(compute_stream& stream, const image_model& model,
                                          std::span<const tensor> variables,
                                          const image_batch& batch,
                                          const differentiation& settings) {
  if (auto ok = check_count(model, variables); !ok) return tl::unexpected(ok.error());
  auto differentiate_in = [&](auto context) {
    auto loss = [&](auto& t, const auto& parameters) {
      auto logits
        = logits_of(t, model, parameters, t.constant(batch.pixels), batch.labels.extents()[0]);
      return t.softmax_cross_entropy(logits, batch.labels);
    };
    return differentiate_with(context, stream, variables, settings, loss);
  };
  if (stream.where().kind == device_kind::cpu) return differentiate_in(cpu::context{});
#if TROUPE_CUDA
  if (auto* gpu = dynamic_cast<cuda_stream*>(&stream)) return differentiate_in(gpu->context());
#endif
  return fail(errc::unimplemented, "this build has no GPU support for the image model");
}

size_t images_at_once(const image_model& model) {
  const auto widest = std::ranges::max(model.config.filters);
  const auto count = numbers_at_once / (model.height * model.width * widest);
  return static_cast<size_t>(std::clamp<int64_t>(count, 1, images_at_once_max));
}

expected<double> error_rate(const image_model& model, std::span<const tensor> variables,
                            const labelled_images& images) {
  TROUPE_ASSERT(images.size() > 0);
  if (auto ok = check_count(model, variables); !ok) return tl::unexpected(ok.error());
  const auto at_once = images_at_once(model);
  size_t wrong = 0;
  for (size_t begin = 0; begin < images.size(); begin += at_once) {
    const auto end = std::min(images.size(), begin + at_once);
    const auto batch = images_at(images, begin, end);
    tape t;
    auto constants = mapped(variables, [&](const auto& value) { return t.constant(value); });
    auto logits = t.value(
      logits_of(t, model, constants, t.constant(batch.pixels), static_cast<int64_t>(end - begin)));
    if (!logits) return tl::unexpected(logits.error());
    const auto classes = static_cast<size_t>(model.classes);
    for (size_t i = begin; i < end; ++i)
      if (!is_likeliest(logits->values<float>().subspan((i - begin) * classes, classes),
                        images.labels[i]))
        ++wrong;
  }
  return static_cast<double>(wrong) / static_cast<double>(images.size());
}

} // namespace troupe
