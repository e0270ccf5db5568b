// SPDX-License-Identifier: Apache-2.0
// Takes snapshots of a strategy's variables, and restores them, without a job.
#include "strategies/jobs/checkpoint.hpp"

#include "actors/checkpoint/checkpoint_directory.hpp"
#include "actors/checkpoint/job_file.hpp"
#include "actors/checkpoint/safetensors_file.hpp"
#include "actors/world/ask.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/tensor/gradient_sum.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/values/deferred_restore.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace troupe {

namespace {

using state_parts = std::vector<variable_payload>;

// The array that `get` takes out of every shard's state, as one.
template <class Get>
tensor array_of_all(const state_parts& parts, const Get& get) {
  return cross_device_ops::gather(mapped(parts, get), 0);
}

bool have_the_same_slots(const state_parts& parts) {
  return std::ranges::all_of(parts, [&](const variable_payload& part) {
    return part.optimizer == parts.front().optimizer
           && part.slots.size() == parts.front().slots.size();
  });
}

bool have_the_same_average(const state_parts& parts) {
  const auto& first = parts.front().average;
  return first && std::ranges::all_of(parts, [&](const variable_payload& part) {
           return part.average && part.average->name == first->name;
         });
}

// Joins the states of shards into that of one variable. Rows may have been updated more or less
// often.
variable_payload join(const state_parts& parts) {
  variable_payload whole;
  whole.value = array_of_all(parts, [](const auto& part) { return part.value; });
  for (const auto& part : parts)
    whole.version = std::max(whole.version, part.version);
  if (have_the_same_average(parts))
    whole.average
      = named_payload{parts.front().average->name,
                      array_of_all(parts, [](const auto& part) { return part.average->value; })};
  if (!have_the_same_slots(parts)) return whole;
  whole.optimizer = parts.front().optimizer;
  whole.slots_since = parts.front().slots_since;
  for (size_t i = 0; i < parts.front().slots.size(); ++i)
    whole.slots.push_back({parts.front().slots[i].name, array_of_all(parts, [i](const auto& part) {
                             return part.slots[i].value;
                           })});
  return whole;
}

variable_payload state_of(world& world, const variable& source) {
  auto state
    = value_or_throw(ask<msg<wire::VariableState>>(world, source.owner(), make_read_state()));
  return read_state(state.reader(), state.owner());
}

void restore_to(world& world, const variable& target, const variable_payload& state) {
  static_cast<void>(value_or_throw(
    ask<msg<wire::OptimizerInUse>>(world, target.owner(), make_restore_state(state))));
}

// The saved states of variables that are not made yet.
std::vector<variable_snapshot> without_owner(const strategy& strategy, const job_snapshot& from,
                                             std::span<const sharded_variable> sharded) {
  std::unordered_set<std::string> made;
  for (const auto& variable : strategy.variables())
    made.insert(variable.name());
  for (const auto& table : sharded)
    made.insert(table.name());
  std::vector<variable_snapshot> left;
  std::ranges::copy_if(from.variables, std::back_inserter(left),
                       [&](const auto& saved) { return !made.contains(saved.name); });
  return left;
}

bool is_shard(std::span<const sharded_variable> sharded, const variable& variable) {
  return std::ranges::any_of(sharded, [&](const sharded_variable& table) {
    return std::ranges::count(table.shards(), variable) > 0;
  });
}

// The values that the copies of all processes combine to, where they may differ.
std::map<std::string, tensor> combined_copies(strategy& strategy) {
  std::map<std::string, tensor> combined;
  if (!strategy.layout().group) return combined;
  for (const auto& variable : strategy.variables())
    if (variable.synchronization() == variable_synchronization::on_read
        && variable.aggregation() != variable_aggregation::none)
      combined.emplace(variable.name(), strategy.read(variable));
  return combined;
}

// Processes that go on from different steps would train different variables.
void check_same_step(strategy& strategy, std::optional<uint64_t> step) {
  if (!strategy.layout().group) return;
  tensor own{dtype::i64, {1}};
  own.mutable_values<int64_t>()[0] = step ? static_cast<int64_t>(*step) : -1;
  auto all = strategy.cross_replica([own](cross_replica_context& context) {
    return context.reducing().gather_rows("restore_checkpoint", {own});
  });
  auto steps = all.front().values<int64_t>();
  auto other = std::ranges::find_if(steps, [&](int64_t each) { return each != steps[0]; });
  if (other == steps.end()) return;
  auto describe = [](int64_t each) {
    return each < 0 ? std::string{"no checkpoint"} : fmt::format("that of step {}", each);
  };
  const auto& names = strategy.layout().group->names;
  throw_failure(errc::failed_precondition,
                "{} finds {}, {} {}; have all processes restore the same checkpoint",
                names[static_cast<size_t>(other - steps.begin())], describe(*other), names[0],
                describe(steps[0]));
}

/// The variables of a snapshot, which outlives this, found by name: there may be thousands.
class saved_variables {
public:
  explicit saved_variables(const job_snapshot& from) : step_(from.step) {
    for (const auto& [name, state] : from.variables)
      states_.emplace(name, &state);
  }

  [[nodiscard]] const variable_payload& of(const std::string& name) const {
    auto found = states_.find(name);
    if (found == states_.end())
      throw_failure(errc::not_found, "the checkpoint of step {} has no variable '{}'", step_, name);
    return *found->second;
  }

  [[nodiscard]] const variable_payload& of(const sharded_variable& table) const {
    const auto& state = of(table.name());
    if (const auto& saved = state.value.extents(); saved != table.extents())
      throw_failure(errc::invalid_argument, "'{}' was saved with shape {}, but has {} in {} shards",
                    table.name(), to_string(saved), to_string(table.extents()),
                    table.shards().size());
    return state;
  }

private:
  uint64_t step_;
  std::unordered_map<std::string_view, const variable_payload*> states_;
};

// The array of a file that is a variable's, as that variable holds it.
tensor value_for(const variable& target, const std::vector<named_tensor>& arrays,
                 const std::filesystem::path& file) {
  auto found = std::ranges::find(arrays, target.name(), &named_tensor::name);
  if (found == arrays.end())
    throw_failure(errc::not_found, "{} has no array '{}'", file.string(), target.name());
  const auto& value = found->value;
  if (value.extents() != target.extents())
    throw_failure(errc::invalid_argument, "'{}' has shape {} in {}, but {} here", target.name(),
                  to_string(value.extents()), file.string(), to_string(target.extents()));
  if (value.type() == target.type()) return value;
  if (!is_floating(value.type()) || !widens_to(value.type(), target.type()))
    throw_failure(errc::type_mismatch,
                  "'{}' is {} in {}, which does not widen to the {} that it is here", target.name(),
                  to_string(value.type()), file.string(), to_string(target.type()));
  return cast(value, target.type());
}

} // namespace

std::vector<std::string> load_variables(strategy& strategy, const std::filesystem::path& file,
                                        std::span<const variable> variables) {
  context_check::blocking("load_variables", strategy);
  auto arrays = value_or_throw(read_safetensors(file)).tensors;
  auto values
    = mapped(variables, [&](const auto& variable) { return value_for(variable, arrays, file); });
  for (size_t i = 0; i < values.size(); ++i)
    strategy.assign(variables[i], values[i]);
  std::vector<std::string> unused;
  for (const auto& [name, value] : arrays)
    if (std::ranges::count(variables, name, &variable::name) == 0) unused.push_back(name);
  return unused;
}

job_snapshot take_snapshot(strategy& strategy, uint64_t step,
                           std::span<const sharded_variable> sharded) {
  context_check::blocking("take_snapshot", strategy);
  auto combined = combined_copies(strategy);
  auto& world = strategy.world();
  job_snapshot taken{.step = step, .time = world.now(), .seed = world.seed()};
  for (const auto& variable : strategy.variables()) {
    if (is_shard(sharded, variable)) continue;
    taken.variables.push_back({variable.name(), state_of(world, variable)});
    if (auto whole = combined.find(variable.name()); whole != combined.end())
      taken.variables.back().state.value = whole->second;
  }
  for (const auto& table : sharded) {
    auto parts = mapped(table.shards(), [&](const auto& shard) { return state_of(world, shard); });
    taken.variables.push_back({table.name(), join(parts)});
  }
  return taken;
}

void save_checkpoint(strategy& strategy, const std::filesystem::path& folder, uint64_t step,
                     std::span<const sharded_variable> sharded) {
  context_check::blocking("save_checkpoint", strategy);
  const auto& layout = strategy.layout();
  if (!layout.should_checkpoint && !layout.group) return;
  auto taken = take_snapshot(strategy, step, sharded);
  if (!layout.should_checkpoint) return; // but others needed what this process knows
  auto directory = value_or_throw(checkpoint_directory::open(folder));
  auto content = to_content(taken);
  value_or_throw(directory.write(step, content.tensors, content.metadata));
}

void restore_snapshot(strategy& strategy, const job_snapshot& from,
                      std::span<const sharded_variable> sharded) {
  const saved_variables saved{from};
  for (const auto& variable : strategy.variables())
    if (!is_shard(sharded, variable)) static_cast<void>(saved.of(variable.name()));
  for (const auto& table : sharded)
    static_cast<void>(saved.of(table));
  for (const auto& variable : strategy.variables())
    if (!is_shard(sharded, variable))
      restore_to(strategy.world(), variable, saved.of(variable.name()));
  for (const auto& table : sharded)
    for (size_t i = 0; i < table.shards().size(); ++i)
      restore_to(strategy.world(), table.shards()[i],
                 rows_of_state(saved.of(table), table.offsets()[i], table.offsets()[i + 1]));
  strategy.extended().deferred().keep(from.step, without_owner(strategy, from, sharded));
}

std::optional<uint64_t> restore_checkpoint(strategy& strategy, const std::filesystem::path& folder,
                                           std::span<const sharded_variable> sharded) {
  context_check::blocking("restore_checkpoint", strategy);
  std::vector<std::string> passed_over;
  std::optional<found_checkpoint> found;
  try {
    found = find_checkpoint(folder, [&](const std::string& line) { passed_over.push_back(line); });
  } catch (const failure&) {
    try {
      check_same_step(strategy, std::nullopt); // the others must not wait for this process
    } catch (const failure&) {                 // says less than its own failure
    }
    throw;
  }
  auto step = found ? std::optional{found->snapshot.step} : std::nullopt;
  check_same_step(strategy, step);
  for (const auto& line : passed_over)
    std::fprintf(stderr, "warning: %s\n", line.c_str());
  if (found) restore_snapshot(strategy, found->snapshot, sharded);
  return step;
}

} // namespace troupe
