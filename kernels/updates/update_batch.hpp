// SPDX-License-Identifier: Apache-2.0
// Updates of several variables on a GPU, as one piece of work.
#pragma once

#include "kernels/tensor/elements.hpp"
#include "kernels/updates/update.hpp"
#include "kernels/updates/update_pass.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe {

/// A dense update that is ready but for its kernel, with the memory that the kernel reads.
template <class T>
struct prepared_update {
  dense_update<T> arguments;
  std::vector<tensor> gradients;
  std::vector<elements> sources;      ///< The sources that `arguments.gradient` refers to.
  tensor before, after;               ///< The variable as it was, and as it will be.
  std::shared_ptr<std::byte> scale{}; ///< Memory of `arguments.gradient.scale_there`.
};

namespace cuda {

/// Collects updates, and launches their dense passes together.
class update_batch {
public:
  /// @param on Outlives this.
  explicit update_batch(const context& on) : on_(on) {}

  /// As `update_variable`; but a dense pass waits for `launch`. Until then the variable stays where
  /// it is, and is not to be looked at, or updated again.
  void add(variable_state& state, const update_plan& plan, const gradient_mean& mean);

  /// Queues what waits. If the context fails, or has failed, variables whose passes wait keep value
  /// and version.
  void launch();

private:
  template <class T>
  struct waiting_pass {
    variable_state& state;
    prepared_update<T> pass;
  };

  template <class T>
  void launch(std::vector<waiting_pass<T>>& passes);

  const context& on_;
  std::vector<waiting_pass<float>> f32_;
  std::vector<waiting_pass<double>> f64_;
};

} // namespace cuda

} // namespace troupe
