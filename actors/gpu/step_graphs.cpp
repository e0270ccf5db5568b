// SPDX-License-Identifier: Apache-2.0
// Repeated work of a GPU's stream: queued, captured in a graph, or launched from it.
#include "actors/gpu/step_graphs.hpp"

#include "messages/mapped.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace troupe {

namespace {

std::string name_of(const repeated_work& work) {
  auto name = work.name;
  for (auto values : {work.residents, work.inputs})
    for (const auto& value : values)
      name += "; " + std::string(to_string(value.type())) + " " + to_string(value.extents());
  return name;
}

std::vector<const void*> places_of(std::span<const tensor> values) {
  return mapped(values, &tensor::data);
}

// Copies values to the device: the first time to a new place, and to that place from then on.
expected<void> put(std::span<const tensor> values, std::vector<tensor>& there, compute_stream& by) {
  auto is_new = there.empty();
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_new) {
      auto placed = by.to_device(values[i]);
      if (!placed) return tl::unexpected<error>(placed.error());
      there.push_back(std::move(*placed));
    } else if (auto copied = by.copy_to_device(values[i], there[i]); !copied) {
      return copied;
    }
  }
  return {};
}

} // namespace

expected<std::vector<tensor>> step_graphs::run(const repeated_work& work, compute_stream& stream,
                                               const cuda::context& on,
                                               std::span<const tensor> residents,
                                               const std::stop_token& stop) {
  if (stop.stop_requested()) return fail(errc::cancelled, "the computation was told to stop");
  auto& kind = find(name_of(work));
  if (auto done = put(work.inputs, kind.inputs, stream); !done) {
    kinds_.pop_front(); // some of its inputs have no place
    return tl::unexpected<error>(done.error());
  }
  if (kind.graph && kind.graph->places != places_of(residents)) kind.graph.reset();
  if (!kind.graph && kind.is_known && !kind.is_refused) write(kind, work, on, residents);
  if (kind.graph) {
    if (auto launched = kind.graph->graph.launch(); !on.note(launched))
      return tl::unexpected<error>(on.status().error());
    return kind.graph->results;
  }
  auto results = work.queue(on, residents, kind.inputs, stop);
  kind.is_known |= results.has_value();
  return results;
}

step_graphs::kind& step_graphs::find(std::string name) {
  auto found = std::ranges::find(kinds_, name, &kind::name);
  if (found != kinds_.end()) {
    kinds_.splice(kinds_.begin(), kinds_, found);
    return kinds_.front();
  }
  kinds_.push_front({std::move(name), {}});
  if (kinds_.size() > kinds_max) kinds_.pop_back();
  return kinds_.front();
}

// Cannot be stopped in the middle: a captured graph has to be whole.
void step_graphs::write(kind& kind, const repeated_work& work, const cuda::context& on,
                        std::span<const tensor> residents) {
  expected<std::vector<tensor>> results;
  kind.is_refused = true;
  try {
    auto graph
      = cuda::graph::capture(on, [&] { results = work.queue(on, residents, kind.inputs, {}); });
    if (!graph || !results) return;
    kind.graph = written{places_of(residents), std::move(*results), std::move(*graph)};
    kind.is_refused = false;
  } catch (const std::bad_alloc&) {
    return; // the graph would need memory of its own, which is not there
  }
}

} // namespace troupe
