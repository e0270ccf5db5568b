// SPDX-License-Identifier: Apache-2.0
// The table of presets.
#include "simulation/distributions/distribution_preset.hpp"

#include <algorithm>

namespace troupe {

namespace {

// The ec2 presets are relative to the median. Workloads are the local computing times and sizes of
// DL2's table, with the variation of a dedicated cluster.
constexpr distribution_preset presets[] = {
  {"chen2016-like", "mixture(0.986: lognormal(1.5, 0.08), 0.014: pareto(2, 2.35))",
   "fitted to what is known of 100 machines in Chen et al., arXiv 1604.00981"},
  {"osdi2016-inception", "mixture(0.92: lognormal(1.777, 0.035), 0.08: pareto(1.925, 10.58))",
   "fitted under cancel to the medians known of 50 workers in TensorFlow, OSDI 2016, figure 8"},
  {"hop", "two_point(1/16, 6)", "the stress of 16 replicas in Hop, ASPLOS 2019"},
  {"rare-stall", "two_point(0.01, 5)", "one draw in a hundred takes five times as long"},
  {"bytedance-last-stage", "shifted_gamma(4.849, 4.51, 0.278)",
   "fitted to a stage of 32 ranks in ByteDance's StragglerAnalysis, OSDI 2025"},
  {"jitter", "uniform(0.95, 1.05)", "evenly spread by a twentieth"},
  {"dbw-light", "0.8 + exponential(0.2)",
   "1 - alpha + alpha exponential times with alpha = 0.2, as in DBW, 2020"},
  {"dbw-heavy", "exponential(1)", "exponential times: alpha = 1, as in DBW, 2020"},
  {"task-tail", "pareto(1, 1.26)", "the tail of tasks at Facebook and Bing; its mean is 4.8"},
  {"bytedance-slow-worker", "lognormal(1, 0.05) * slow(1/16, 2)",
   "one worker of 16 at half speed, as in a trace of ByteDance's StragglerAnalysis"},
  {"common-shock", "lognormal(1, 0.08) * common(two_point(0.02, 3))",
   "one step in fifty is slow for all at once; an example"},
  {"planned-gc", "1 + common(pause(50, 6))",
   "all collect garbage at the same step, every 50; an example"},
  {"fail-slow", "lognormal(1, 0.05) * on_off(0.0005, 0.005, 1.34)",
   "episodes with the mean slowdown of Greyhound, ATC 2025; their lengths are a guess"},
  {"ec2-m3-large", "lognormal(1, 0.08)", "50 instances, batch 1024: DistributedMNIST, 2017"},
  {"ec2-m3-medium", "mixture(0.5: uniform(0.87, 0.98), 0.5: uniform(1.15, 1.3))",
   "as ec2-m3-large: every instance is of two speeds"},
  {"ec2-t2-medium", "lognormal(1, 0.08) * slow(3/50, 2.4)",
   "as ec2-m3-large: three of 50 are out of burst credits"},
  {"ec2-t2-small", "lognormal(1, 0.08) * slow(9/50, 2)", "as ec2-t2-medium: nine of 50"},
  {"resnet-50", "lognormal(0.449, 0.08)", "local computing time in the table of DL2", 102.2e6},
  {"vgg-16", "lognormal(0.535, 0.08)", "computing time in the table of DL2", 553.4e6},
  {"resnext-110", "lognormal(0.226, 0.08)", "computing time in the table of DL2", 6.92e6},
  {"inception-bn", "lognormal(0.815, 0.08)", "computing time in the table of DL2", 42.1e6},
  {"seq2seq", "lognormal(0.075, 0.08)", "computing time in the table of DL2", 36.5e6},
  {"cnn-text", "lognormal(0.585, 0.08)", "computing time in the table of DL2", 24e6},
  {"dssm", "lognormal(0.567, 0.08)", "computing time in the table of DL2", 6e6},
  {"wlm", "lognormal(0.154, 0.08)", "computing time in the table of DL2", 19.2e6},
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
