// SPDX-License-Identifier: Apache-2.0
// Rewrites the stages of a dataset, with a shard among them.
#include "strategies/data/auto_shard.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/rebatch.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <span>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::pair<auto_shard_policy, std::string_view>, 5> policy_names{{
  {auto_shard_policy::off, "OFF"},
  {auto_shard_policy::automatic, "AUTO"},
  {auto_shard_policy::file, "FILE"},
  {auto_shard_policy::data, "DATA"},
  {auto_shard_policy::hint, "HINT"},
}};

// One part of several.
struct part {
  uint64_t count = 1;
  uint64_t index = 0;
};

// The same stage after what `rewrite` makes of its inputs.
template <class Rewrite>
expected<dataset> with_inputs(const dataset& all, const Rewrite& rewrite) {
  std::vector<dataset> inputs;
  for (const auto& input : all.made_by().inputs) {
    auto rewritten = rewrite(input);
    if (!rewritten) return rewritten;
    inputs.push_back(std::move(*rewritten));
  }
  return all.made_by().again(inputs);
}

// The rows of each file, in the order of the files.
std::vector<uint64_t> file_sizes(const dataset& all) {
  const auto& stage = all.made_by();
  if (stage.kind == stage_kind::file) return {all.size()};
  std::vector<uint64_t> sizes;
  for (const auto& input : stage.inputs) {
    auto inner = stage.kind == stage_kind::files ? std::vector{input.size()} : file_sizes(input);
    sizes.insert(sizes.end(), inner.begin(), inner.end());
  }
  return sizes;
}

// Whether the sides of a zip, each divided by its files, have the same rows in each part.
bool are_cut_alike(std::span<const dataset> sides) {
  auto first = file_sizes(sides.front());
  return std::ranges::all_of(sides, [&](const auto& side) { return file_sizes(side) == first; });
}

expected<dataset> shard_files(const dataset& all, part mine) {
  const auto& stage = all.made_by();
  switch (stage.kind) {
  case stage_kind::file:
    return mine.index == 0 ? all : all.take(0);
  case stage_kind::files: {
    std::vector<dataset> files;
    for (auto i = mine.index; i < stage.inputs.size(); i += mine.count)
      files.push_back(stage.inputs[i]);
    return stage.again(files);
  }
  case stage_kind::source:
    return fail(errc::not_found, "auto_shard: the dataset reads no files that could be divided: "
                                 "take the policy DATA");
  case stage_kind::shard:
  case stage_kind::shard_hint:
    return fail(errc::not_found, "auto_shard: a shard stands between the files and the end: take "
                                 "the policy DATA");
  default:
    break;
  }
  auto parts = with_inputs(all, [mine](const dataset& input) { return shard_files(input, mine); });
  if (parts && stage.kind == stage_kind::zip && !are_cut_alike(stage.inputs))
    return fail(errc::not_found, "auto_shard: the sides of a zip lie in files of different sizes, "
                                 "so that other rows would meet: take the policy DATA");
  return parts;
}

// Every batch must give as many elements as there are replicas, or they would take turns.
dataset in_fixed_pieces(const dataset& all, uint64_t replicas) {
  const auto& stage = all.made_by();
  if (stage.kind != stage_kind::rebatch) return all;
  return legacy_rebatch(stage.inputs.front(), replicas);
}

dataset shard_elements(const dataset& all, part mine, uint64_t replicas) {
  const auto& stage = all.made_by();
  if (stage.kind == stage_kind::prefetch)
    return stage.again({shard_elements(stage.inputs.front(), mine, replicas)});
  const auto pieces = in_fixed_pieces(all, replicas);
  if (pieces.size() != 0 && pieces.size() < mine.count)
    throw_failure(errc::invalid_argument,
                  "auto_shard: {} elements are too few for {} pipelines: each needs one",
                  pieces.size(), mine.count);
  return pieces.shard(mine.count, mine.index);
}

dataset shard_where_told(const dataset& all, part mine) {
  const auto& stage = all.made_by();
  if (stage.inputs.empty()) return all;
  auto rewritten = value_or_throw(with_inputs(all, [mine](const dataset& input) {
    return expected<dataset>{shard_where_told(input, mine)};
  }));
  if (stage.kind != stage_kind::shard_hint) return rewritten;
  return rewritten.made_by().inputs.front().shard(mine.count, mine.index);
}

} // namespace

std::string_view to_string(auto_shard_policy policy) {
  const auto* found
    = std::ranges::find(policy_names, policy, &decltype(policy_names)::value_type::first);
  return found == policy_names.end() ? "unknown" : found->second;
}

expected<auto_shard_policy> auto_shard_policy_of(std::string_view name) {
  std::string upper{name};
  for (auto& letter : upper)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (const auto& [policy, policy_name] : policy_names)
    if (upper == policy_name) return policy;
  return fail(
    errc::invalid_argument,
    fmt::format("auto_shard: there is no policy '{}': it is OFF, AUTO, FILE, DATA or HINT", name));
}

auto_shard_policy chosen_policy(const dataset& all, auto_shard_policy policy, uint64_t pipelines,
                                std::string* by_elements) {
  if (policy != auto_shard_policy::automatic || pipelines <= 1) return policy;
  auto by_files = shard_files(all, {pipelines, 0}); // the others fail alike
  if (by_files || by_files.error().code != errc::not_found) return auto_shard_policy::file;
  if (by_elements) *by_elements = by_files.error().message;
  return auto_shard_policy::data;
}

dataset auto_shard(const dataset& all, auto_shard_policy policy, uint64_t pipelines,
                   uint64_t pipeline, uint64_t replicas) {
  if (pipeline >= pipelines)
    throw_failure(errc::invalid_argument,
                  "auto_shard: there is no pipeline {} of {}, they count from 0", pipeline,
                  pipelines);
  const part mine{pipelines, pipeline};
  if (policy == auto_shard_policy::hint) return shard_where_told(all, mine);
  if (pipelines == 1 || policy == auto_shard_policy::off) return all;
  if (chosen_policy(all, policy, pipelines) == auto_shard_policy::data)
    return shard_elements(all, mine, replicas);
  return value_or_throw(shard_files(all, mine));
}

} // namespace troupe
