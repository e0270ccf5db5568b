// SPDX-License-Identifier: Apache-2.0
// Checks and makes the folder of a run.
#include "tools/run/run_directory.hpp"

#include "actors/recording/output_file.hpp"
#include "messages/errors/printable.hpp"

#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <span>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;

tl::unexpected<error> refuse(errc code, const fs::path& path, std::string_view reason) {
  return fail(code, fmt::format("--run-dir: {} {}", path.native(), reason));
}

tl::unexpected<error> refuse_taken(const fs::path& path) {
  return refuse(errc::failed_precondition, path,
                "already holds something, and results are never overwritten; pass the name of a "
                "new folder, or empty this one");
}

expected<void> check_existing(const fs::path& path, const fs::file_status& status) {
  if (!fs::is_directory(status))
    return refuse(errc::failed_precondition, path, "is not a folder; pass the name of a new one");
  std::error_code problem;
  const fs::directory_iterator content{path, problem};
  if (problem) return refuse(errc::invalid_argument, path, "cannot be read: " + problem.message());
  if (content != fs::directory_iterator{}) return refuse_taken(path);
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    return refuse(errc::invalid_argument, path, "is not writable");
  return {};
}

// Whether a link lies at a path that leads to nothing.
bool is_dangling_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored) && !fs::exists(path, ignored);
}

// Whether the nearest existing folder above a path lets us make the path.
expected<void> check_parent(const fs::path& path) {
  std::error_code ignored;
  auto parent = fs::absolute(path, ignored).lexically_normal();
  do {
    parent = parent.parent_path();
    if (is_dangling_link(parent))
      return refuse(errc::invalid_argument, path,
                    fmt::format("cannot be made: {} is a link to nothing", parent.native()));
  } while (!fs::exists(parent, ignored) && parent != parent.root_path());
  if (!fs::is_directory(parent, ignored))
    return refuse(errc::failed_precondition, path,
                  fmt::format("cannot be made: {} is not a folder", parent.native()));
  if (::access(parent.c_str(), W_OK | X_OK) != 0)
    return refuse(errc::invalid_argument, path,
                  fmt::format("cannot be made: {} is not writable", parent.native()));
  return {};
}

// The folders on the way to `path` that are not there yet, the deepest first.
std::vector<fs::path> missing_folders(const fs::path& path) {
  std::error_code ignored;
  std::vector<fs::path> missing;
  for (auto folder = fs::absolute(path, ignored).lexically_normal();
       !fs::exists(folder, ignored) && folder != folder.root_path(); folder = folder.parent_path())
    missing.push_back(folder);
  return missing;
}

// Another job may have made one of the folders meanwhile, or have put its own into one: rmdir
// leaves everything that is not an empty folder.
void remove_empty(std::span<const fs::path> folders) {
  for (const auto& folder : folders)
    ::rmdir(folder.c_str());
}

std::string dated_name(std::chrono::system_clock::time_point now, int attempt) {
  const auto name
    = fmt::format("{:%Y-%m-%d-%H%M%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  return attempt == 1 ? name : fmt::format("{}-{}", name, attempt);
}

// The part of a line of config.toml that is not UTF-8: its option, or the remark at its end. That
// says which file the value comes from: of --config, or of the run that is resumed.
std::string culprit_in(std::string_view line) {
  constexpr std::string_view remark_begin = "  # ";
  auto remark = line.rfind(remark_begin);
  if (remark != std::string_view::npos && is_utf8(line.substr(0, remark)))
    return printable_line(line.substr(remark + remark_begin.size()));
  if (line.starts_with("# ")) line.remove_prefix(2);
  return fmt::format("--{}", line.substr(0, line.find(" = ")));
}

} // namespace

expected<void> run_directory::check_config(std::string_view config) {
  while (!config.empty()) {
    const auto line = config.substr(0, config.find('\n'));
    config.remove_prefix(std::min(line.size() + 1, config.size()));
    if (is_utf8(line)) continue;
    return fail(errc::invalid_argument,
                fmt::format("{} is not UTF-8, in which config.toml is written: give the file or "
                            "folder another name",
                            culprit_in(line)));
  }
  return {};
}

expected<void> run_directory::check(const fs::path& path) {
  std::error_code problem;
  const auto status = fs::status(path, problem);
  if (fs::exists(status)) return check_existing(path, status);
  if (status.type() != fs::file_type::not_found)
    return refuse(errc::invalid_argument, path, "cannot be looked at: " + problem.message());
  if (is_dangling_link(path))
    return refuse(errc::invalid_argument, path,
                  "is a link to nothing; make the folder that it leads to, or pass the name of a "
                  "new one");
  return check_parent(path);
}

expected<run_directory> run_directory::create(const fs::path& path, std::string_view config) {
  if (auto done = check(path); !done) return tl::unexpected(done.error());
  if (auto done = check_config(config); !done) return tl::unexpected(done.error());
  const auto new_folders = missing_folders(path);
  std::error_code problem;
  fs::create_directories(path, problem);
  expected<void> done;
  if (problem) done = refuse(errc::resource, path, "cannot be made: " + problem.message());
  run_directory directory{path};
  directory.is_new_ = !new_folders.empty();
  if (done) done = create_file(directory.config(), config); // claims the folder
  if (done) return directory;
  remove_empty(new_folders);
  if (done.error().code == errc::failed_precondition) return refuse_taken(path);
  return tl::unexpected(done.error());
}

expected<run_directory> run_directory::create_dated(const fs::path& base,
                                                    std::chrono::system_clock::time_point now,
                                                    std::string_view config) {
  constexpr int attempts_max = 1000;
  if (auto done = check_config(config); !done) return tl::unexpected(done.error());
  for (int attempt = 1; attempt < attempts_max; ++attempt) {
    const auto path = base / dated_name(now, attempt);
    if (auto done = check(path); !done && done.error().code != errc::failed_precondition)
      return tl::unexpected(done.error());
    std::error_code problem;
    fs::create_directories(base, problem);
    if (!problem && fs::create_directory(path, problem)) {
      auto directory = create(path, config);
      if (directory)
        directory->is_new_ = true;
      else
        fs::remove(path, problem);
      return directory;
    }
    if (problem) return refuse(errc::resource, path, "cannot be made: " + problem.message());
  }
  return refuse(errc::failed_precondition, base, "holds too many runs of this second");
}

bool run_directory::is_begun(const fs::path& path) {
  std::error_code ignored; // a caller that opens the file names the problem
  return fs::status(run_directory{path}.config(), ignored).type() != fs::file_type::not_found;
}

bool run_directory::is_over(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(run_directory{path}.replicas(), ignored);
}

void run_directory::take_back() const {
  std::error_code ignored; // the next run refuses a file that is left, with a reason
  // config.toml goes last: from then on another run may begin here. Until then a config.toml.new is
  // that of a run which is about to be refused, and removes it.
  const auto own = config().filename().native();
  for (const auto& entry : fs::directory_iterator{path_, ignored})
    if (!entry.path().filename().native().starts_with(own)) fs::remove_all(entry.path(), ignored);
  fs::remove(config(), ignored);
  if (is_new_) fs::remove(path_, ignored);
}

} // namespace troupe
