// SPDX-License-Identifier: Apache-2.0
// The learning problem of a job: a model, its data, and its evaluation.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/model/model_variable.hpp"
#include "tools/model/training_step.hpp"
#include "tools/options/option_origin.hpp"
#include "tools/run/plots.hpp"
#include "tools/run/quality_measure.hpp"
#include "tools/train/train_options.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The description of a model for people and checkpoints, and its variables.
struct learned_model {
  std::string description; ///< "perceptron, context 5, ...": all that decides its variables.
  std::vector<model_variable> variables;
};

/// The data that a model is trained on and judged by.
struct learned_data {
  std::string kind;        ///< "text", "image set"
  std::string note;        ///< The name of the fingerprint in checkpoints.
  std::string option;      ///< The option that names the data: "--text".
  std::string place;       ///< The option's value.
  std::string sizes;       ///< "31634 bytes to train on, 3514 held out"
  std::string fingerprint; ///< Differs from that of other data.
  /// The part of a text that --held-out leaves to train on: "31634 bytes". Empty: no option chooses
  /// the part.
  std::string split;
};

/// The results of simple methods on the same data, to compare a model with.
struct comparison {
  std::string lines; ///< For people, below the model's own; may be empty.
  std::vector<plot_baseline> baselines;
};

/// A job, its checkpoints, its files and its evaluator work alike for every problem; this struct
/// has the parts that differ. A value that holds its data; copies share them.
struct learning_problem {
  learned_model model;
  learned_data data;
  quality_measure measure;
  uint64_t pass_guesses = 1;    ///< Guesses in one pass over the training data.
  uint64_t example_guesses = 1; ///< Guesses in one example of a batch.
  batch_work work;              ///< The work of a replica in a step.
  /// How well a model does on the held-out data, in the units of `measure`.
  /// Errors: invalid_argument, if the variables are not of this model.
  std::function<expected<double>(std::span<const tensor> variables)> evaluate;
  /// Measures simple methods on the same data; its lines say where that would take too long.
  /// Cost: as `compress`. Errors: `resource`.
  std::function<expected<comparison>()> compare;
};

/// The number of updates that the options ask for. An epoch has as many accepted guesses as one
/// pass over the training data.
[[nodiscard]] uint64_t step_count(const train_options& options, const learning_problem& problem);

/// The language model that the options describe.
/// @pre `validate(options.model)` has a value.
[[nodiscard]] learned_model language_model_of(const train_options& options);

/// Loads the data that the options name.
/// Errors: as `text_corpus::load` and `load_images`; invalid_argument also for images that are too
/// small for the model. The line names the option, as its origin spells it.
[[nodiscard]] expected<learning_problem> load_problem(const train_options& options,
                                                      const option_origins& origins);

} // namespace troupe
