// SPDX-License-Identifier: Apache-2.0
// Random numbers of libtorch, from streams of ours.
#pragma once

#include "kernels/tensor/random.hpp"

#include <memory>

namespace troupe {

/// Numbers that libtorch draws without a generator of their own (dropout, initial weights,
/// `at::rand`) come from one generator of the process: replicas that compute side by side would
/// take numbers from each other. While one of these lives, such draws of its thread come from a
/// stream that a key names, whatever other threads do. The innermost counts.
///
/// Thread: the one that made it, which also ends it.
class torch_draws {
public:
  explicit torch_draws(const random_key& key);
  ~torch_draws();

  torch_draws(const torch_draws&) = delete;
  torch_draws& operator=(const torch_draws&) = delete;

private:
  struct diversion;

  std::unique_ptr<diversion> diversion_;
};

} // namespace troupe
