// SPDX-License-Identifier: Apache-2.0
// What a run's losses and evaluations are called, in files, plots and lines.
#pragma once

#include <numbers>
#include <string_view>

namespace troupe {

/// How well a model does on what it was not trained on: lower is better.
struct quality_measure {
  std::string_view column;     ///< In evaluations.csv and in event files: "bits_per_byte".
  std::string_view held_out;   ///< What is evaluated: "held-out text".
  std::string_view unit;       ///< Behind a value: "bits/byte".
  std::string_view words;      ///< The unit in full: "bits per byte".
  std::string_view loss_unit;  ///< Of losses in training, as they are shown: "bits/byte".
  std::string_view plot_title; ///< Of loss.svg.
  std::string_view plot_axis;  ///< Of its values.
  double plot_top = 1;         ///< Its axis reaches at least so far.
  double nats = 1;             ///< Of a trainer's loss that are one of `loss_unit`.
};

namespace quality_measures {

/// Of a trainer that says no more of its losses.
inline constexpr quality_measure loss{.column = "loss",
                                      .held_out = "held-out data",
                                      .unit = "",
                                      .words = "loss",
                                      .loss_unit = "",
                                      .plot_title = "Loss",
                                      .plot_axis = "loss, lower is better",
                                      .plot_top = 0};

inline constexpr quality_measure bits_per_byte{.column = "bits_per_byte",
                                               .held_out = "held-out text",
                                               .unit = "bits/byte",
                                               .words = "bits per byte",
                                               .loss_unit = "bits/byte",
                                               .plot_title = "Bits that the model needs for a byte",
                                               .plot_axis = "bits per byte, lower is better",
                                               .plot_top = 8,
                                               .nats = std::numbers::ln2};

inline constexpr quality_measure error_rate{
  .column = "error_rate",
  .held_out = "held-out images",
  .unit = "wrong",
  .words = "share that is classified wrongly",
  .loss_unit = "bits/image",
  .plot_title = "Bits that the model needs for a label, and its errors",
  .plot_axis = "bits; share of errors, lower is better",
  .plot_top = 1,
  .nats = std::numbers::ln2};

} // namespace quality_measures

} // namespace troupe
