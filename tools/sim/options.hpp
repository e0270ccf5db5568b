// SPDX-License-Identifier: Apache-2.0
// The options of `troupe sim`, and the experiment that they describe.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/experiment.hpp"
#include "tools/options/command_options.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// The number of gradients that stands for "dynamic": chosen anew for every step.
inline constexpr uint64_t dynamic_aggregate = 0;

/// The values of --policy for jobs without parameter servers, and for replicas that train by
/// themselves between averages.
inline constexpr std::string_view all_reduce_name = "all_reduce";
inline constexpr std::string_view local_sgd_name = "local_sgd";

/// A simulation, as the user describes it.
struct sim_options {
  uint64_t replicas = 100;
  /// Nothing: all replicas; `dynamic_aggregate`: the best number for each step.
  std::optional<uint64_t> aggregate;
  std::optional<double> gain_power; ///< With `dynamic_aggregate`; nothing: 1.
  std::string policy = "tensorflow";
  std::string distinct = "off";
  std::optional<uint64_t> slack;             ///< Under ssp; nothing: 0.
  std::optional<uint64_t> local_steps;       ///< Under local_sgd; nothing: 1.
  std::optional<double> averaging_time;      ///< Under local_sgd. Units: seconds.
  std::optional<uint64_t> initial_tokens;    ///< Nothing: as the policy says.
  std::string collective;                    ///< Under all_reduce; empty: ring.
  std::optional<uint64_t> replicas_per_host; ///< With two_level alone, which needs it.
  uint64_t dead = 0;
  std::string compute = "chen2016-like";
  std::string train;     ///< Empty: nothing is learnt, and the options up to `curvature` are empty.
  std::string optimizer; ///< Empty: sgd.
  std::optional<double> learning_rate;    ///< Nothing: one that suits most runs.
  std::optional<uint64_t> batch;          ///< Examples in a gradient; nothing: 32.
  std::string data;                       ///< "own" or "same"; empty: the latter.
  std::string text;                       ///< For --train language; empty: that of `troupe train`.
  std::optional<uint64_t> evaluate_every; ///< Steps; nothing: a fiftieth of all.
  std::optional<double> target_loss;
  std::optional<double> curvature;       ///< As in `dynamic_backups`.
  std::string network;                   ///< A distribution; empty: no latency.
  std::string bandwidth;                 ///< Bytes a second; empty: without limit.
  std::string slow_link;                 ///< As "{3, 4}*10", under all_reduce; empty: none.
  std::optional<uint64_t> owners;        ///< Nodes for variables; nothing: 1.
  std::string model_bytes;               ///< Empty: 0.
  std::string gradient_bytes;            ///< Empty: as the model.
  std::string service;                   ///< A time or a distribution; empty: none.
  std::string faults;                    ///< As `parse_fault_rates` reads it.
  std::vector<fault> fault_list;         ///< Faults of a scenario file.
  std::optional<double> silence_timeout; ///< Seconds; nothing: as long as links have.
  std::optional<double> ask_again;       ///< Seconds; nothing: 1 where messages are lost, else 0.
  uint64_t steps = 1000;
  std::optional<uint64_t> warm_up; ///< Nothing: the first twentieth of the steps.
  uint64_t seed = 0;
  uint64_t runs = 1;
  std::optional<uint64_t> threads; ///< Nothing: as many as there are cores.
  std::string engine;              ///< "actors" or "direct"; empty: the latter where it can.
};

/// The largest value of an option that need not be a whole number.
inline constexpr double real_max = 1e9;

/// Adds the options, all of which can be swept and stand in files.
/// @param options Gets the values; must outlive `all`.
void add_options(command_options& all, sim_options& options);

/// Name and value of each option that has a value, as the user would spell them, in the order of
/// `--help`.
[[nodiscard]] std::vector<std::pair<std::string, std::string>>
option_texts(const sim_options& options);

/// The value of one option as the user would spell it; empty if it has none.
[[nodiscard]] std::string value_text(std::string_view key, const sim_options& options);

/// Refuses options for which no row of a report has a use: a sweep over policies may have options
/// that only one of them knows. @param rows At least one.
/// Errors: invalid_argument, naming the option and how to mend it.
[[nodiscard]] expected<void> check_uses(std::span<const sim_options> rows);

/// The experiment that the options describe together.
/// Errors: invalid_argument, naming the option and how to mend it.
[[nodiscard]] expected<experiment> experiment_of(const sim_options& options);

} // namespace troupe
