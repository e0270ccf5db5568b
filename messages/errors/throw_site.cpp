// SPDX-License-Identifier: Apache-2.0
// The calls of each throw, written down before the stack is gone: every throw passes here.
#include "messages/errors/throw_site.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#if TROUPE_BACKTRACE
#  include <backtrace.h>
#  include <dlfcn.h>
#endif

namespace troupe {

namespace {

// Takes away what stands in brackets of one kind, but for the whole word `kept`.
std::string without(std::string_view text, char open, char close, std::string_view kept) {
  std::string result;
  int depth = 0;
  while (!text.empty()) {
    if (depth == 0 && text.starts_with(kept)) {
      result += kept;
      text.remove_prefix(kept.size());
      continue;
    }
    if (text.front() == open) ++depth;
    if (depth == 0) result += text.front();
    if (text.front() == close && depth > 0) --depth;
    text.remove_prefix(1);
  }
  return result;
}

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;)
    text.erase(at, part.size());
}

} // namespace

std::string demangled(const char* name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text{
    abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free};
  return status == 0 ? text.get() : name;
}

std::string short_function_name(std::string_view function) {
  std::string name{function.substr(0, function.find(" [clone"))};
  erase_all(name, "(anonymous namespace)::");
  name = without(name, '(', ')', "operator()");
  name = without(name, '<', '>', "operator<");
  name = name.substr(0, name.find("::{lambda"));
  if (name.ends_with(" const")) name.resize(name.size() - 6);
  name = name.substr(0, name.find('.'));   // of what compilers make of a function: ".cold"
  return name.substr(name.rfind(' ') + 1); // behind what a template returns
}

#if TROUPE_BACKTRACE

namespace {

constexpr size_t places_max = 40;
constexpr size_t throws_max = 64;
constexpr size_t functions_max = 6;
constexpr size_t name_bytes_max = 100;

struct recorded_throw {
  const void* object = nullptr;
  std::array<uintptr_t, places_max> places{}; ///< Addresses of the calls, the innermost first.
  size_t count = 0;
};

/// The latest throws of the process, each of an exception that may live. It takes no memory and
/// waits for no thread while an exception is thrown: memory may be what there is none of, and a
/// child of a fork has not the thread that held the lock.
class recorded_throws {
public:
  void add(const recorded_throw& latest) {
    std::unique_lock guard{mutex_, std::try_to_lock};
    if (guard) all_[next_++ % all_.size()] = latest;
  }

  /// Another exception will lie there.
  void forget(const void* object) {
    std::unique_lock guard{mutex_, std::try_to_lock};
    if (!guard) return;
    for (auto& one : all_)
      if (one.object == object) one.object = nullptr;
  }

  [[nodiscard]] recorded_throw find(const void* object) {
    std::lock_guard guard{mutex_};
    auto found = std::ranges::find(all_, object, &recorded_throw::object);
    return found == all_.end() || object == nullptr ? recorded_throw{} : *found;
  }

private:
  std::mutex mutex_;
  std::array<recorded_throw, throws_max> all_{};
  size_t next_ = 0;
};

constinit recorded_throws latest_throws;

void ignore(void* /*data*/, const char* /*why*/, int /*number*/) {}

backtrace_state* symbols() {
  static auto* state = backtrace_create_state(nullptr, 1, ignore, nullptr);
  return state;
}

int write_down(void* data, uintptr_t place) {
  auto& record = *static_cast<recorded_throw*>(data);
  record.places[record.count++] = place;
  return record.count == places_max ? 1 : 0;
}

struct call {
  std::string function; ///< As the compiler named it; empty if not known.
  std::string file;
  int line = 0;
};

// The calls at one place: several, where the compiler put functions into others.
std::vector<call> calls_at(uintptr_t place) {
  std::vector<call> calls;
  auto add = [](void* data, uintptr_t /*place*/, const char* file, int line, const char* function) {
    if (function != nullptr)
      static_cast<std::vector<call>*>(data)->push_back({function, file ? file : "", line});
    return 0;
  };
  backtrace_pcinfo(symbols(), place, add, ignore, &calls);
  if (!calls.empty()) return calls;
  auto add_symbol = [](void* data, uintptr_t /*place*/, const char* symbol, uintptr_t /*value*/,
                       uintptr_t /*size*/) {
    if (symbol != nullptr) static_cast<std::vector<call>*>(data)->push_back({.function = symbol});
  };
  backtrace_syminfo(symbols(), place, add_symbol, ignore, &calls);
  return calls;
}

// Whether a function is of a library between the program's own ones, or of what starts threads.
bool is_of_library(std::string_view function) {
  constexpr std::array<std::string_view, 6> scopes{
    "troupe::", "caf::", "tbb::", "std::", "__gnu_cxx::", "__libc_start"};
  constexpr std::array<std::string_view, 5> names{"_start", "start_thread", "clone", "clone3",
                                                  "execute_native_thread_routine"};
  auto begins = [function](std::string_view scope) { return function.starts_with(scope); };
  return std::ranges::any_of(scopes, begins) || std::ranges::find(names, function) != names.end();
}

} // namespace

std::string throw_site_of(const std::exception_ptr& thrown) {
  // libstdc++ keeps in an exception_ptr the address of the exception, and nothing else.
  static_assert(sizeof thrown == sizeof(void*));
  auto found = latest_throws.find(*reinterpret_cast<void* const*>(&thrown));
  if (symbols() == nullptr) return {};
  std::string text;
  size_t functions = 0;
  for (size_t i = 0; i < found.count; ++i)
    for (const auto& [function, file, line] : calls_at(found.places[i])) {
      if (functions == functions_max) return text;
      auto name = short_function_name(demangled(function.c_str())).substr(0, name_bytes_max);
      if (is_of_library(name)) continue;
      text += (functions++ == 0 ? "" : " < ") + name;
      if (file.empty()) continue;
      text += " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(line) + ")";
    }
  return text;
}

#else

std::string throw_site_of(const std::exception_ptr& /*thrown*/) {
  return {};
}

#endif

} // namespace troupe

#if TROUPE_BACKTRACE

namespace {

// The function of that name that a program would find next, after the one in this file.
template <class Function>
Function next_of(const char* name) {
  auto* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s: the C++ library has none\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

} // namespace

// These take the places of the functions that a compiler calls for `throw`, and call them. Weak: a
// program with a C++ library of its own inside keeps that one's; the two addresses
// below have it link that. The names are others here, because headers declare them in several ways.
extern "C" {

[[gnu::used]] const void* const troupe_files_of_cxx_library[]
  = {reinterpret_cast<const void*>(&abi::__cxa_init_primary_exception),
     reinterpret_cast<const void*>(&abi::__cxa_free_exception)};

void* troupe_allocate_exception(size_t size) noexcept __asm__("__cxa_allocate_exception");

[[gnu::weak]] void* troupe_allocate_exception(size_t size) noexcept {
  static const auto next = next_of<void* (*)(size_t)>("__cxa_allocate_exception");
  auto* object = next(size);
  troupe::latest_throws.forget(object);
  return object;
}

[[noreturn]] void troupe_throw(void* object, void* type,
                               void (*destroy)(void*)) __asm__("__cxa_throw");

[[noreturn, gnu::weak]] void troupe_throw(void* object, void* type, void (*destroy)(void*)) {
  static const auto next = next_of<void (*)(void*, void*, void (*)(void*))>("__cxa_throw");
  troupe::recorded_throw record{.object = object};
  if (auto* state = troupe::symbols(); state != nullptr)
    backtrace_simple(state, 1, troupe::write_down, troupe::ignore, &record);
  troupe::latest_throws.add(record);
  next(object, type, destroy);
  std::abort(); // it does not return
}

} // extern "C"

#endif
