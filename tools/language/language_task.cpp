// SPDX-License-Identifier: Apache-2.0
// Divides a text among replicas, and computes losses and gradients of their parts.
#include "tools/language/language_task.hpp"

#include "messages/errors/failure.hpp"

#include <fmt/format.h>
#include <string_view>

namespace troupe {

namespace {

constexpr size_t part_bytes_min = 40;
constexpr size_t held_out_share = 10; // one byte of so many

/// The text of one replica, or of all. Replicas draw from the bytes before `held_out`.
struct part {
  std::string_view text;
  size_t held_out = 0;

  [[nodiscard]] std::string_view training() const { return text.substr(0, held_out); }
};

std::vector<part> parts_of(const language_options& options) {
  std::string_view whole = *options.text;
  auto count = options.own_data ? options.replicas : 1;
  auto size = whole.size() / count;
  std::vector<part> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back({whole.substr(i * size, size), size - size / held_out_share});
  return parts;
}

} // namespace

expected<learning_task> language_task(const language_options& options) {
  auto parts = parts_of(options);
  if (parts.front().text.size() < part_bytes_min)
    return fail(errc::invalid_argument,
                fmt::format("the text has {} bytes, which makes {} for each of {} parts; {} are "
                            "needed: take a longer one",
                            options.text->size(), parts.front().text.size(), parts.size(),
                            part_bytes_min));
  learning_task task;
  for (auto& [name, value] : initial_values(variables_of(options.model), options.seed))
    task.variables.emplace_back(name, value);
  task.differentiate
    = [options, parts](std::span<const tensor> values, uint32_t replica, uint64_t batch) {
        const auto& mine = parts[replica % parts.size()];
        random_key draws{options.seed, "batch", replica, batch};
        random_key dropout{options.seed, "dropout", replica, batch};
        auto drawn = draw_batch(options.model, mine.training(), options.batch, draws);
        auto computed = value_or_throw(differentiate(options.model, values, drawn, dropout));
        return computed_batch{computed.loss, std::move(computed.gradients), options.batch};
      };
  task.evaluate
    = [options, parts](std::span<const tensor> values, std::span<const uint32_t> replicas) {
        double sum = 0;
        auto count = std::min(replicas.size(), parts.size());
        for (size_t i = 0; i < count; ++i) {
          const auto& [text, held_out] = parts[replicas[i] % parts.size()];
          sum += value_or_throw(bits_per_byte(options.model, values, text, held_out));
        }
        return sum / static_cast<double>(count);
      };
  return task;
}

} // namespace troupe
