// SPDX-License-Identifier: Apache-2.0
// Reading and checking the JSON text of a safetensors header, and writing it.
#include "actors/checkpoint/safetensors_header.hpp"

#include "messages/mapped.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

using json = nlohmann::json;

constexpr std::string_view checksum_key = "troupe.crc32c";
constexpr std::string_view no_checksum = "00000000";
constexpr uint64_t length_bytes = sizeof(uint64_t);
constexpr uint64_t payload_alignment = 64;
constexpr std::string_view dtype_names[dtype_count] = {"F32", "F64", "F16", "BF16", "I32", "I64"};

std::optional<dtype> dtype_named(std::string_view name) {
  const auto* found = std::ranges::find(dtype_names, name);
  if (found == std::end(dtype_names)) return {};
  return static_cast<dtype>(found - dtype_names);
}

// Parses the text as it is read; nothing is nested deeper than {"name": {"shape": [...]}}.
class header_reader final : public json::json_sax_t {
public:
  explicit header_reader(safetensors_header& header) : header_(header) {}

  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  bool start_object(size_t) override {
    if (place_ == place::document) return go(place::header);
    if (place_ != place::header) return unexpected("an object");
    if (name_ == safetensors_metadata_key) return go(place::metadata);
    entry_ = {};
    return go(place::entry);
  }

  bool key(std::string& name) override {
    if (place_ == place::header) {
      name_ = name;
      return names_.insert(name).second || refuse(excerpt(name) + " is there twice");
    }
    field_ = name;
    return true;
  }

  bool end_object() override {
    if (place_ == place::header) return go(place::document);
    if (place_ == place::metadata) return go(place::header);
    return finish_entry() && go(place::header);
  }

  bool start_array(size_t) override {
    if (place_ != place::entry || (field_ != "shape" && field_ != "data_offsets"))
      return unexpected("a list");
    auto& list = field_ == "shape" ? entry_.dims : entry_.offsets;
    if (list) return twice();
    numbers_ = &list.emplace();
    return go(place::numbers);
  }

  bool end_array() override { return go(place::entry); }

  bool number_unsigned(json::number_unsigned_t number) override {
    if (place_ != place::numbers) return unexpected("a number");
    if (numbers_->size() == safetensors_rank_max)
      return refuse(fmt::format("tensor {}: {} has more than {} numbers", excerpt(name_), field_,
                                safetensors_rank_max));
    numbers_->push_back(number);
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == place::metadata) return header_.metadata.emplace(field_, text).second || twice();
    if (place_ != place::entry || field_ != "dtype") return unexpected("a text");
    if (entry_.type) return twice();
    entry_.type = dtype_named(text);
    return entry_.type
           || refuse(fmt::format("tensor {}: dtype {} is none of F32, F64, F16, BF16, I32, I64",
                                 excerpt(name_), excerpt(text)));
  }

  bool null() override { return unexpected("null"); }

  bool boolean(bool) override { return unexpected("a truth value"); }

  bool number_integer(json::number_integer_t) override { return unexpected("a negative number"); }

  bool number_float(json::number_float_t, const std::string&) override {
    return unexpected("a number with a fraction, or one of more than 64 bits");
  }

  bool binary(json::binary_t&) override { return unexpected("binary data"); }

  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return refuse(
      fmt::format("byte {}: the header is no JSON from here on", length_bytes + position - 1));
  }

private:
  enum class place : uint8_t { document, header, metadata, entry, numbers };

  /// The fields of the current entry that were read so far.
  struct partial_entry {
    std::optional<dtype> type;
    std::optional<std::vector<uint64_t>> dims;
    std::optional<std::vector<uint64_t>> offsets;
  };

  bool go(place next) {
    place_ = next;
    return true;
  }

  bool refuse(std::string reason) {
    refusal_ = std::move(reason);
    return false;
  }

  bool twice() {
    return refuse(fmt::format("{}: {} is there twice", excerpt(name_), excerpt(field_)));
  }

  bool unexpected(std::string_view kind) {
    if (place_ == place::document) return refuse(fmt::format("the header is {}, no object", kind));
    if (place_ == place::header) return refuse(fmt::format("{} is {}", excerpt(name_), kind));
    return refuse(fmt::format("{}: {} holds {}", excerpt(name_), excerpt(field_), kind));
  }

  bool finish_entry();

  safetensors_header& header_;
  place place_ = place::document;
  std::unordered_set<std::string> names_;
  std::string name_;
  std::string field_;
  partial_entry entry_;
  std::vector<uint64_t>* numbers_ = nullptr;
  std::string refusal_;
};

bool header_reader::finish_entry() {
  const auto tensor = fmt::format("tensor {}", excerpt(name_));
  if (!entry_.type || !entry_.dims || !entry_.offsets)
    return refuse(tensor + " lacks dtype, shape or data_offsets");
  const auto& offsets = *entry_.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    return refuse(tensor + ": data_offsets is not a begin and an end");
  const auto bytes = bytes_of_array(element_bytes(*entry_.type), *entry_.dims);
  if (!bytes) return refuse(tensor + ": its shape is beyond 63 bits");
  if (*bytes != offsets[1] - offsets[0]) {
    return refuse(fmt::format("{}: data_offsets [{}, {}] hold {} bytes, its shape needs {}", tensor,
                              offsets[0], offsets[1], offsets[1] - offsets[0], *bytes));
  }
  header_.entries.push_back({name_, *entry_.type,
                             shape{std::vector<int64_t>{entry_.dims->begin(), entry_.dims->end()}},
                             offsets[0], offsets[1]});
  return true;
}

// Checks that each byte of the payload belongs to one tensor. @returns The problem; empty, if none.
std::string check_coverage(std::span<const safetensors_entry> entries, uint64_t payload_bytes) {
  uint64_t covered = 0;
  for (const auto* entry : in_payload_order(entries)) {
    if (entry->begin != covered) {
      return fmt::format(
        "tensor {}: begins at byte {} of the payload, {} byte {}", excerpt(entry->name),
        entry->begin,
        entry->begin < covered ? "within another, which ends at" : "leaving a gap from", covered);
    }
    covered = entry->end;
    if (covered > payload_bytes) {
      return fmt::format("tensor {}: ends at byte {} of the payload, which has {}: the file is cut",
                         excerpt(entry->name), covered, payload_bytes);
    }
  }
  if (covered == payload_bytes) return {};
  return fmt::format("{} bytes after the last tensor belong to none", payload_bytes - covered);
}

// Takes the checksum out of the metadata. @returns The problem if it does not stand where the
// writer puts it; empty, if there is none.
std::string take_checksum(safetensors_header& header) {
  const auto found = header.metadata.find(std::string{checksum_key});
  if (found == header.metadata.end()) return {};
  header.checksum = found->second;
  header.metadata.erase(found);
  const auto offset = std::min<size_t>(safetensors_checksum_offset, header.bytes.size());
  if (header.checksum.size() == no_checksum.size()
      && header.bytes.compare(offset, no_checksum.size(), header.checksum) == 0)
    return {};
  return fmt::format("{} does not stand at byte {}: damaged, or rewritten by another program, "
                     "which must leave it out",
                     checksum_key, safetensors_checksum_offset);
}

expected<std::string> read_header_bytes(const input_file& file) {
  uint64_t length = 0;
  if (auto done = file.read_at(0, std::as_writable_bytes(std::span{&length, 1})); !done)
    return tl::unexpected(done.error());
  if (length > safetensors_header_bytes_max || length > file.bytes() - length_bytes) {
    return file.malformed(0, fmt::format("a header of {} bytes: more than the file holds, or more "
                                         "than {}",
                                         length, safetensors_header_bytes_max));
  }
  std::string bytes(length_bytes + length, '\0');
  auto done = file.read_at(0, std::as_writable_bytes(std::span{bytes}));
  if (!done) return tl::unexpected(done.error());
  return bytes;
}

} // namespace

expected<safetensors_header> read_safetensors_header(const input_file& file) {
  auto bytes = read_header_bytes(file);
  if (!bytes) return tl::unexpected(bytes.error());
  safetensors_header header;
  header.bytes = std::move(*bytes);
  header_reader reader{header};
  json::sax_parse(header.bytes.begin() + length_bytes, header.bytes.end(), &reader);
  auto refusal = reader.refusal();
  if (refusal.empty()) refusal = take_checksum(header);
  if (refusal.empty()) refusal = check_coverage(header.entries, file.bytes() - header.bytes.size());
  if (refusal.empty()) return header;
  return fail(errc::malformed, fmt::format("{}: {}", file.name(), refusal));
}

namespace {

// A text as JSON; nothing if it is not UTF-8.
std::optional<std::string> json_text(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    return {};
  }
}

expected<std::string> format_metadata(const safetensors_metadata& metadata) {
  auto text
    = fmt::format(R"("{}":{{"{}":"{}")", safetensors_metadata_key, checksum_key, no_checksum);
  for (const auto& [key, value] : metadata) {
    const auto name = json_text(key);
    const auto content = json_text(value);
    if (!name || !content || key == checksum_key)
      return fail(errc::invalid_argument,
                  fmt::format("metadata {}: not UTF-8, or reserved", excerpt(key)));
    text += fmt::format(",{}:{}", *name, *content);
  }
  return text + "}";
}

expected<std::string> format_entry(const safetensors_entry& entry) {
  const auto name = json_text(entry.name);
  if (!name || entry.name == safetensors_metadata_key) {
    return fail(
      errc::invalid_argument,
      fmt::format("a tensor cannot be named {}: not UTF-8, or reserved", excerpt(entry.name)));
  }
  return fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", *name,
                     dtype_names[static_cast<size_t>(entry.type)],
                     fmt::join(entry.extents.dims(), ","), entry.begin, entry.end);
}

} // namespace

expected<std::string> format_safetensors_header(std::span<const safetensors_entry> entries,
                                                const safetensors_metadata& metadata) {
  auto text = format_metadata(metadata);
  if (!text) return text;
  *text = fmt::format("{{{}", *text);
  std::unordered_set<std::string_view> names;
  for (const auto& entry : entries) {
    auto part = format_entry(entry);
    if (!part) return part;
    if (!names.insert(entry.name).second)
      return fail(errc::invalid_argument,
                  fmt::format("two tensors are named {}", excerpt(entry.name)));
    *text += *part;
  }
  *text += '}';
  const auto used = (length_bytes + text->size()) % payload_alignment;
  text->append((payload_alignment - used) % payload_alignment, ' ');
  const uint64_t length = text->size();
  if (length > safetensors_header_bytes_max) {
    return fail(errc::limit_exceeded,
                fmt::format("the names of the tensors need {} bytes, {} are the most", length,
                            safetensors_header_bytes_max));
  }
  text->insert(0, length_bytes, '\0');
  std::memcpy(text->data(), &length, sizeof length);
  return text;
}

std::string safetensors_checksum(uint32_t crc) {
  return fmt::format("{:08x}", crc);
}

std::vector<const safetensors_entry*> in_payload_order(std::span<const safetensors_entry> entries) {
  auto order = mapped(entries, [](const auto& entry) { return &entry; });
  std::ranges::stable_sort(order, {}, [](const auto* entry) {
    return std::pair{entry->begin, entry->end};
  });
  return order;
}

} // namespace troupe
