// SPDX-License-Identifier: Apache-2.0
// The update of a variable on a GPU, and of several.
#include "kernels/updates/update_pass.hpp"

#include "kernels/cuda/context.hpp"
#include "kernels/updates/update_batch.hpp"
#include "kernels/updates/update_pass_definition.hpp"

namespace troupe {

template void prepare(const cuda::context&, variable_state&, const update_plan&);
template void update_variable(const cuda::context&, variable_state&, const update_plan&,
                              const gradient_mean&);
template double squared_norm(const cuda::context&, const variable_state&, const gradient_mean&);

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
  for (auto& one : passes)
    updates.push_back(std::move(one.pass.arguments));
  update<T>(on_, updates);
  for (auto& [of, pass] : passes)
    if (on_.status())
      of.value = pass.after;
    else
      --of.version;
  passes.clear();
}

void update_batch::launch() {
  launch(f32_);
  launch(f64_);
}

} // namespace cuda

} // namespace troupe
