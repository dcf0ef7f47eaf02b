// SPDX-License-Identifier: Apache-2.0
// needs: tools/edl/import/attention.cpp
// needs: tools/edl/import/formula.cpp
// needs: tools/edl/import/lifting.cpp
// needs: tools/edl/import/network_file.cpp
// needs: tools/edl/import/nodes.cpp
// needs: tools/edl/import/sequences.cpp
// needs: tools/edl/import/view.cpp
// needs: tools/edl/import/writing.cpp
#include <cctype>
#include <string>

#include "fuzz.hpp"
#include "import/lifting.hpp"
#include "import/network_file.hpp"
#include "import/writing.hpp"

namespace onnx_import_fuzz {

namespace tool = edl::tool;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  std::string const path = file.with(std::string(fuzz::text(data, size)));
  fuzz::takes([&] {
    auto const graph = tool::onnx_file::read_network(path);
    auto const net = tool::lifting::lift(graph, {});
    auto const made = tool::lifting::write_program(net, "net", "net.onnx");
    for (char const c : made.text)
      fuzz::require(c == '\n' || !std::iscntrl(static_cast<unsigned char>(c)),
                    "a source has no control characters");
    fuzz::require(made.text.find("\\\n") == std::string::npos, "no comment goes on with the next line");
    for (auto const& [name, of] : made.variables) {
      std::int64_t n = 1;
      for (std::int64_t const d : of->dims) n *= d;
      fuzz::require(std::int64_t(of->values.size()) == n,
                    "a variable has as many numbers as its extents say");
    }
  });
  return 0;
}

}  // namespace onnx_import_fuzz
