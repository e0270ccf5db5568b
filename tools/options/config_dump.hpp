// SPDX-License-Identifier: Apache-2.0
// Options as a TOML file that reads back, with a note beside each where it came from.
#pragma once

#include "tools/options/option_origin.hpp"
#include "tools/options/train_options.hpp"

#include <string>

namespace troupe {

/// All options that have a meaning under the strategy. Those without a value, and the run's folder
/// if `with_run_dir` is false, are comments: a file that names a used folder could start no second
/// run.
[[nodiscard]] std::string config_text(const train_options& options, const option_origins& origins,
                                      bool with_run_dir = true);

} // namespace troupe
