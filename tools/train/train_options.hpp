// SPDX-License-Identifier: Apache-2.0
// The options of `troupe train` with their defaults, as a plain struct and as a command line's.
#pragma once

#include "kernels/updates/update_rules.hpp"
#include "tools/images/image_model.hpp"
#include "tools/language/language_model.hpp"
#include "tools/model/training_defaults.hpp"
#include "tools/options/job_options.hpp"
#include "tools/options/option_origin.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The defaults that are a choice rather than a matter of course; with them a run takes one to
/// three minutes on two cores.
namespace train_defaults {
inline constexpr uint64_t steps = 25000;
inline constexpr uint64_t image_steps = 1000; ///< With images.
inline constexpr uint64_t batch = 64;
inline constexpr std::string_view optimizer = rules::adam::name;
} // namespace train_defaults

/// The subject of training: a language, or images.
enum class learned_kind : uint8_t { language, images };

[[nodiscard]] constexpr std::string_view to_string(learned_kind learned) {
  return learned == learned_kind::language ? "language" : "images";
}

/// How the learning rate changes over a run: not at all, in a straight line towards 0, which the
/// step after the last would have, or so in half a wave.
enum class decay_kind : uint8_t { none, linear, cosine };

/// A setting of the optimizer other than its learning rate, by name.
struct optimizer_setting {
  std::string name;
  double value = 0;

  bool operator==(const optimizer_setting&) const = default;
};

/// The options of `troupe train`. After `parse_train_options` every field has its final value.
struct train_options : job_options {
  learned_kind learn = learned_kind::language;
  std::string data; ///< Folder of the images.
  std::string text{train_defaults::text};
  double held_out = 0.1; ///< Share of the text, at its end, that is kept for evaluation.

  /// Passes over the training data. Either `steps` or this has a value.
  std::optional<uint64_t> epochs;
  uint64_t batch = train_defaults::batch;                 ///< Examples per replica and gradient.
  std::string_view optimizer = train_defaults::optimizer; ///< One of `choice_names<update_rule>()`.
  std::vector<optimizer_setting> optimizer_settings;
  std::optional<double> learning_rate;
  decay_kind learning_rate_decay = decay_kind::linear;
  uint64_t warm_up = 0;        ///< Steps in which the learning rate rises from 0.
  double clip_global_norm = 0; ///< Norm limit of a mean gradient, all variables together; 0: none.
  /// Precision of the matrix products of a step; evaluations are in full precision.
  product_precision precision = product_precision::full;

  language_model_config model;
  image_model_config images;

  bool operator==(const train_options&) const = default;
};

/// The learning rate that suits most runs with these options. Transformers and images take a tenth
/// of the perceptron's.
[[nodiscard]] constexpr double default_learning_rate(const train_options& options) {
  const auto is_deep
    = options.learn == learned_kind::images || options.model.kind == model_kind::transformer;
  return default_learning_rate(options.optimizer) / (is_deep ? 10 : 1);
}

/// Describes all options, in groups that files may hold. @param options Gets the values that are
/// stored; must outlive `all`.
void add_options(command_options& all, train_options& options);

/// The options that have no meaning for this model: those of the other one.
[[nodiscard]] std::span<const std::string_view> without_meaning(model_kind model);

/// The options that have no meaning where this is learnt: those of the other kind.
[[nodiscard]] std::span<const std::string_view> without_meaning(learned_kind learned);

/// Writes all options that have a meaning for the kind, the strategy and the model as a TOML file
/// that can be read back. A remark beside each says where it came from. Options without a value are
/// comments, and those of `config_comments`.
[[nodiscard]] std::string config_text(const train_options& options, const option_origins& origins,
                                      bool with_run_dir = true);

} // namespace troupe
