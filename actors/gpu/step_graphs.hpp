// SPDX-License-Identifier: Apache-2.0
// Work of a GPU's stream that comes again, as graphs; only in builds with GPU kernels.
#pragma once

#include "actors/gpu/cuda_device.hpp"
#include "kernels/cuda/graph.hpp"

#include <cstddef>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The graphs of one stream, by the kind of work: its name, and the dtypes and shapes of all
/// values.
///
/// | a kind of work                   | is                                                        |
/// |----------------------------------|-----------------------------------------------------------|
/// | that was not here before         | queued as it is: libraries make what they need            |
/// | that was                         | written down, and launched                                |
/// | that is written down             | launched, unless a resident has another place: as above   |
/// | that could not be written down   | queued as it is, from then on                             |
/// | that others came after, too many | forgotten, with its graph                                 |
class step_graphs {
public:
  /// Kinds that are kept: a job has one, or one more for the last batch of its data.
  static constexpr size_t kinds_max = 4;

  /// As `cuda_stream::repeat`. @param residents The work's, on the device.
  [[nodiscard]] expected<std::vector<tensor>> run(const repeated_work& work, compute_stream& stream,
                                                  const cuda::context& on,
                                                  std::span<const tensor> residents,
                                                  const std::stop_token& stop);

  /// Forgets all: the context has gone.
  void clear() { kinds_.clear(); }

private:
  /// Work that was captured.
  struct written {
    std::vector<const void*> places; ///< Addresses of the residents.
    std::vector<tensor> results;
    cuda::graph graph;
  };

  struct kind {
    std::string name;
    std::vector<tensor> inputs; ///< On the device.
    bool is_known = false;      ///< Was queued as it is, without fault.
    bool is_refused = false;
    std::optional<written> graph{};
  };

  kind& find(std::string name);
  static void write(kind& kind, const repeated_work& work, const cuda::context& on,
                    std::span<const tensor> residents);

  std::list<kind> kinds_; ///< The last one used in front.
};

} // namespace troupe
