// SPDX-License-Identifier: Apache-2.0
// Names and units of a run's losses and evaluations, in files, plots and lines.
#pragma once

#include <numbers>
#include <string_view>

namespace troupe {

/// A measure of a model on held-out data; lower values are better.
struct quality_measure {
  std::string_view column;     ///< In evaluations.csv and in event files: "bits_per_byte".
  std::string_view held_out;   ///< The data that are evaluated: "held-out text".
  std::string_view unit;       ///< Stands behind a value: "bits/byte".
  std::string_view words;      ///< The unit in full: "bits per byte".
  std::string_view loss_unit;  ///< Unit of training losses, as shown: "bits/byte".
  std::string_view plot_title; ///< Title of loss.svg.
  std::string_view plot_axis;  ///< Label of its value axis.
  double plot_top = 1;         ///< Least top of that axis.
  double nats = 1;             ///< Nats of a trainer's loss in one `loss_unit`.
};

namespace quality_measures {

/// The measure of a trainer that names no other.
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
