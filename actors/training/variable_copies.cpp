// SPDX-License-Identifier: Apache-2.0
// Reading and changing copies, in the host's memory and on devices.
#include "actors/training/variable_copies.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/checks/limits.hpp"
#include "messages/errors/assert.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

expected<tensor> changed_by(const std::string& name, const tensor& value, change kind,
                            const gradient& operand) {
  const auto* dense = std::get_if<tensor>(&operand);
  auto result = dense != nullptr ? changed(value, kind, *dense)
                                 : scattered(value, kind, std::get<indexed_slices>(operand));
  if (!result)
    return fail(result.error().code,
                fmt::format("variable '{}': {}", name, result.error().message));
  return result;
}

// @pre The arrays have one dtype and shape, and nothing is divided by 0, so it cannot fail.
tensor computed(const tensor& a, change kind, const tensor& b) {
  auto result = changed(a, kind, b);
  TROUPE_ASSERT(result.has_value());
  return std::move(*result);
}

bool are_equal(const variable_slot& a, const variable_slot& b) {
  return a.name == b.name && have_same_bits(a.values, b.values);
}

// Compares everything that the next update depends on.
bool are_equal(const variable_state& a, const variable_state& b) {
  auto same_slot = [](const variable_slot& x, const variable_slot& y) { return are_equal(x, y); };
  return a.version == b.version && a.optimizer == b.optimizer && a.slots_since == b.slots_since
         && a.average.has_value() == b.average.has_value() && have_same_bits(a.value, b.value)
         && std::ranges::equal(a.slots, b.slots, same_slot)
         && (!a.average || are_equal(*a.average, *b.average));
}

/// Puts a version back unless the update was made: the next update is to make that version.
class version_of_update {
public:
  explicit version_of_update(uint64_t& version) : version_(version), before_(version) {}

  version_of_update(const version_of_update&) = delete;
  version_of_update& operator=(const version_of_update&) = delete;

  ~version_of_update() {
    if (!is_made_) version_ = before_;
  }

  void keep() { is_made_ = true; }

private:
  uint64_t& version_;
  uint64_t before_;
  bool is_made_ = false;
};

bool are_one(const tensor& a, const tensor& b) {
  return a.data() == b.data();
}

// Whether two copies that begin as one have not been updated since, whatever their values are.
bool share_slots(const variable_state& a, const variable_state& b) {
  auto same_slot
    = [](const variable_slot& x, const variable_slot& y) { return are_one(x.values, y.values); };
  return a.version == b.version && std::ranges::equal(a.slots, b.slots, same_slot)
         && (!a.average || are_one(a.average->values, b.average->values));
}

tensor divided(const tensor& whole, uint32_t count) {
  return computed(whole, change::divide, filled(whole.type(), whole.extents(), count));
}

} // namespace

bool have_same_bits(const tensor& a, const tensor& b) {
  return a.bytes() == 0 || a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

variable_copies::variable_copies(copies_config config, tensor initial)
  : config_(std::move(config)), copies_(1) {
  TROUPE_ASSERT(!config_.device || config_.rule == copy_rule::alike);
  copies_.front().value = std::move(initial);
}

compute_stream& variable_copies::stream() const {
  return config_.device ? config_.device->stream(config_.stream) : host_stream();
}

troupe::device variable_copies::where() const {
  return config_.device ? config_.device->where() : troupe::device{};
}

// Brings all arrays to the device. A stream may be asked only in turn, so this does not happen when
// a variable is made.
expected<void> variable_copies::place() {
  if (!config_.device) return {};
  for (auto& copy : copies_)
    for (auto* array : arrays_of(copy)) {
      auto there = stream().to_device(*array);
      if (!there) return tl::unexpected<error>(there.error());
      *array = std::move(*there);
    }
  return {};
}

expected<void> variable_copies::wait() const {
  return stream().wait();
}

// A message refers to a large array, and is read once the device has written that. A small array is
// copied into its message at once, so it has to be there before.
expected<tensor> variable_copies::to_host(const tensor& array) const {
  auto here = stream().to_host(array);
  if (!here || !config_.device || array.bytes() > limits::copied_bytes_max) return here;
  return wait().map([&] { return *here; });
}

bool variable_copies::has(int32_t component) const {
  return component >= whole_variable && component < static_cast<int64_t>(config_.count);
}

expected<void> variable_copies::check(int32_t component) const {
  if (has(component)) return {};
  return fail(errc::out_of_range, fmt::format("variable '{}' has {} copies, and no copy {}",
                                              config_.name, config_.count, component));
}

size_t variable_copies::index_of(int32_t component) const {
  return component == whole_variable || are_together() ? 0 : static_cast<size_t>(component);
}

expected<tensor> variable_copies::read(int32_t component) const {
  if (auto there = check(component); !there) return tl::unexpected<error>(there.error());
  if (!config_.device) return component == whole_variable ? combined() : value(component);
  auto index = index_of(component);
  if (auto found = on_host_.find(index); found != on_host_.end()) return found->second;
  auto here = to_host(copies_[index].value);
  if (here) on_host_[index] = *here;
  return here;
}

expected<tensor> variable_copies::read_in_place(int32_t component) {
  return place().map([&] { return value(component); });
}

expected<tensor> variable_copies::read_average() const {
  return to_host(first().average->values);
}

expected<tensor> variable_copies::combined() const {
  switch (config_.rule) {
  case copy_rule::alike:
  case copy_rule::first_replica:
    return first().value;
  case copy_rule::none:
    return fail(errc::invalid_argument,
                fmt::format("Could not convert from `tf.VariableAggregation` NONE to a reduction: "
                            "variable '{}' is synchronised on read and has no aggregation; read "
                            "it inside a replica, or make it with one",
                            config_.name));
  default:
    break;
  }
  auto sum = first().value;
  for (uint32_t i = 1; i < config_.count; ++i)
    sum = computed(sum, change::add, value(static_cast<int32_t>(i)));
  return config_.rule == copy_rule::sum ? sum : divided(sum, config_.count);
}

// The part of an assigned value that each copy gets. An integer loses its remainder, as in
// TensorFlow.
tensor variable_copies::share(const tensor& whole) const {
  auto all = config_.count + config_.elsewhere;
  return config_.rule == copy_rule::sum && all > 1 ? divided(whole, all) : whole;
}

expected<tensor> variable_copies::apply(int32_t component, change kind, const gradient& operand) {
  if (auto there = check(component); !there) return tl::unexpected<error>(there.error());
  if (config_.rule != copy_rule::alike && std::holds_alternative<indexed_slices>(operand))
    return fail(errc::unimplemented,
                fmt::format("variable '{}' is synchronised on read, which does not go together "
                            "with {}",
                            config_.name, name_of_scatter(kind)));
  if (config_.device) return apply_on_device(component, kind, operand);
  if (component == whole_variable) return apply_to_all(kind, operand);
  auto changed = changed_by(config_.name, value(component), kind, operand);
  if (!changed) return changed;
  take_apart();
  copies_[index_of(component)].value = *changed;
  bring_together();
  return changed;
}

// The host makes the change, since it has code for all kinds; changes by hand are rare.
expected<tensor> variable_copies::apply_on_device(int32_t component, change kind,
                                                  const gradient& operand) {
  auto is_whole = component == whole_variable;
  std::vector<tensor> after;
  for (size_t i = 0; i < (is_whole ? copies_.size() : 1); ++i) {
    auto before = read(is_whole ? static_cast<int32_t>(i) : component);
    if (!before) return before;
    if (auto copied = wait(); !copied) return tl::unexpected<error>(copied.error());
    auto changed = changed_by(config_.name, *before, kind, operand);
    if (!changed) return changed;
    after.push_back(std::move(*changed));
  }
  if (!is_whole) take_apart();
  auto at = index_of(component);
  for (const auto& changed : after) {
    auto there = stream().to_device(changed);
    if (!there) return there;
    copies_[at].value = std::move(*there);
    on_host_[at++] = changed;
  }
  bring_together();
  return after.front();
}

void variable_copies::take_apart() {
  if (!are_together()) return;
  copies_.resize(config_.count, copies_.front());
  if (auto first = on_host_.find(0); first != on_host_.end())
    for (size_t i = 1; i < copies_.size(); ++i)
      on_host_[i] = first->second;
}

// Copies on a device are compared by the host's arrays of them, which are there after a change.
bool variable_copies::is_as_first(size_t index) const {
  if (!config_.device) return are_equal(copies_[0], copies_[index]);
  auto first = on_host_.find(0), other = on_host_.find(index);
  return first != on_host_.end() && other != on_host_.end()
         && have_same_bits(first->second, other->second) && share_slots(copies_[0], copies_[index]);
}

// Makes the copies one array again, if they are equal. Cheap while they differ: the comparison ends
// at the first element that does.
void variable_copies::bring_together() {
  for (size_t i = 1; i < copies_.size(); ++i)
    if (!is_as_first(i)) return;
  copies_.resize(1);
}

expected<tensor> variable_copies::apply_to_all(change kind, const gradient& operand) {
  auto is_assigned = kind == change::assign && std::holds_alternative<tensor>(operand);
  if (config_.rule == copy_rule::none)
    return fail(errc::invalid_argument,
                fmt::format("variable '{}' is synchronised on read and has no aggregation; {} it "
                            "inside a replica",
                            config_.name, name_of_assign(kind)));
  if (config_.rule == copy_rule::sum && !is_assigned && config_.count + config_.elsewhere > 1)
    return fail(errc::invalid_argument,
                fmt::format("SyncOnReadVariable does not support `{}` in cross-replica context "
                            "when aggregation is set to SUM: variable '{}'; assign the new sum",
                            name_of_assign(kind), config_.name));
  std::vector<tensor> values;
  for (const auto& copy : copies_) {
    auto value = changed_by(config_.name, copy.value, kind, operand);
    if (!value) return value;
    values.push_back(is_assigned ? share(*value) : std::move(*value));
  }
  for (size_t i = 0; i < copies_.size(); ++i)
    copies_[i].value = is_assigned ? values.front() : values[i];
  bring_together();
  return first().value;
}

expected<std::vector<gradient>> variable_copies::placed(std::vector<gradient> gradients) const {
  if (!config_.device) return gradients; // there may be thousands, which lie where they came
  for (auto& one : gradients) {
    auto* dense = std::get_if<tensor>(&one);
    auto& values = dense != nullptr ? *dense : std::get<indexed_slices>(one).values;
    auto there = stream().to_device(values);
    if (!there) return tl::unexpected<error>(there.error());
    values = std::move(*there);
  }
  return gradients;
}

expected<void> variable_copies::update(const update_plan& plan, const gradient_mean& mean) {
  if (auto there = place(); !there) return there;
  on_host_.clear();
  for (auto& copy : copies_) {
    version_of_update version{copy.version};
    if (auto done = stream().update(copy, plan, mean); !done) return done;
    version.keep();
  }
  bring_together();
  return {};
}

expected<void> variable_copies::prepare(const update_plan& plan) {
  if (auto there = place(); !there) return there;
  for (auto& copy : copies_)
    if (auto done = stream().prepare(copy, plan); !done) return done;
  return {};
}

expected<std::vector<double>>
variable_copies::squared_norms(std::span<const gradient_mean> means) const {
  auto of_first = mapped(means, [this](const auto& mean) { return measured_mean{first(), mean}; });
  return stream().squared_norms(of_first);
}

expected<variable_state> variable_copies::saved() const {
  auto state = first();
  for (auto* array : arrays_of(state)) {
    if (array == &state.value && config_.rule != copy_rule::none) continue;
    auto here = to_host(*array);
    if (!here) return tl::unexpected<error>(here.error());
    *array = std::move(*here);
  }
  if (config_.rule == copy_rule::none) return state; // no value stands for all copies
  return read(whole_variable).map([&](const tensor& whole) {
    state.value = whole;
    return state;
  });
}

void variable_copies::restore(variable_state saved) {
  saved.value = share(saved.value);
  copies_.assign(1, std::move(saved));
  on_host_.clear();
}

} // namespace troupe
