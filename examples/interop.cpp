// SPDX-License-Identifier: Apache-2.0
// Beside other libraries, without a copy: examples come in and results go out through DLPack, and
// Eigen computes gradients in place.
#include "kernels/tensor/dlpack.hpp"
#include "kernels/tensor/eigen.hpp"
#include "strategies/jobs/training.hpp"

#include <array>
#include <cmath>
#include <cstdio>

using namespace troupe;

constexpr uint32_t replicas = 4;

// ---- DLPack: an array of another library ----

constexpr int64_t place_count = 64;

// Places in the plane, as a library in C would lend them, with a function that takes them back.
struct lent_places {
  std::array<float, 2 * place_count> elements{};
  std::array<int64_t, 2> extents{place_count, 2};
  DLManagedTensor lent{};
};

DLManagedTensor* lend_places() {
  auto* places = new lent_places;
  for (size_t i = 0; i < places->elements.size(); ++i)
    places->elements[i] = std::sin(static_cast<float>(i * i));
  places->lent.dl_tensor = {.data = places->elements.data(),
                            .device = {kDLCPU, 0},
                            .ndim = 2,
                            .dtype = {kDLFloat, 32, 1},
                            .shape = places->extents.data(),
                            .strides = nullptr,
                            .byte_offset = 0};
  places->lent.manager_ctx = places;
  places->lent.deleter = [](DLManagedTensor* lent) {
    std::printf("the places were given back\n");
    delete static_cast<lent_places*>(lent->manager_ctx);
  };
  return &places->lent;
}

// Reads a tensor of ours, as a library in C would.
float first_element_of(const DLManagedTensor& lent) {
  return static_cast<const float*>(lent.dl_tensor.data)[0];
}

// ---- the gradient of the mean of (place * slope - height)^2, by slope ----

struct batch {
  tensor places;  // [count, 2]
  tensor heights; // [count]
};

tensor gradient_by_eigen(const tensor& slope, const batch& rows) {
  auto places = matrix_of<float>(rows.places);
  auto error = (places * vector_of<float>(slope) - vector_of<float>(rows.heights)).eval();
  auto result = zeros(slope.extents());
  mutable_vector_of<float>(result) = places.transpose() * error * (2.0f / float(error.size()));
  return result;
}

bool train_by_eigen(const batch& all) {
  auto world = world::threads({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto slope = strategy.make_variable("slope", zeros({2}));
  sync_replicas_optimizer optimizer{rules::momentum{.learning_rate = 0.1},
                                    {.replicas_to_aggregate = replicas,
                                     .total_num_replicas = replicas,
                                     .policy = sync_policy::latest_token}};

  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(slope);
    auto value = co_await reading;
    // Every replica has a quarter of the rows, as views.
    auto rows = place_count / replicas;
    auto begin = rows * context.replica_id_in_sync_group();
    batch mine{all.places.slice(begin, begin + rows), all.heights.slice(begin, begin + rows)};
    auto computing
      = context.compute([=](std::stop_token) { return gradient_by_eigen(value, mine); });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, slope);
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = 200});

  auto trained = strategy.read(slope).clone();
  auto lent = value_or_throw(to_dlpack(trained));
  std::printf("height = %.3f east %+.3f north\n", first_element_of(*lent),
              vector_of<float>(trained)[1]);
  return !report.failure && (vector_of<float>(trained) - Eigen::Vector2f{3, -2}).norm() < 1e-3f;
}

int main() {
  batch all{value_or_throw(from_dlpack(dlpack_handle{lend_places()})), zeros({place_count})};
  mutable_vector_of<float>(all.heights) = matrix_of<float>(all.places) * Eigen::Vector2f{3, -2};

  return train_by_eigen(all) ? 0 : 1;
}
