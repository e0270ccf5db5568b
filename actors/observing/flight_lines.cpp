// SPDX-License-Identifier: Apache-2.0
// Flight records as JSON lines.
#include "actors/observing/flight_lines.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

json to_json(const actor_sight& actor) {
  return {{"actor", actor.name},           {"state", to_string(actor.doing)},
          {"since", seconds(actor.since)}, {"mailbox", actor.mailbox_depth},
          {"handled", actor.handled},      {"errors", actor.errors}};
}

json to_json(const sighting& seen, const std::string& actor, const std::string* from) {
  json object{{"seconds", seconds(seen.when)},
              {"actor", actor},
              {"message", seen.kind != nullptr ? seen.kind->name : "other"},
              {"step", nullptr},
              {"from", nullptr}};
  if (seen.step != no_step) object["step"] = seen.step;
  if (from != nullptr) object["from"] = *from;
  return object;
}

} // namespace

std::string flight_lines(const task_sight& task, const std::string& reason) {
  auto names = names_in(task);
  json head{{"task", task.task}, {"reason", reason}, {"seconds", nullptr}, {"lost", task.is_lost}};
  if (task.seen) head["seconds"] = seconds(*task.seen);
  auto text = line_of(head);
  for (const auto& actor : task.actors) {
    text += line_of(to_json(actor));
    for (const auto& seen : actor.messages) {
      auto from = names.find(seen.sender);
      text += line_of(to_json(seen, actor.name, from != names.end() ? &from->second : nullptr));
    }
  }
  return text;
}

std::string silent_flight_line(const std::string& task, const std::string& reason) {
  return line_of({{"task", task}, {"reason", reason}, {"seconds", nullptr}, {"lost", true}});
}

std::string flight_file_name(const std::string& task) {
  auto name = task;
  std::ranges::replace_if(
    name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '-');
  return name + ".jsonl";
}

} // namespace troupe
