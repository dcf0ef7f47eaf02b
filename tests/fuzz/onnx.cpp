// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <string>

#include "edl/compute/onnx/initializers.hpp"
#include "fuzz.hpp"

namespace onnx_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  // "@@" becomes its own name, as of a file beside it.
  static int const named = ::fcntl(std::stoi(file.name()), F_DUPFD, 10);
  std::string bytes(fuzz::text(data, size));
  if (auto const at = bytes.find("@@"); at != std::string::npos && named < 100)
    bytes.replace(at, 2, std::to_string(named));
  std::string const path = file.with(bytes);
  fuzz::takes([&] {
    edl::onnx::initializers const m(path);
    for (auto const& t : m.all()) {
      fuzz::require(m.find(t.name) == &t, "a tensor is found by its name");
      fuzz::require(t.dims.size() <= 8, "a tensor has few extents");
      if (!t.floats()) continue;
      fuzz::require(t.offset + t.size <= bytes.size(), "a tensor lies in its file");
      std::uint64_t n = 1;
      for (std::uint64_t const d : t.dims) n *= d;
      fuzz::require(m.read(t).size() == n, "a tensor has as many numbers as its extents say");
    }
  });
  return 0;
}

}  // namespace onnx_fuzz
