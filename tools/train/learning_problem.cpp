// SPDX-License-Identifier: Apache-2.0
// Makes learning problems of language models with texts, and of image models with images.
#include "tools/train/learning_problem.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "tools/images/image_model.hpp"
#include "tools/images/image_set.hpp"
#include "tools/language/language_model.hpp"
#include "tools/language/language_step.hpp"
#include "tools/system/file_content.hpp"
#include "tools/train/text_corpus.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/ranges.h>
#include <memory>

namespace troupe {

namespace {

std::string fingerprint_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span{text});
  return fmt::format("{} bytes, crc32c {:08x}", bytes.size(), cpu::crc32c(bytes));
}

expected<comparison> compare_with_compressors(const text_corpus& corpus) {
  return compress(corpus).map([](const compression_baselines& measured) {
    constexpr auto mebibytes = baseline_bytes_max >> 20;
    comparison result;
    if (!measured.gzip || !measured.xz) {
      result.lines = fmt::format("  gzip and xz are not measured on more than {} MiB\n", mebibytes);
      return result;
    }
    result.lines = fmt::format("  gzip -9      {:.3f}\n"
                               "  xz           {:.3f}\n",
                               *measured.gzip, *measured.xz);
    result.baselines = {{"gzip -9", *measured.gzip}, {"xz", *measured.xz}};
    if (measured.gzip_after_training && measured.xz_after_training)
      result.lines
        += fmt::format("  and if they may read the training text first: gzip {:.3f}, xz {:.3f}\n",
                       *measured.gzip_after_training, *measured.xz_after_training);
    else
      result.lines += fmt::format("  they do not read the training text first: the whole text is "
                                  "over {} MiB\n",
                                  mebibytes);
    if (measured.gzip_after_training)
      result.baselines.push_back({"gzip -9", *measured.gzip_after_training, true});
    return result;
  });
}

learning_problem problem_of(const train_options& options,
                            const std::shared_ptr<const text_corpus>& corpus) {
  const auto model = options.model;
  const auto training = corpus->training();
  auto compute = language_step({model, options.batch, training});
  return {
    .model = language_model_of(options),
    .data = {.kind = "text",
             .note = "troupe.text",
             .option = "--text",
             .place = options.text,
             .sizes = fmt::format("{} bytes to train on, {} held out", training.size(),
                                  corpus->held_out().size()),
             .fingerprint = fingerprint_of(corpus->whole()),
             .split = fmt::format("{} bytes", training.size())},
    .measure = quality_measures::bits_per_byte,
    .pass_guesses = training.size(),
    .example_guesses = static_cast<uint64_t>(guesses_per_example(model)),
    .work
    = [corpus, compute = std::move(compute)](
        compute_stream& stream, std::span<const tensor> variables, const batch_draws& draws,
        const differentiation& settings) { return compute(stream, variables, draws, settings); },
    .evaluate =
      [model, corpus](std::span<const tensor> variables) {
        return bits_per_byte(model, variables, corpus->whole(), corpus->training().size());
      },
    .compare = [corpus] { return compare_with_compressors(*corpus); }};
}

// The error rate of naming the most frequent class for each held-out image.
comparison compare_with_one_class(const labelled_images& held_out) {
  std::array<size_t, 256> counts{};
  for (auto label : held_out.labels)
    ++counts[label];
  const auto most = std::ranges::max_element(counts);
  const auto error = 1 - static_cast<double>(*most) / static_cast<double>(held_out.size());
  return {fmt::format("  always {:<6}{:.3f}\n", most - counts.begin(), error),
          {{"one class", error}}};
}

learning_problem problem_of(const train_options& options, const image_model& model,
                            const std::shared_ptr<const image_set>& images) {
  return {.model = {model.describe(), variables_of(model)},
          .data = {.kind = "image set",
                   .note = "troupe.images",
                   .option = "--data",
                   .place = options.data,
                   .sizes = fmt::format("{} images to train on, {} held out",
                                        images->training.size(), images->held_out.size()),
                   .fingerprint = fingerprint(*images)},
          .measure = quality_measures::error_rate,
          .pass_guesses = images->training.size(),
          .work =
            [model, images,
             batch = options.batch](compute_stream& stream, std::span<const tensor> variables,
                                    const batch_draws& draws, const differentiation& settings) {
              auto drawn = draw_images(images->training, batch, draws.examples);
              return differentiate_on(stream, model, variables, drawn, settings);
            },
          .evaluate =
            [model, images](std::span<const tensor> variables) {
              return error_rate(model, variables, images->held_out);
            },
          .compare = [images]() -> expected<comparison> {
            return compare_with_one_class(images->held_out);
          }};
}

expected<learning_problem> load_image_problem(const train_options& options,
                                              const option_origins& origins) {
  auto images = load_images(options.data);
  if (!images)
    return fail(images.error().code,
                spelling(origins, "data") + ": " + unreadable_reason(images.error(), options.data));
  const image_model model{options.images, static_cast<int64_t>(images->training.height),
                          static_cast<int64_t>(images->training.width),
                          static_cast<int64_t>(images->classes)};
  if (auto valid = validate(model); !valid)
    return fail(valid.error().code,
                fmt::format("--filters {} --dense {}: {}", fmt::join(options.images.filters, ","),
                            options.images.dense, valid.error().message));
  return problem_of(options, model, std::make_shared<const image_set>(std::move(*images)));
}

} // namespace

uint64_t step_count(const train_options& options, const learning_problem& problem) {
  if (options.steps) return *options.steps;
  auto guesses
    = static_cast<double>(options.epochs.value_or(1)) * static_cast<double>(problem.pass_guesses);
  auto per_step = static_cast<double>(options.batch) * static_cast<double>(options.aggregate)
                  * static_cast<double>(problem.example_guesses);
  return static_cast<uint64_t>(std::ceil(guesses / per_step));
}

learned_model language_model_of(const train_options& options) {
  return {describe(options.model), variables_of(options.model)};
}

expected<learning_problem> load_problem(const train_options& options,
                                        const option_origins& origins) {
  if (options.learn == learned_kind::images) return load_image_problem(options, origins);
  return text_corpus::load({.path = options.text,
                            .held_out = options.held_out,
                            .part_bytes_min = static_cast<uint64_t>(options.model.context) + 1,
                            .option = spelling(origins, "text")})
    .map([&](text_corpus corpus) {
      return problem_of(options, std::make_shared<const text_corpus>(std::move(corpus)));
    });
}

} // namespace troupe
