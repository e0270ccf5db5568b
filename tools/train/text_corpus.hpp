// SPDX-License-Identifier: Apache-2.0
// The text that a model learns, in two parts: one to train on, and one to evaluate on.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The file to read, and how to split it.
struct corpus_options {
  std::string path;
  double held_out = 0.1;       ///< Share at the end that is kept for evaluation; above 0, below 1.
  uint64_t part_bytes_min = 2; ///< Fewest bytes of each part.
  std::string option = "--text"; ///< The name of the path in errors.
};

/// A text, read once and held in memory. A copy copies the text.
class text_corpus {
public:
  /// Longer files are refused: they would not fit beside the model in the memory of an ordinary
  /// machine.
  static constexpr uint64_t file_bytes_max = uint64_t{1} << 30;

  /// Reads and splits the file.
  /// Errors: `not_found`, `invalid_argument` (a folder, empty, too short to split),
  /// `limit_exceeded`, `resource`; the line names the option and says what to pass.
  [[nodiscard]] static expected<text_corpus> load(const corpus_options& options);

  /// The beginning, to train on.
  [[nodiscard]] std::string_view training() const {
    return std::string_view{text_}.substr(0, training_bytes_);
  }

  /// The end, to evaluate.
  [[nodiscard]] std::string_view held_out() const {
    return std::string_view{text_}.substr(training_bytes_);
  }

  /// Both together.
  [[nodiscard]] std::string_view whole() const { return text_; }

private:
  text_corpus(std::string text, uint64_t training_bytes)
    : text_(std::move(text)), training_bytes_(training_bytes) {}

  std::string text_;
  uint64_t training_bytes_ = 0;
};

/// Compressed sizes of the held-out text. Units: bits per byte of that text.
struct compression_baselines {
  /// `gzip -9` and `xz` of the held-out text alone. Nothing if that is over `baseline_bytes_max`.
  std::optional<double> gzip;
  std::optional<double> xz;
  /// The size that the held-out text adds to the compressed training text. This comparison is fair
  /// to a compressor, which then has seen what the model has seen. Nothing for a text over
  /// `baseline_bytes_max`.
  std::optional<double> gzip_after_training;
  std::optional<double> xz_after_training;
};

/// Larger texts are not compressed: the other processes of a job wait meanwhile.
inline constexpr uint64_t baseline_bytes_max = uint64_t{4} << 20;

/// Compresses the held-out text, alone and after the training text, in this process.
/// Cost: see `gzip_bytes` and `xz_bytes`; 30 ms for the default text, 5 s at most.
/// Errors: `resource`.
[[nodiscard]] expected<compression_baselines> compress(const text_corpus& corpus);

} // namespace troupe
