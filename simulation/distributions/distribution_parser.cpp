// SPDX-License-Identifier: Apache-2.0
// The parser of expressions of computing times; an error shows a caret under the fault.
#include "messages/mapped.hpp"
#include "messages/text.hpp"
#include "simulation/distributions/distribution_node.hpp"
#include "simulation/distributions/distribution_preset.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

namespace troupe {

namespace {

using node = distribution_node;
using kind = distribution_node::kinds;

constexpr size_t text_bytes_max = 65'536;
constexpr int depth_max = 32;
constexpr double replicas_max = 1e6;
constexpr double pause_every_max = 1e9;

/// An error and its place. Thrown, because it may happen at any depth; never leaves this file.
struct fault {
  size_t at;
  std::string message;
  errc code = errc::invalid_argument;
};

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool begins_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

bool continues_name(char letter) {
  return begins_name(letter) || is_digit(letter) || letter == '-';
}

// A byte within a letter of several (UTF-8).
bool continues_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

bool has_slow(const node& tree) {
  return tree.kind == kind::slow_share || tree.kind == kind::slow_list
         || std::ranges::any_of(tree.parts, has_slow);
}

std::string all_names() {
  auto names = mapped<std::string_view>(distribution_families(), &distribution_family::name);
  for (auto name :
       {"mixture", "persistent", "common", "correlated", "on_off", "pause", "slow", "trace"})
    names.emplace_back(name);
  for (const auto& preset : distribution_presets())
    names.push_back(preset.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Recursive descent: one function for each rule of the language.
class parser {
public:
  explicit parser(std::string_view text, std::string_view about_units = {})
    : text_(text), about_units_(about_units) {}

  node parse_all() {
    auto tree = parse_sum();
    while (!at_end()) {
      tree = parse_modifier(std::move(tree));
      if (!at_end() && !begins_name(peek()))
        throw fault{at_, fmt::format("'{}' is too much here: slow= must stand last; for a part of "
                                     "the expression write (...) * {}",
                                     letter(), print_distribution(tree.parts.back()))};
    }
    number_nodes(tree);
    if (auto mean = mean_of_distribution(tree); mean && std::isfinite(*mean))
      check_time("the mean time", *mean, 0);
    return tree;
  }

private:
  // ---- rules ----

  // sum = product { "+" product }
  node parse_sum() {
    return parse_chain('+', kind::sum, [this] {
      return parse_chain('*', kind::product, [this] { return parse_atom(); });
    });
  }

  template <class Part>
  node parse_chain(char separator, kind chain_kind, const Part& part) {
    auto first = part();
    if (peek() != separator) return first;
    node chain{.kind = chain_kind};
    add_part(chain, std::move(first));
    while (accept(separator))
      add_part(chain, part());
    return chain;
  }

  // atom = "(" sum ")" | number | name [ "(" ... ")" ]
  node parse_atom() {
    if (++depth_ > depth_max) throw fault{at_, "nested too deeply"};
    auto atom = parse_any_atom();
    --depth_;
    return atom;
  }

  node parse_any_atom() {
    auto begin = skip_blanks();
    if (accept('(')) {
      auto inner = parse_sum();
      expect(')');
      return inner;
    }
    if (is_digit(peek()) || peek() == '.') {
      auto number = parse_ratio();
      check_time("this time", number, begin);
      return {.kind = kind::number, .numbers = {number}};
    }
    if (peek() == '-') throw fault{begin, "times and factors cannot be negative"};
    if (!begins_name(peek()))
      throw fault{begin, at_end() ? "here the expression ends too early: a distribution is missing"
                                  : fmt::format("'{}' begins no distribution", letter())};
    auto name = parse_name();
    if (const auto* family = find_distribution_family(name)) return parse_family(*family);
    if (const auto* preset = find_distribution_preset(name))
      return parser{preset->expression}.parse_all();
    return parse_special(name, begin);
  }

  node parse_family(const distribution_family& family) {
    auto begin = at_ - family.name.size();
    node result{.kind = kind::family, .family = &family};
    expect('(', family.name);
    for (const auto& parameter : family.parameters) {
      auto count = result.numbers.size();
      if (count + family.optional >= family.parameters.size() && peek() == ')') break;
      if (count > 0 && !accept(','))
        throw fault{
          at_, fmt::format("here ', {}' is missing: it is {}", parameter.name, signature(family))};
      auto place = skip_blanks();
      auto number = parse_ratio();
      check_range(parameter, number, place);
      result.numbers.push_back(number);
    }
    if (!accept(')'))
      throw fault{at_, fmt::format("here a ')' is missing: it is {}", signature(family))};
    auto problem = family.refuse == nullptr ? "" : family.refuse(result.numbers);
    if (!problem.empty()) throw fault{begin, fmt::format("{}: {}", family.name, problem)};
    return result;
  }

  node parse_special(std::string_view name, size_t begin) {
    if (name == "mixture") return parse_mixture();
    if (name == "persistent") return parse_wrapper(kind::persistent);
    if (name == "common") return parse_common(begin);
    if (name == "correlated") return parse_correlated();
    if (name == "on_off") return parse_on_off();
    if (name == "pause") return parse_pause();
    if (name == "slow") return parse_slow();
    if (name == "trace") return parse_trace(begin);
    throw fault{begin, fmt::format("no distribution '{}'; there are {}", name, all_names())};
  }

  node parse_mixture() {
    node result{.kind = kind::mixture};
    expect('(', "mixture");
    double sum = 0;
    auto begin = at_;
    do {
      sum += result.numbers.emplace_back(parse_checked({"a weight", 0, true}));
      expect(':', "a weight");
      result.parts.push_back(parse_sum());
    } while (accept(','));
    expect(')', "a part of the mixture");
    if (std::abs(sum - 1) > 1e-9)
      throw fault{begin, fmt::format("the weights sum to {}, not to 1", sum)};
    return result;
  }

  node parse_wrapper(kind wrapper) {
    node result{.kind = wrapper};
    expect('(', "the name");
    result.parts.push_back(parse_sum());
    expect(')', "the distribution");
    return result;
  }

  // One draw is of all replicas: none of them is the slow one.
  node parse_common(size_t begin) {
    auto result = parse_wrapper(kind::common);
    if (has_slow(result))
      throw fault{begin, "slow is of single replicas, and has no meaning within common; multiply "
                         "by it outside of common"};
    return result;
  }

  node parse_correlated() {
    expect('(', "correlated");
    node result{.kind = kind::correlated};
    result.numbers.push_back(parse_checked({"rho", 0, false, 0.9999}));
    expect_comma("the distribution");
    result.parts.push_back(parse_sum());
    expect(')', "the distribution");
    return result;
  }

  node parse_on_off() {
    auto begin = at_;
    expect('(', "on_off");
    node result{.kind = kind::on_off};
    result.numbers.push_back(parse_checked({"enter", 0, false, 1}));
    expect_comma("leave");
    result.numbers.push_back(parse_checked({"leave", 0, true, 1}));
    expect_comma("factor");
    result.numbers.push_back(parse_checked({"factor"}));
    expect(')', "factor");
    if (result.numbers[0] + result.numbers[1] > 1)
      throw fault{begin, "the probabilities to begin and to end an episode sum to more than 1: "
                         "episodes shorter than one draw"};
    return result;
  }

  node parse_pause() {
    expect('(', "pause");
    node result{.kind = kind::pause};
    result.numbers.push_back(parse_whole("every", 1, pause_every_max));
    expect_comma("length");
    result.numbers.push_back(parse_checked({"length"}));
    expect(')', "length");
    return result;
  }

  node parse_slow() {
    expect('(', "slow");
    auto result = parse_slow_replicas();
    expect_comma("the factor");
    place_factor(result, parse_checked({"factor"}));
    expect(')', "the factor");
    return result;
  }

  // slow_replicas = count "/" of | "{" replica { "," replica } "}"
  node parse_slow_replicas() {
    if (accept('{')) {
      node result{.kind = kind::slow_list, .numbers = {1}};
      do
        result.numbers.push_back(parse_whole("a replica", 0, replicas_max));
      while (accept(','));
      expect('}', "the replicas");
      return result;
    }
    auto begin = skip_blanks();
    node result{.kind = kind::slow_share};
    result.numbers.push_back(parse_whole("the number of slow replicas", 0, replicas_max));
    expect('/', "the number of slow replicas");
    result.numbers.push_back(parse_whole("the number of replicas", 1, replicas_max));
    if (result.numbers[0] > result.numbers[1])
      throw fault{begin, "more slow replicas than replicas"};
    return result;
  }

  static void place_factor(node& slow, double factor) {
    if (slow.kind == kind::slow_list)
      slow.numbers[0] = factor;
    else
      slow.numbers.push_back(factor);
  }

  // modifier = "slow" "=" slow_replicas "*" factor
  node parse_modifier(node whole) {
    auto begin = skip_blanks();
    if (!begins_name(peek()))
      throw fault{begin,
                  fmt::format("'{}' is too much here: join distributions by '+' or '*'", letter())};
    auto name = parse_name();
    if (name != "slow" || peek() != '=')
      throw fault{begin, "only slow=COUNT/OF*FACTOR may stand behind a distribution; join others "
                         "by '+' or '*'"};
    expect('=');
    auto slow = parse_slow_replicas();
    expect('*', "who is slow");
    place_factor(slow, parse_checked({"factor"}));
    node product{.kind = kind::product};
    add_part(product, std::move(whole));
    add_part(product, std::move(slow));
    return product;
  }

  node parse_trace(size_t begin) {
    expect('(', "trace");
    skip_blanks();
    bool is_quoted = accept('"');
    auto end = text_.find(is_quoted ? '"' : ')', at_);
    if (end == std::string_view::npos) throw fault{begin, "the name of the file does not end"};
    auto file = text_.substr(at_, end - at_);
    node result{.kind = kind::trace, .file = std::string{is_quoted ? file : trimmed(file)}};
    if (result.file.find('"') != std::string::npos)
      throw fault{at_, "here is a quote within the name of the file"};
    if (result.file.empty()) throw fault{at_, "here the name of the file is missing"};
    at_ = end;
    if (is_quoted) expect('"');
    expect(')', "the name of the file");
    auto table = load_trace_table(result.file);
    if (!table) throw fault{begin, table.error().message, table.error().code};
    result.trace = std::make_shared<const trace_table>(std::move(*table));
    return result;
  }

  // ---- numbers and names ----

  // number [ "/" number ]
  double parse_ratio() {
    auto number = parse_number();
    if (!accept('/')) return number;
    auto begin = skip_blanks();
    auto divisor = parse_number();
    if (divisor == 0) throw fault{begin, "a division by 0"};
    return number / divisor;
  }

  double parse_number() {
    auto begin = skip_blanks();
    if (peek() == '-') throw fault{begin, "times and factors cannot be negative"};
    double number = 0;
    auto rest = text_.substr(at_);
    auto result = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (result.ec == std::errc::invalid_argument || !(is_digit(peek()) || peek() == '.'))
      throw fault{begin, "here a number is missing"};
    if (result.ec != std::errc{}) throw fault{begin, "this number is out of range"};
    at_ += static_cast<size_t>(result.ptr - rest.data());
    refuse_unit();
    return number;
  }

  // The unit of a number would read as a name.
  void refuse_unit() {
    constexpr std::string_view units[] = {"ns", "us", "ms", "s", "m", "min", "h"};
    auto end_of_number = at_;
    auto begin = skip_blanks();
    auto name = parse_name();
    if (std::ranges::count(units, name) > 0)
      throw fault{begin, fmt::format("'{}' is too much here: times are in seconds, without a unit, "
                                     "such as 70e-6{}",
                                     name, about_units_)};
    at_ = end_of_number;
  }

  double parse_checked(const distribution_parameter& parameter) {
    auto begin = skip_blanks();
    auto number = parse_ratio();
    check_range(parameter, number, begin);
    return number;
  }

  double parse_whole(std::string_view name, double low, double high) {
    auto begin = skip_blanks();
    auto number = parse_number();
    if (number != std::floor(number) || number < low || number > high)
      throw fault{begin, fmt::format("{} must be a whole number from {} to {}", name, low, high)};
    return number;
  }

  static void check_range(const distribution_parameter& parameter, double number, size_t begin) {
    if (parameter.above_low && !(number > parameter.low))
      throw fault{begin, fmt::format("{} must be above {}", parameter.name, parameter.low)};
    if (number < parameter.low || number > parameter.high)
      throw fault{begin, fmt::format("{} must be from {} to {}", parameter.name, parameter.low,
                                     parameter.high)};
  }

  static void check_time(std::string_view name, double seconds, size_t begin) {
    if (seconds > distribution_seconds_max)
      throw fault{begin, fmt::format("{} is {:g} s, and {:g} s are the most; lower it", name,
                                     seconds, distribution_seconds_max)};
  }

  std::string_view parse_name() {
    auto begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_]))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // ---- letters ----

  size_t skip_blanks() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_;
  }

  /// The next letter that is no blank; 0 at the end.
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  /// As `peek`, with the rest of a letter of several bytes (UTF-8).
  std::string_view letter() {
    auto begin = skip_blanks();
    auto end = std::min(begin + 1, text_.size());
    while (end < text_.size() && continues_letter(text_[end]))
      ++end;
    return text_.substr(begin, end - begin);
  }

  bool at_end() { return skip_blanks() == text_.size(); }

  bool accept(char letter) {
    if (peek() != letter) return false;
    ++at_;
    return true;
  }

  void expect(char letter, std::string_view behind = {}) {
    if (accept(letter)) return;
    throw fault{at_, behind.empty()
                       ? fmt::format("here a '{}' is missing", letter)
                       : fmt::format("here a '{}' is missing, behind {}", letter, behind)};
  }

  void expect_comma(std::string_view next) {
    if (!accept(',')) throw fault{at_, fmt::format("here ', {}' is missing", next)};
  }

  // ---- trees ----

  // (a + b) + c is a + b + c.
  static void add_part(node& chain, node part) {
    if (part.kind != chain.kind) return chain.parts.push_back(std::move(part));
    for (auto& inner : part.parts)
      chain.parts.push_back(std::move(inner));
  }

  // By the order of the text: the same expression names the same streams.
  static void number_nodes(node& tree) {
    size_t next = 0;
    number_nodes(tree, next);
  }

  static void number_nodes(node& tree, size_t& next) {
    tree.index = next++;
    tree.stream = fmt::format("node {}", tree.index);
    for (auto& part : tree.parts)
      number_nodes(part, next);
  }

  std::string_view text_;
  std::string_view about_units_;
  size_t at_ = 0;
  int depth_ = 0;
};

// The fault's line of the expression, with a caret below it.
std::string pointed_at(std::string_view text, size_t at) {
  std::string line{text};
  for (char& letter : line)
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  auto bytes_within = std::ranges::count_if(text.substr(0, at), continues_letter);
  return fmt::format("  {}\n  {:>{}}", line, '^', at + 1 - static_cast<size_t>(bytes_within));
}

} // namespace

expected<distribution_node> parse_distribution(std::string_view text,
                                               std::string_view about_units) {
  if (text.size() > text_bytes_max)
    return fail(errc::limit_exceeded, fmt::format("an expression of {} letters; {} are the most",
                                                  text.size(), text_bytes_max));
  try {
    return parser{text, about_units}.parse_all();
  } catch (const fault& found) {
    return fail(found.code, fmt::format("{}\n{}", found.message, pointed_at(text, found.at)));
  }
}

} // namespace troupe
