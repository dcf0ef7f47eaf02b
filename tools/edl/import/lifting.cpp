// SPDX-License-Identifier: Apache-2.0
#include "import/lifter.hpp"

namespace edl::tool::lifting {

tensor turned(tensor const& t, numbers const& order) {
  tensor r{.dims = {}, .of_ints = t.of_ints};
  numbers dims = t.dims;
  view v = in_order(dims);
  view to{v.sizes, {}};
  for (std::int64_t const i : order) {
    if (i < 0 || i >= std::int64_t(dims.size())) throw unsupported{"its axes"};
    r.dims.push_back(dims[std::size_t(i)]);
    to.axes.push_back(v.axes[std::size_t(i)]);
  }
  for (std::size_t const at : to.places())
    if (t.of_ints)
      r.ints.push_back(t.ints[at]);
    else
      r.floats.push_back(t.floats[at]);
  return r;
}

network lift(onnx_file::network const& graph, std::map<std::string, std::int64_t> const& extents) {
  return lifter(graph, extents).run();
}

}  // namespace edl::tool::lifting
