// SPDX-License-Identifier: Apache-2.0
// A module of PyTorch that is lent its parameters for each computation.
#pragma once

#include "strategies/torch/torch_modules.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// The form of a parameter, for the variable that stands for it.
struct parameter_form {
  std::string name;
  dtype type;
  shape extents;
  bool trained; ///< Whether it needs a gradient.

  bool operator==(const parameter_form&) const = default;
};

/// A module and how it is lent memory: it refers to the variables' elements while it computes, and
/// to nothing between two computations.
///
/// Thread: one at a time.
class lent_module {
public:
  /// Told of the gradient by a parameter: nothing more is added to it.
  using gradient_ready = std::function<void(size_t parameter, const gradient& final)>;

  /// @param key Names the draws of initial values.
  /// Errors: throws `failure`, as the constructor of `torch_modules`.
  lent_module(const torch_modules::module_maker& make, const random_key& key);

  [[nodiscard]] const std::vector<parameter_form>& forms() const;

  /// The values that the module was made with, which it holds no more afterwards. To be called
  /// once.
  [[nodiscard]] std::vector<tensor> give_initial_values();

  /// The loss; each trained parameter's gradient is handed to `ready`.
  /// @param values One for each parameter. @param draws The key of libtorch's random numbers.
  /// Errors: throws `failure`, as `torch_modules::compute_gradients`.
  double differentiate(std::span<const tensor> values, const module_loss& loss,
                       const random_key& batch, const random_key& draws,
                       const gradient_ready& ready, const std::stop_token& stop);

  /// As `torch_modules::evaluate`.
  double evaluate(std::span<const tensor> values, const random_key& draws,
                  const std::function<double(torch::nn::Module&)>& measure);

private:
  struct parts;

  std::shared_ptr<parts> parts_;
};

} // namespace troupe
