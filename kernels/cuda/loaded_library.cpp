// SPDX-License-Identifier: Apache-2.0
// Loading a library by the system's loader.
#include "kernels/cuda/loaded_library.hpp"

#include <dlfcn.h>

namespace troupe::cuda {

expected<loaded_library> loaded_library::open(const std::string& called, const std::string& file,
                                              const std::string& folder) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) handle = ::dlopen((folder + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(errc::resource, called + " cannot be loaded: " + ::dlerror()
                                  + "; install it, or add its folder to LD_LIBRARY_PATH");
  return loaded_library{handle};
}

void* loaded_library::address_of(const char* name) const {
  return ::dlsym(handle_, name);
}

} // namespace troupe::cuda
