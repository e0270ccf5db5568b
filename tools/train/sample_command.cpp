// SPDX-License-Identifier: Apache-2.0
// Finds the model of a run, and prints the text that it writes.
#include "tools/train/sample_command.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/job/resumption.hpp"
#include "tools/language/sampling.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/saved_job.hpp"
#include "tools/train/train_options.hpp"

#include <cstdio>
#include <string>

namespace troupe {

namespace {

constexpr const char* sample_introduction
  = "Prints text that a trained model writes: the model of a run's newest checkpoint.\n"
    "\n"
    "Usage: troupe sample [OPTIONS] RUN\n"
    "\n"
    "RUN is the folder of a run of troupe train.\n";
constexpr const char* sample_exit_codes
  = "\n"
    "Exit codes:\n"
    "  0      printed\n"
    "  1      a checkpoint of RUN cannot be read\n"
    "  2      an argument is not as it must be, or RUN is no run\n"
    "  6      RUN has no whole checkpoint, or one of another model or of one that has diverged\n";

/// The arguments of `troupe sample`, as parsed.
struct sample_options {
  std::string run;
  std::string prompt;
  sampling settings{.bytes = 500};
  std::string answer; ///< A text to print instead; empty: none.
};

expected<sample_options> parse_sample_options(int argument_count, const char* const* arguments) {
  sample_options options;
  command_options all{sample_introduction, "one run is sampled at a time", sample_exit_codes};
  all.add("run", "", "", text_value(options.run));
  all.add("--bytes", "COUNT", "bytes to print, before a line end",
          whole_value(options.settings.bytes, {0, 1e9}));
  all.add("--temperature", "NUMBER",
          "below 1, likely bytes become likelier, and above 1 less so; 0: always the likeliest",
          real_value(options.settings.temperature, {0, 100}));
  all.add("--seed", "NUMBER", "of the draws", whole_value(options.settings.seed, {0, 9.2e18}));
  all.add("--prompt", "TEXT", "what the text begins with", any_text_value(options.prompt), "none");
  all.add_help(options.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (options.answer.empty() && options.run.empty())
    return misuse("no run is named: give its folder, as in troupe sample runs/2026-11-21-020641");
  return options;
}

void print_byte(char byte) {
  std::fputc(static_cast<unsigned char>(byte), stdout);
}

int print_sample(const sample_options& options, const train_options& run) {
  auto found = newest_checkpoint("troupe sample", options.run, options.run);
  if (!found) {
    auto is_unreadable = found.error().code == errc::resource;
    return refuse("troupe sample", found.error(),
                  is_unreadable ? exit_code::user_error : exit_code::bad_checkpoint);
  }
  auto values = model_in(*found, language_model_of(run), "the config.toml of that run is damaged");
  if (!values) return refuse("troupe sample", values.error(), exit_code::bad_checkpoint);
  std::fwrite(options.prompt.data(), 1, options.prompt.size(), stdout);
  auto settings = options.settings;
  settings.prompt = options.prompt;
  auto done = sample_text(run.model, *values, settings, print_byte);
  print_byte('\n');
  if (!done) return refuse("troupe sample", done.error(), exit_code::bad_checkpoint);
  return static_cast<int>(exit_code::finished);
}

} // namespace

int sample_command_main(int argument_count, const char* const* arguments) {
  auto options = parse_sample_options(argument_count, arguments);
  if (auto code = answered("troupe sample", options)) return *code;
  train_options run;
  command_options all;
  add_options(all, run);
  auto config = run_directory::at(options->run).config();
  if (auto program = program_of_config(config); !program.empty() && program != "troupe train")
    return refuse("troupe sample",
                  misuse(fmt::format("{}: that is a run of {}, and only language models of troupe "
                                     "train write text",
                                     config.string(), program))
                    .value());
  if (auto read = read_config_file(config.string(), "RUN", all); !read)
    return refuse("troupe sample", read.error());
  if (run.learn == learned_kind::images)
    return refuse(
      "troupe sample",
      misuse(config.string() + ": this run learns images, and only language models write text")
        .value());
  if (auto valid = validate(run.model); !valid)
    return refuse("troupe sample", fail_at(config.string(), valid.error()).value());
  return print_sample(*options, run);
}

} // namespace troupe
