// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// Gives the variables of a layer their names while somebody walks through it, outermost first. Names are
/// paths; a name that stands twice in one container is numbered from the second on, as Keras does.
class naming {
 public:
  void enter(std::string_view name);
  void leave();
  void add(variable_spec const& v);

  /// Where all that were added lie: parameters first.
  parameter_layout lay_out() const;

 private:
  struct level {
    std::size_t prefix = 0;  // of path_, as long as it was
    std::vector<std::string_view> taken;
  };
  struct named {
    std::string name;
    extents dims;
    bool trained;
  };

  std::string path_;
  std::vector<level> levels_{{}};
  std::vector<named> all_;
};

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/nn/naming.ipp"
#endif
