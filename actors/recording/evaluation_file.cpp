// SPDX-License-Identifier: Apache-2.0
// The lines of evaluations.csv.
#include "actors/recording/evaluation_file.hpp"

#include "actors/recording/csv.hpp"
#include "actors/recording/input_file.hpp"

#include <charconv>
#include <string>

namespace troupe {

namespace {

// The whole lines of an earlier process; none if it left no file. A file that cannot be read is an
// error: its lines would be lost.
expected<std::string> whole_lines(const std::filesystem::path& path) {
  auto file = input_file::open(path);
  if (!file && file.error().code == errc::not_found) return std::string{};
  if (!file) return tl::unexpected(file.error());
  auto text = file->text();
  if (text) text->resize(text->rfind('\n') + 1); // npos + 1 is 0
  return text;
}

} // namespace

std::string evaluation_file::header(std::string_view measure) {
  return "step,seconds," + std::string{measure} + '\n';
}

expected<evaluation_file> evaluation_file::create(std::filesystem::path path,
                                                  std::string_view measure) {
  return record_writer::create(std::move(path), header(measure)).map([](record_writer lines) {
    return evaluation_file{std::move(lines)};
  });
}

expected<evaluation_file> evaluation_file::go_on(std::filesystem::path path,
                                                 std::string_view measure) {
  auto text = whole_lines(path);
  if (!text) return tl::unexpected(text.error());
  const auto first_line = header(measure);
  if (!text->empty() && !text->starts_with(first_line))
    return fail(errc::failed_precondition,
                path.native() + " is no table of evaluations; move it away");
  // The new file lies beside the old one until it has all lines: a process that ends meanwhile
  // loses none.
  auto unfinished = path;
  unfinished += ".new";
  auto file = create(std::move(unfinished), measure);
  if (!file) return file;
  auto lines = std::string_view{*text}.substr(std::min(text->size(), first_line.size()));
  while (!lines.empty()) {
    auto line = lines.substr(0, lines.find('\n') + 1);
    uint64_t step = 0;
    auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (wrong != std::errc{} || *end != ',') break;
    if (auto done = file->lines_.append(line); !done) return tl::unexpected(done.error());
    file->last_step_ = step;
    lines.remove_prefix(line.size());
  }
  auto done = file->flush().and_then([&] { return file->lines_.rename(path); });
  if (!done) return tl::unexpected(done.error());
  return file;
}

expected<void> evaluation_file::append(uint64_t step, job_time when, double value) {
  last_step_ = step;
  return lines_.append(csv::line({std::to_string(step), csv::seconds(when), csv::field(value)}));
}

} // namespace troupe
