// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/nn/layer.hpp"
#include "edl/core/layout.hpp"

namespace edl::nn {

/// The last of the names of siblings, numbered if it occurs before: `dense`, then `dense_1`, as in Keras.
std::string numbered(std::span<std::string_view const> names);

/// A container's name for its child: the child's role, or else its kind.
template <class L>
constexpr std::string_view child_name(L const&, std::string_view role) {
  return role.empty() ? name_of<L>() : role;
}

/// The same for child number `index`, numbered among its siblings. The names of its variables contain it.
template <container C>
std::string child_name(C const& of, shape in, std::size_t index) {
  std::vector<std::string_view> names;
  of.children(in, [&](auto const& child, shape, std::string_view role) {
    names.push_back(child_name(child, role));
    return names.size() <= index;
  });
  return numbered(names);
}

/// Names the variables of a layer during a traversal, outermost first. Names are paths of `child_name`s.
class naming {
 public:
  void enter(std::string_view name);
  void leave();
  void add(variable_spec const& v);

  /// The layout of all added variables but frozen ones: parameters first. Throws edl::error if two variables
  /// have one name.
  parameter_layout lay_out() const;

  /// The layout of the frozen ones, apart, as parameters.
  parameter_layout lay_out_frozen() const;

 private:
  struct level {
    std::size_t prefix = 0;  // of path_, as long as it was
    std::vector<std::string_view> taken;
  };
  struct named {
    std::string name;
    extents dims;
    bool trained, frozen;
  };

  std::string path_;
  std::vector<level> levels_{{}};
  std::vector<named> all_;
};

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/naming.ipp"
#endif
