// SPDX-License-Identifier: Apache-2.0
// The table of presets.
#include "simulation/distribution_preset.hpp"

#include <algorithm>

namespace troupe {

namespace {

// The ec2 presets are relative to the median. Workloads are the local computing times of DL2's
// table, with the variation of a dedicated cluster.
constexpr distribution_preset presets[] = {
  {"chen2016-like", "mixture(0.986: lognormal(1.5, 0.08), 0.014: pareto(2, 2.35))",
   "fitted to what is known of 100 machines in Chen et al., arXiv 1604.00981"},
  {"osdi2016-inception", "mixture(0.92: lognormal(1.777, 0.035), 0.08: pareto(1.925, 10.58))",
   "fitted under cancel to the medians known of 50 workers in TensorFlow, OSDI 2016, figure 8"},
  {"hop", "two_point(1/16, 6)", "the stress of 16 replicas in Hop, ASPLOS 2019"},
  {"rare-stall", "two_point(0.01, 5)", "one draw in a hundred takes five times as long"},
  {"bytedance-last-stage", "shifted_gamma(4.849, 4.51, 0.278)",
   "fitted to a stage of 32 ranks in ByteDance's StragglerAnalysis, OSDI 2025"},
  {"fail-slow", "lognormal(1, 0.05) * on_off(0.0005, 0.005, 1.34)",
   "episodes with the mean slowdown of Greyhound, ATC 2025; their lengths are a guess"},
  {"ec2-m3-large", "lognormal(1, 0.08)", "50 instances, batch 1024: DistributedMNIST, 2017"},
  {"ec2-m3-medium", "mixture(0.5: uniform(0.87, 0.98), 0.5: uniform(1.15, 1.3))",
   "likewise: every instance is of two speeds"},
  {"ec2-t2-medium", "lognormal(1, 0.08) * slow(3/50, 2.4)",
   "likewise: three of 50 are out of burst credits"},
  {"ec2-t2-small", "lognormal(1, 0.08) * slow(9/50, 2)", "likewise: nine of 50"},
  {"resnet-50", "lognormal(0.449, 0.08)", "local computing time in the table of DL2"},
  {"vgg-16", "lognormal(0.535, 0.08)", "likewise"},
  {"resnext-110", "lognormal(0.226, 0.08)", "likewise"},
  {"inception-bn", "lognormal(0.815, 0.08)", "likewise"},
  {"seq2seq", "lognormal(0.075, 0.08)", "likewise"},
  {"cnn-text", "lognormal(0.585, 0.08)", "likewise"},
  {"dssm", "lognormal(0.567, 0.08)", "likewise"},
  {"wlm", "lognormal(0.154, 0.08)", "likewise"},
};

} // namespace

std::span<const distribution_preset> distribution_presets() {
  return presets;
}

const distribution_preset* find_distribution_preset(std::string_view name) {
  const auto* found = std::ranges::find(presets, name, &distribution_preset::name);
  return found == std::end(presets) ? nullptr : found;
}

} // namespace troupe
