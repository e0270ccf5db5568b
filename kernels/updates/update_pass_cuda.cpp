// SPDX-License-Identifier: Apache-2.0
// The update of a variable on a GPU, and of several.
#include "kernels/updates/update_pass.hpp"

#include "kernels/cuda/context.hpp"
#include "kernels/updates/update_batch.hpp"
#include "kernels/updates/update_pass_definition.hpp"

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

namespace detail {

template <class T, class Sum>
std::shared_ptr<std::byte> clip_by_norm(const cuda::context& on, Sum& sum, double norm_max) {
  auto room = on.workspace(2 * sizeof(double));
  if (room == nullptr) return room;
  auto* numbers = reinterpret_cast<double*>(room.get());
  const std::span square{numbers, 1}, scale{numbers + 1, 1};
  squared_norm<T>(on, sum, square);
  cuda::clip_scale(on, square, norm_max, sum.scale, scale);
  sum.scale_there = scale.data();
  return room;
}

/// The numbers stay on the device until all are queued: those of dense gradients together, at last.
template <>
class measured_squares<cuda::context> {
public:
  measured_squares(const cuda::context& on, size_t count)
    : on_(on), count_(count), room_(on.workspace(count * sizeof(double))) {
    if (room_ != nullptr) on.note(on.stream().clear(room_.get(), count * sizeof(double)));
  }

  template <class T>
  void add(size_t i, dense_gradients<T, cuda::context> gradients) {
    if constexpr (std::same_as<T, float>)
      f32_.emplace_back(i, std::move(gradients));
    else
      f64_.emplace_back(i, std::move(gradients));
  }

  template <class T>
  void add(size_t i, const sparse_sum& rows) {
    if (room_ != nullptr) squared_norm<T>(on_, rows, std::span{first() + i, 1});
  }

  [[nodiscard]] std::vector<double> fetched() {
    std::vector<double> numbers(count_);
    if (room_ != nullptr) queue(f32_), queue(f64_);
    fetch(on_, first(), numbers);
    return numbers;
  }

private:
  template <class T>
  using waiting = std::vector<std::pair<size_t, dense_gradients<T, cuda::context>>>;

  [[nodiscard]] double* first() const { return reinterpret_cast<double*>(room_.get()); }

  template <class T>
  void queue(const waiting<T>& measured) const {
    std::vector<cuda::measured_sum> sums;
    for (const auto& [i, gradients] : measured)
      sums.push_back({gradients.sum, first() + i});
    cuda::squared_norms<T>(on_, sums);
  }

  const cuda::context& on_;
  size_t count_;
  std::shared_ptr<std::byte> room_;
  waiting<float> f32_;
  waiting<double> f64_;
};

} // namespace detail

template void prepare(const cuda::context&, variable_state&, const update_plan&);
template void update_variable(const cuda::context&, variable_state&, const update_plan&,
                              const gradient_mean&);
template std::vector<double> squared_norms(const cuda::context&, std::span<const measured_mean>);

namespace cuda {

void update_batch::add(variable_state& state, const update_plan& plan, const gradient_mean& mean) {
  TROUPE_ASSERT(!mean.gradients.empty());
  detail::next_update(on_, state, plan, [&]<class T>(detail::update_in_work<T, context> update) {
    auto prepared = update.begin(mean);
    if (!prepared) return;
    if constexpr (std::same_as<T, float>)
      f32_.push_back({state, std::move(*prepared)});
    else
      f64_.push_back({state, std::move(*prepared)});
  });
}

template <class T>
void update_batch::launch(std::vector<waiting_pass<T>>& passes) {
  std::vector<dense_update<T>> updates;
  for (auto& [state, pass] : passes)
    updates.push_back(std::move(pass.arguments));
  update<T>(on_, updates);
  for (auto& [state, pass] : passes)
    if (on_.status())
      state.value = pass.after;
    else
      --state.version;
  passes.clear();
}

void update_batch::launch() {
  launch(f32_);
  launch(f64_);
}

} // namespace cuda

} // namespace troupe
