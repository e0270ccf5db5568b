// SPDX-License-Identifier: Apache-2.0
// Adds each half of the values onto its root, then the sums of both roots.
#include "strategies/reduce/hierarchical_copy_all_reduce.hpp"

#include "messages/errors/throw_failure.hpp"

#include <utility>

namespace troupe {

namespace {

/// The halves of some values, the one with the first root of a pack in front.
struct halves {
  std::span<const tensor> near;
  std::span<const tensor> far;
};

halves halves_of(std::span<const tensor> values, size_t pack) {
  auto half = values.size() / 2;
  halves result{values.first(half), values.last(half)};
  if (pack % values.size() >= half) std::swap(result.near, result.far);
  return result;
}

void check_even(size_t devices) {
  if (devices == 0 || devices % 2 != 0)
    throw_failure(
      errc::invalid_argument,
      "hierarchical_copy_all_reduce needs an even number of devices, not {}; choose all_reduce",
      devices);
}

} // namespace

hierarchical_copy_all_reduce::hierarchical_copy_all_reduce(
  std::vector<std::shared_ptr<compute_device>> devices, int num_packs, job_time deadline)
  : packed_all_reduce(num_packs), devices_(std::move(devices), deadline) {
  check_even(devices_.count());
}

// A device copies values from another one only once they are computed, so each level is waited for.
tensor hierarchical_copy_all_reduce::sum_on_devices(std::span<const tensor> components,
                                                    size_t pack) const {
  std::lock_guard guard{mutex_};
  auto count = devices_.count();
  std::vector<tensor> sums;
  for (size_t i = 0; i < count; ++i)
    sums.push_back(devices_.add_own(i, components));
  for (size_t i = 0; i < count; ++i)
    devices_.wait_for(i);
  auto root = pack % count, other_root = (root + count / 2) % count;
  auto [near, far] = halves_of(sums, pack);
  auto far_sum = devices_.add(other_root, far);
  const tensor both[] = {devices_.add(root, near), far_sum};
  devices_.wait_for(other_root);
  auto result = devices_.answer_of(root, devices_.stream(root).to_host(devices_.add(root, both)));
  devices_.wait_for(root);
  return result;
}

std::vector<tensor>
hierarchical_copy_all_reduce::reduce_packs(reduce_op op,
                                           std::span<const std::vector<tensor>> packs) const {
  std::vector<tensor> results;
  for (size_t i = 0; i < packs.size(); ++i)
    results.push_back(reduce_pack(op, packs[i], i));
  return results;
}

tensor hierarchical_copy_all_reduce::reduce_pack(reduce_op op, std::span<const tensor> components,
                                                 size_t pack) const {
  check_even(components.size());
  check_alike(components);
  auto divisor = divisor_of(op, components.size());
  if (!devices_.adds(components, name())) {
    auto [near, far] = halves_of(components, pack);
    const tensor roots[] = {divided_sum(near, 1), divided_sum(far, 1)};
    return divided_sum(roots, divisor);
  }
  auto sum = sum_on_devices(components, pack);
  return divisor == 1 ? sum : divided_sum({&sum, 1}, divisor);
}

} // namespace troupe
