// SPDX-License-Identifier: Apache-2.0
// Goal: the network is the one that its configuration names, its gradients lower its loss, and its
// errors are counted. Method: images of two kinds that a few steps of descent tell apart;
// variables that are set by hand.
#include "actors/world/compute_device.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"
#include "tests/tools/small_language.hpp"
#include "tools/images/image_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace image_model_test {

namespace {

using namespace troupe;

const image_model tiny{{.filters = {3, 4}, .dense = 5}, 6, 5, 2};

/// Bright at the top or at the bottom; every third image is of the second kind.
labelled_images two_kinds() {
  labelled_images result{6, 5, {}, {}};
  for (uint8_t i = 0; i < 30; ++i) {
    const bool is_second = i % 3 == 0;
    for (size_t row = 0; row < 6; ++row)
      for (size_t column = 0; column < 5; ++column)
        result.pixels.push_back((row < 3) == is_second ? static_cast<uint8_t>(100 + i) : 0);
    result.labels.push_back(is_second ? 1 : 0);
  }
  return result;
}

std::vector<tensor> zeros_of(const image_model& model) {
  return mapped(variables_of(model), [](const auto& variable) { return zeros(variable.extents); });
}

step_on_stream differentiated(const std::vector<tensor>& values, const image_batch& batch) {
  auto result = differentiate_on(host_stream(), tiny, values, batch);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  return *result;
}

std::string refusal(const image_model& model) {
  const auto refused = validate(model);
  REQUIRE_FALSE(refused);
  return refused.error().message;
}

} // namespace

TEST_SUITE("tools/images/image_model") {
  TEST_CASE("has the variables that its convolutions and layers need") {
    std::string text;
    for (const auto& variable : variables_of(tiny))
      text += variable.name + ' ' + to_string(variable.extents) + '\n';
    CHECK(text
          == "convolution_0/weights [3, 3, 1, 3]\nconvolution_0/bias [3]\n"
             "convolution_1/weights [3, 3, 3, 4]\nconvolution_1/bias [4]\n"
             "hidden/weights [4, 5]\nhidden/bias [5]\n"
             "output/weights [5, 2]\noutput/bias [2]\n");
    CHECK(tiny.describe()
          == "convolutional network, filters 3,4, dense 5, images 6 x 5, classes 2");
  }

  TEST_CASE("a batch is drawn by its key alone, and holds what the images hold") {
    const auto images = two_kinds();
    auto labels = [&](const random_key& key) {
      auto drawn = draw_images(images, 20, key).labels;
      auto values = drawn.values<int64_t>();
      return std::vector<int64_t>(values.begin(), values.end());
    };
    CHECK(labels({1, "batch"}) == labels({1, "batch"}));
    CHECK(labels({1, "batch"}) != labels({2, "batch"}));
    const auto two = images_at(images, 3, 5);
    CHECK(two.pixels.extents() == shape{2, 6, 5, 1});
    CHECK(two.pixels.values<float>()[0] == 103.0F / 255);
    CHECK(two.pixels.values<float>()[30] == 0);
    CHECK(two.labels.values<int64_t>()[0] == 1);
  }

  TEST_CASE("a network of zeros finds all classes equally likely, which is always wrong") {
    const auto images = two_kinds();
    const auto nothing = zeros_of(tiny);
    CHECK(nats_of(differentiated(nothing, images_at(images, 0, 30)).loss)
          == doctest::Approx(std::log(2)));
    CHECK(error_rate(tiny, nothing, images) == 1);
  }

  TEST_CASE("errors are the images of the other class, and a NaN is always wrong") {
    const auto images = two_kinds();
    auto values = zeros_of(tiny);
    values.back().mutable_values<float>()[0] = 1;
    CHECK(*error_rate(tiny, values, images) == doctest::Approx(1.0 / 3));
    values.back().mutable_values<float>()[0] = std::nanf("");
    CHECK(error_rate(tiny, values, images) == 1);
  }

  TEST_CASE("descent along the gradients tells the classes apart") {
    const auto images = two_kinds();
    auto values = test::variables_of(tiny, 1);
    const auto batch = images_at(images, 0, 30);
    const auto before = nats_of(differentiated(values, batch).loss);
    for (int step = 0; step < 200; ++step) {
      auto computed = differentiated(values, batch);
      for (size_t i = 0; i < values.size(); ++i) {
        auto by = std::get<tensor>(computed.gradients[i]).values<float>();
        auto to = values[i].mutable_values<float>();
        for (size_t k = 0; k < to.size(); ++k)
          to[k] -= 0.1F * by[k];
      }
    }
    CHECK(nats_of(differentiated(values, batch).loss) < before / 10);
    CHECK(error_rate(tiny, values, images) == 0);
  }

  TEST_CASE("refuses what is out of range, and images that are too small") {
    auto with = [](std::vector<int64_t> filters, int64_t dense) {
      return image_model{{std::move(filters), dense}, 6, 5, 2};
    };
    CHECK(validate(tiny));
    CHECK(refusal(with({}, 5)) == "image model: 0 convolutions, not 1 to 16");
    CHECK(refusal(with({3, 0}, 5)) == "image model: filters is 0, not within [1, 65536]");
    CHECK(refusal(with({3}, 65537)) == "image model: dense is 65537, not within [1, 65536]");
    CHECK(refusal(with({1, 1, 1}, 5))
          == "image model: images of 6 x 5 cannot be halved by 3 convolutions; list fewer of them");
  }

  TEST_CASE("refuses a variable that is too large, however large") {
    const auto most = image_model_extent_max;
    for (const auto& model :
         {image_model{{{most, most}, 5}, 28, 28, 2}, image_model{{{most}, most}, 28, 28, 2},
          image_model{{{1}, most}, int64_t{1} << 62, int64_t{1} << 62, 2}})
      CHECK(refusal(model).find("make a variable of more than 2147483647 elements")
            != std::string::npos);
    CHECK(refusal({{{most, most}, 64}, 28, 30, 10})
          == "image model: filters 65536,65536, dense 64 and images of 28 x 30 make a variable of "
             "more than 2147483647 elements; choose smaller ones");
    CHECK(validate({{{most}, 1}, 28, 28, 10}));
  }

  TEST_CASE("large images and many filters are evaluated in smaller batches, one image at least") {
    auto at_once = [](int64_t filters, int64_t side) {
      return images_at_once({{.filters = {1, filters}, .dense = 1}, side, side, 2});
    };
    CHECK(images_at_once(tiny) == 256);
    CHECK(at_once(64, 32) == 256);
    CHECK(at_once(64, 64) == 64);
    CHECK(at_once(65536, 1024) == 1);
  }

  TEST_CASE("refuses the variables of another model") {
    const auto images = two_kinds();
    auto values = test::variables_of(tiny, 1);
    values.pop_back();
    auto refused = differentiate_on(host_stream(), tiny, values, images_at(images, 0, 2));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "the image model has 8 variables, not 7");
    CHECK(error_rate(tiny, values, images).error().code == errc::invalid_argument);
  }
}

} // namespace image_model_test
