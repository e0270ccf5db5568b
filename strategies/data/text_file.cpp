// SPDX-License-Identifier: Apache-2.0
// Finds the lines of a file.
#include "strategies/data/text_file.hpp"

#include "messages/errors/failure.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/record_table.hpp"

#include <memory>

namespace troupe {

namespace {

expected<record_table> find_lines(const input_file& file) {
  std::vector<uint64_t> offsets;
  if (file.bytes() > 0) offsets.push_back(0);
  auto done = for_each_block(file, 0, [&](uint64_t offset, std::string_view block) {
    for (auto end = block.find('\n'); end != std::string_view::npos;
         end = block.find('\n', end + 1))
      offsets.push_back(offset + end + 1);
  });
  if (!done) return tl::unexpected(done.error());
  // The last line may lack its end; nothing comes after an end.
  if (offsets.empty() || offsets.back() != file.bytes()) offsets.push_back(file.bytes());
  return record_table{file, std::move(offsets)};
}

std::string without_end(std::string line) {
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

} // namespace

dataset text_file(const std::filesystem::path& path) {
  return value_or_throw(input_file::open(path).and_then(text_dataset));
}

expected<dataset> text_dataset(const input_file& file) {
  auto found = find_lines(file);
  if (!found) return tl::unexpected(found.error());
  auto lines = std::make_shared<const record_table>(std::move(*found));
  element_reader read = [lines](uint64_t, uint64_t index) {
    return lines->read(index).map([](std::string&& line) {
      return element{{}, {without_end(std::move(line))}};
    });
  };
  return records_of_file(lines->size(), std::move(read));
}

} // namespace troupe
