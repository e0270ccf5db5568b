// SPDX-License-Identifier: Apache-2.0
// Adds the components of values, in packs or one by one.
#include "strategies/reduce/cross_device_ops.hpp"

#include "actors/world/compute_device.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/text.hpp"
#include "strategies/reduce/named_devices.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/packs.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

bool is_sparse(const gradient& value) {
  return std::holds_alternative<indexed_slices>(value);
}

bool has_part_on_device(const device_values& value) {
  return std::ranges::any_of(value.components, [](const gradient& component) {
    const auto* dense = std::get_if<tensor>(&component);
    return dense != nullptr && is_on_device(*dense);
  });
}

// ---- dense ----

template <class T>
tensor reduce_floats(std::span<const tensor> components, double divisor) {
  std::vector<elements> sources(components.begin(), components.end());
  tensor result{dtype_of<T>, components.front().extents()};
  if (result.element_count() > 0)
    cpu::reduce<T>({}, {.sources = sources, .divisor = divisor}, result.mutable_values<T>());
  return result;
}

// Never fails: the components agree, and nothing is divided by 0.
tensor reduce_integers(std::span<const tensor> components, double divisor) {
  auto sum = components.front();
  for (const auto& other : components.subspan(1))
    sum = changed(sum, change::add, other).value();
  if (divisor == 1) return sum;
  return changed(sum, change::divide, filled(sum.type(), sum.extents(), divisor)).value();
}

tensor reduce_dense(std::span<const tensor> components, double divisor) {
  check_alike(components);
  return divided_sum(components, divisor);
}

// ---- sparse ----

tensor concatenate_rows(std::span<const tensor> parts) {
  return cross_device_ops::gather(parts, 0);
}

indexed_slices reduce_sparse(std::span<const gradient> components, double divisor) {
  std::vector<tensor> indices;
  std::vector<tensor> values;
  for (const auto& component : components) {
    const auto& slices = std::get<indexed_slices>(component);
    indices.push_back(slices.indices);
    values.push_back(slices.values);
  }
  auto rows = concatenate_rows(values);
  if (divisor != 1) rows = reduce_dense({&rows, 1}, divisor);
  return {concatenate_rows(indices), rows,
          std::get<indexed_slices>(components.front()).dense_extents};
}

// ---- packs ----

// Many arrays laid behind each other, and cut apart again.
struct flat_batch {
  std::vector<tensor> components; ///< By replica: all values of the batch.
  size_t elements = 0;

  explicit flat_batch(std::span<const device_values* const> values) {
    for (const auto* value : values)
      if (value->components.size() != values.front()->components.size())
        throw_failure(errc::invalid_argument,
                      "a batch has a value of {} components and one of {}; each has one of each "
                      "replica here",
                      value->components.size(), values.front()->components.size());
    for (size_t replica = 0; replica < values.front()->components.size(); ++replica) {
      auto parts = mapped(
        values, [&](const auto* value) { return std::get<tensor>(value->components[replica]); });
      components.push_back(laid_flat(parts));
    }
    elements = components.front().element_count();
  }

  // The same elements in packs: all but the last of one size, which may be 0.
  [[nodiscard]] std::vector<std::vector<tensor>> packs(size_t count) const {
    std::vector<std::vector<tensor>> result(count);
    auto size = elements / count;
    for (size_t pack = 0; pack < count; ++pack)
      for (const auto& component : components)
        result[pack].push_back(
          component.slice(static_cast<int64_t>(pack * size),
                          static_cast<int64_t>(pack + 1 == count ? elements : (pack + 1) * size)));
    return result;
  }
};

std::vector<gradient> unpack(std::span<const tensor> packs,
                             std::span<const device_values* const> values) {
  std::vector<shape> extents;
  for (const auto* value : values)
    extents.push_back(std::get<tensor>(value->components.front()).extents());
  auto parts = cut(concatenate_rows(packs), extents);
  return {parts.begin(), parts.end()};
}

void check_fit_together(std::span<const device_values* const> values) {
  for (const auto* value : values)
    check_alike(dense_components(value->components));
}

// Values of a batch that share packs; a value that shares with no other is a pack by itself.
struct packed_values {
  std::span<const device_values* const> values;
  size_t pack_count = 1;

  [[nodiscard]] std::vector<std::vector<tensor>> packs() const {
    if (values.size() == 1) return {dense_components(values.front()->components)};
    return flat_batch{values}.packs(pack_count);
  }

  [[nodiscard]] std::vector<gradient> unpacked(std::span<const tensor> reduced) const {
    if (values.size() == 1) return {reduced.front()};
    return unpack(reduced, values);
  }
};

// The host lays values behind each other, so a value on a device shares no pack.
// @param num_packs 0: each value for itself. @param bytes_per_pack Not 0: counts in its place.
std::vector<packed_values> in_packs(std::span<const device_values* const> values, int num_packs,
                                    int64_t bytes_per_pack) {
  if (std::ranges::any_of(values, [](const auto* value) { return has_part_on_device(*value); })) {
    num_packs = 0;
    bytes_per_pack = 0;
  }
  if (bytes_per_pack == 0 && num_packs > 0)
    return {{values, values.size() == 1 ? 1 : static_cast<size_t>(num_packs)}};
  std::vector<size_t> counts(values.size(), 1);
  if (bytes_per_pack > 0) {
    std::vector<size_t> bytes;
    for (const auto* value : values)
      bytes.push_back(std::get<tensor>(value->components.front()).bytes());
    counts = pack_by_bytes(bytes, bytes_per_pack);
  }
  std::vector<packed_values> result;
  size_t begin = 0;
  for (auto count : counts) {
    result.push_back({values.subspan(begin, count)});
    begin += count;
  }
  return result;
}

bool is_wanted_where_it_is(const device_values& value, const destinations& to) {
  auto from = value.devices;
  auto destinations = to.devices();
  std::ranges::sort(from);
  std::ranges::sort(destinations);
  return from == destinations;
}

template <class T>
distributed_value<gradient> to_gradients(const distributed_value<T>& value) {
  if (value.is_mirrored())
    return distributed_value<gradient>::mirrored(value.primary(), value.size());
  auto components = value.local_results();
  return distributed_value<gradient>::per_replica({components.begin(), components.end()});
}

// Refuses results of operations, which may be a program's own, that are not one for each value.
std::vector<gradient> checked(std::vector<gradient> results, size_t values, std::string_view name) {
  if (results.size() != values)
    throw_failure(errc::user_code,
                  "the cross-device operations '{}' reduced {} values to {}; "
                  "return one for each",
                  name, values, results.size());
  return results;
}

} // namespace

std::vector<tensor> dense_components(std::span<const gradient> components) {
  return mapped(components, [](const auto& component) { return std::get<tensor>(component); });
}

void check_same_type(const tensor& value, size_t replica, const tensor& first,
                     size_t first_replica) {
  if (value.type() != first.type())
    throw_failure(errc::type_mismatch, "replica {} has a value of {}, replica {} one of {}",
                  replica, to_string(value.type()), first_replica, to_string(first.type()));
}

void check_alike(std::span<const tensor> components, uint32_t first_replica) {
  const auto& first = components.front();
  for (size_t i = 1; i < components.size(); ++i) {
    const auto& other = components[i];
    check_same_type(other, first_replica + i, first, first_replica);
    if (other.extents() != first.extents())
      throw_failure(
        errc::invalid_argument,
        "replica {} has a value of shape {}, replica {} one of shape {}; shapes have to "
        "agree, or name the axis to reduce",
        first_replica + i, to_string(other.extents()), first_replica, to_string(first.extents()));
  }
}

tensor divided_sum(std::span<const tensor> components, double divisor) {
  check_on_host(components);
  if (!std::ranges::all_of(components, &tensor::is_contiguous)) {
    return divided_sum(mapped(components, &tensor::contiguous), divisor);
  }
  switch (auto type = components.front().type()) {
  case dtype::f32:
    return reduce_floats<float>(components, divisor);
  case dtype::f64:
    return reduce_floats<double>(components, divisor);
  case dtype::i32:
  case dtype::i64:
    return reduce_integers(components, divisor);
  default:
    return cast(reduce_floats<float>(components, divisor), type);
  }
}

std::string_view to_string(reduce_op op) {
  return op == reduce_op::mean ? "MEAN" : "SUM";
}

double divisor_of(reduce_op op, size_t values) {
  if (op == reduce_op::sum) return 1;
  if (op == reduce_op::mean) return static_cast<double>(values);
  throw_failure(errc::invalid_argument, "there is no reduction number {}; there are SUM and MEAN",
                static_cast<int>(op));
}

reduce_op to_reduce_op(std::string_view name) {
  if (auto known = lower_case(name); known == "sum" || known == "mean")
    return known == "sum" ? reduce_op::sum : reduce_op::mean;
  throw_failure(errc::invalid_argument, "there is no reduction '{}'; there are SUM and MEAN", name);
}

communication_implementation to_communication_implementation(std::string_view name) {
  constexpr std::array<std::string_view, 5> names{"auto", "ring", "nccl", "halving_doubling",
                                                  "tree"};
  auto found = std::ranges::find(names, lower_case(name));
  if (found == names.end())
    throw_failure(errc::invalid_argument,
                  "there is no communication implementation '{}'; there are AUTO, RING, NCCL, "
                  "HALVING_DOUBLING and TREE",
                  name);
  return static_cast<communication_implementation>(found - names.begin());
}

void communication_options::validate() const {
  if (bytes_per_pack < 0)
    throw_failure(errc::invalid_argument, "bytes_per_pack must be non-negative, not {}",
                  bytes_per_pack);
  if (timeout_seconds && !(*timeout_seconds >= 0))
    throw_failure(errc::invalid_argument, "timeout_seconds must be non-negative, not {}",
                  *timeout_seconds);
}

communication_options communication_options::merge(const communication_options& other) const {
  auto merged = *this;
  if (other.bytes_per_pack != 0) merged.bytes_per_pack = other.bytes_per_pack;
  if (other.timeout_seconds) merged.timeout_seconds = other.timeout_seconds;
  if (other.implementation != communication_implementation::automatic)
    merged.implementation = other.implementation;
  return merged;
}

destinations::destinations(std::vector<std::string> devices) {
  if (devices.empty()) throw_failure(errc::invalid_argument, "destinations can not be empty");
  for (auto& device : canonical_devices(std::move(devices)))
    if (std::ranges::find(devices_, device) == devices_.end())
      devices_.push_back(std::move(device));
}

tensor reduce_arrays(reduce_op op, std::span<const tensor> components) {
  if (components.empty()) throw_failure(errc::invalid_argument, "there is no value to reduce");
  return reduce_dense(components, divisor_of(op, components.size()));
}

distributed_value<gradient> as_gradients(const distributed_value<tensor>& value) {
  return to_gradients(value);
}

distributed_value<gradient> as_gradients(const distributed_value<indexed_slices>& value) {
  return to_gradients(value);
}

gradient reduce_components(reduce_op op, std::span<const gradient> components) {
  auto divisor = divisor_of(op, components.size());
  if (are_sparse(components)) return reduce_sparse(components, divisor);
  return reduce_dense(dense_components(components), divisor);
}

bool are_numbered(const indexed_slices& rows) {
  const auto& numbers = rows.indices.extents();
  const auto& values = rows.values.extents();
  return numbers.rank() == 1 && values.rank() > 0 && values[0] == numbers[0];
}

void refuse_rows(const indexed_slices& rows, std::string_view giver) {
  throw_failure(errc::invalid_argument,
                "{} has rows with numbers of shape {} and values of shape {}; numbers have shape "
                "[rows], and values as many rows",
                giver, to_string(rows.indices.extents()), to_string(rows.values.extents()));
}

bool are_sparse(std::span<const gradient> components, uint32_t first_replica) {
  if (components.empty()) throw_failure(errc::invalid_argument, "there is no value to reduce");
  for (size_t i = 0; i < components.size(); ++i)
    if (const auto* rows = std::get_if<indexed_slices>(&components[i]);
        rows && !are_numbered(*rows))
      refuse_rows(*rows, fmt::format("replica {}", first_replica + i));
  auto sparse = static_cast<size_t>(std::ranges::count_if(components, is_sparse));
  if (sparse == 0 || sparse == components.size()) return sparse > 0;
  auto odd = is_sparse(components.front())
               ? std::ranges::find_if_not(components, is_sparse) - components.begin()
               : std::ranges::find_if(components, is_sparse) - components.begin();
  throw_failure(errc::type_mismatch,
                "replica {} has a {} value, replica {} a {} one; make all of one kind",
                first_replica + odd, is_sparse(components.front()) ? "dense" : "sparse",
                first_replica, is_sparse(components.front()) ? "sparse" : "dense");
}

gradient cross_device_ops::reduce(reduce_op op, const device_values& value,
                                  const destinations& to) const {
  const std::pair<device_values, destinations> batch[] = {{value, to}};
  return batch_reduce(op, batch).front();
}

std::vector<gradient>
cross_device_ops::batch_reduce(reduce_op op,
                               std::span<const std::pair<device_values, destinations>> values,
                               const communication_options& options) const {
  options.validate();
  std::vector<gradient> results(values.size());
  std::vector<const device_values*> together;
  std::vector<size_t> places;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [value, to] = values[i];
    auto is_dense = !value.components.empty() && std::ranges::none_of(value.components, is_sparse);
    const auto has_same_devices = together.empty() || value.devices == together.front()->devices;
    const auto has_same_type
      = is_dense
        && (together.empty()
            || std::get<tensor>(value.components.front()).type()
                 == std::get<tensor>(together.front()->components.front()).type());
    if (is_dense && has_same_devices && has_same_type && is_wanted_where_it_is(value, to)) {
      together.push_back(&value);
      places.push_back(i);
    } else if (is_dense && has_part_on_device(value)) {
      const device_values* alone[] = {&value};
      results[i] = checked(batch_all_reduce(op, alone, options), 1, name()).front();
    } else {
      results[i] = reduce_components(op, value.components);
    }
  }
  if (together.empty()) return results;
  auto reduced = checked(batch_all_reduce(op, together, options), together.size(), name());
  for (size_t i = 0; i < places.size(); ++i)
    results[places[i]] = std::move(reduced[i]);
  return results;
}

std::vector<std::vector<tensor>>
cross_device_ops::sums_on_devices(std::span<const std::vector<tensor>> values) const {
  return std::vector<std::vector<tensor>>(values.size());
}

tensor cross_device_ops::broadcast(const tensor& value, const destinations& /*to*/) const {
  return value;
}

size_t cross_device_ops::gathered_axis(std::span<const tensor> components, int64_t axis) {
  if (components.empty()) throw_failure(errc::invalid_argument, "there is no value to gather");
  const auto& first = components.front();
  auto rank = static_cast<int64_t>(first.rank());
  if (rank == 0)
    throw_failure(errc::invalid_argument,
                  "scalars cannot be gathered; give each a dimension first");
  if (axis < -rank || axis >= rank)
    throw_failure(errc::invalid_argument, "`axis` = {} out of range for `value` with rank {}", axis,
                  rank);
  auto along = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  auto dims = first.extents().dims();
  for (size_t i = 0; i < components.size(); ++i) {
    auto other = components[i].extents().dims();
    check_same_type(components[i], i, first);
    if (other.size() != dims.size())
      throw_failure(
        errc::invalid_argument,
        "replica {} has a value of rank {}, of shape {}, replica 0 one of rank {}, of shape "
        "{}; what is gathered has one rank",
        i, other.size(), to_string(components[i].extents()), dims.size(),
        to_string(first.extents()));
    other[along] = dims[along];
    if (other != dims)
      throw_failure(
        errc::invalid_argument,
        "replica {} has a value of shape {}, replica 0 one of shape {}; they may differ along "
        "axis {} only",
        i, to_string(components[i].extents()), to_string(first.extents()), along);
  }
  return along;
}

tensor cross_device_ops::gather(std::span<const tensor> components, int64_t axis) {
  auto along = gathered_axis(components, axis);
  check_on_host(components);
  auto rows = mapped(components, &tensor::contiguous);
  return value_or_throw(host_stream().gather(rows, along));
}

std::vector<gradient> reduction_to_one_device::batch_all_reduce(
  reduce_op op, std::span<const device_values* const> values, const communication_options&) const {
  return mapped(values,
                [&](const auto* value) { return reduce_components(op, value->components); });
}

packed_all_reduce::packed_all_reduce(int num_packs) : num_packs_(num_packs) {
  if (num_packs < 0)
    throw_failure(errc::invalid_argument,
                  "num_packs is {}; it must not be negative, 0 means no packing", num_packs);
}

std::vector<gradient>
packed_all_reduce::batch_all_reduce(reduce_op op, std::span<const device_values* const> values,
                                    const communication_options& options) const {
  check_fit_together(values);
  auto batch = in_packs(values, num_packs_, options.bytes_per_pack);
  std::vector<std::vector<tensor>> packs;
  for (const auto& sharing : batch)
    std::ranges::move(sharing.packs(), std::back_inserter(packs));
  auto reduced = reduce_packs(op, packs);
  std::vector<gradient> results;
  std::span rest{std::as_const(reduced)};
  for (const auto& sharing : batch) {
    std::ranges::move(sharing.unpacked(rest.first(sharing.pack_count)),
                      std::back_inserter(results));
    rest = rest.subspan(sharing.pack_count);
  }
  return results;
}

std::vector<tensor> all_reduce_ops::reduce_packs(reduce_op op,
                                                 std::span<const std::vector<tensor>> packs) const {
  return mapped(packs, [&](const auto& components) { return reduce_arrays(op, components); });
}

} // namespace troupe
