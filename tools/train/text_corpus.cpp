// SPDX-License-Identifier: Apache-2.0
// Reads and splits a text, and measures how well compressors do on it.
#include "tools/train/text_corpus.hpp"

#include "tools/system/file_content.hpp"
#include "tools/train/compressed_size.hpp"
#include "tools/train/train_options.hpp"

#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

tl::unexpected<error> unreadable(const corpus_options& options, const error& reason) {
  if (reason.code == errc::not_found && options.path == train_defaults::text
      && options.option == "--text") {
    return fail(reason.code, fmt::format("there is no text at {} (the default) on this machine: "
                                         "pass any file with --text FILE",
                                         options.path));
  }
  return fail(reason.code, options.option + ": " + unreadable_reason(reason, options.path));
}

double bits_per_byte(uint64_t compressed, uint64_t original) {
  return 8.0 * static_cast<double>(compressed) / static_cast<double>(original);
}

// Measures how a compressor does on the held-out text: alone, and after the training text.
expected<void> measure(const text_corpus& corpus, expected<uint64_t> (*size_of)(std::string_view),
                       std::optional<double>& alone, std::optional<double>& after_training) {
  if (corpus.held_out().size() > baseline_bytes_max) return {};
  const auto held_out = size_of(corpus.held_out());
  if (!held_out) return tl::unexpected(held_out.error());
  alone = bits_per_byte(*held_out, corpus.held_out().size());
  if (corpus.whole().size() > baseline_bytes_max) return {};
  const auto whole = size_of(corpus.whole());
  const auto training = size_of(corpus.training());
  if (!whole) return tl::unexpected(whole.error());
  if (!training) return tl::unexpected(training.error());
  const uint64_t added = *whole > *training ? *whole - *training : 0;
  after_training = bits_per_byte(added, corpus.held_out().size());
  return {};
}

} // namespace

expected<text_corpus> text_corpus::load(const corpus_options& options) {
  auto text = file_content(options.path, file_bytes_max);
  if (!text) return unreadable(options, text.error());
  if (text->empty())
    return fail(errc::invalid_argument,
                fmt::format("{}: {} is empty", options.option, options.path));
  const auto bytes = static_cast<double>(text->size());
  const auto held_out = static_cast<uint64_t>(std::floor(bytes * options.held_out));
  const uint64_t training = text->size() - held_out;
  if (std::min(training, held_out) < options.part_bytes_min) {
    return fail(errc::invalid_argument,
                fmt::format("{}: {} is too short: its {} bytes leave {} to train on and {} to "
                            "evaluate, and at least {} of each are needed; pass a longer text, or "
                            "change --held-out",
                            options.option, options.path, text->size(), training, held_out,
                            options.part_bytes_min));
  }
  return text_corpus{std::move(*text), training};
}

expected<compression_baselines> compress(const text_corpus& corpus) {
  compression_baselines result;
  auto done = measure(corpus, gzip_bytes, result.gzip, result.gzip_after_training);
  if (done) done = measure(corpus, xz_bytes, result.xz, result.xz_after_training);
  if (!done) return tl::unexpected(done.error());
  return result;
}

} // namespace troupe
