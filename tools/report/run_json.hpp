// SPDX-License-Identifier: Apache-2.0
// Writes a run as the JSON that its page reads, and judges its replicas.
#pragma once

#include "tools/report/run_view.hpp"
#include "tools/report/what_if.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The heading of a run's page.
struct run_heading {
  std::string name;     ///< Name of its folder.
  std::string written;  ///< When the page was made: "2026-11-25 20:13 UTC".
  std::string state;    ///< In words: "finished", "not finished: it was killed, or goes on".
  bool is_live = false; ///< Whether a server has news of the run.
  std::string setup;    ///< "4 replicas, 3 gradients a step, tensorflow"
  std::optional<uint64_t> step_count; ///< Steps that the options ask for.
  std::string loss_unit;              ///< "bits/byte"; empty: the trainer's own.
  double loss_scale = 1;              ///< Factor from recorded losses to that unit.
  std::string measure;                ///< Unit of the evaluations, in words: "bits per byte".
};

/// Whether a replica keeps up with the others.
enum class replica_health : uint8_t { well, slow, silent };

/// Whether a replica keeps up, and why not.
struct health_of_replica {
  replica_health health = replica_health::well;
  std::string words; ///< "takes 5.0 times as long as the others"
};

/// A replica is slow if it takes at least so many times as long as the others, or if steps use less
/// than half as many of its gradients as of the usual replica's.
constexpr double slow_from = 1.3;

/// A replica that has given no gradient is silent once ten were to be expected of it.
/// @pre The replica is one of the view's totals.
[[nodiscard]] health_of_replica health_of(const run_view& view, uint32_t replica);

/// Replicas that are slow, the slowest first.
[[nodiscard]] std::vector<uint32_t> slow_replicas(const run_view& view);

/// Everything that the page shows, as one JSON object. It has at most `run_json_bytes_max` bytes,
/// however long the run and however many its replicas, and no letters that would end a script.
/// @param answers Null if there are none yet.
[[nodiscard]] std::string run_json(const run_view& view, const run_heading& heading,
                                   const what_if_table* answers);

/// The largest size of a result of `run_json`.
constexpr size_t run_json_bytes_max = size_t{600} << 10;

} // namespace troupe
