// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/shape.hpp"
#include "import/lifting.hpp"

namespace edl::tool::lifting {

/// The axes that a term has.
enum over : int { nowhere = 0, channels = 1, places = 2, both = 3 };

/// A tensor that is computed element by element, or by sums along axes, from results of the network.
struct term {
  std::string op;  ///< "result", "number", "variable", "+", "<", "sqrt", "sum", …
  std::vector<int> args = {};
  int along = nowhere;             ///< of a reduction
  int over = both;                 ///< its own axes
  shape whole;                     ///< of the formula that it is a part of
  int result = -1;                 ///< of "result"
  double number = 0;               ///< of "number"
  std::vector<float> values = {};  ///< of "variable"
  bool shared = false;             ///< several nodes read it
};

class term_list {
 public:
  term& operator[](int index) { return all_[std::size_t(index)]; }
  term const& operator[](int index) const { return all_[std::size_t(index)]; }
  int add(term t);
  int leaf(int result, shape whole, int over = both);
  /// Its own extents.
  shape shape_of(int index) const;

 private:
  std::vector<term> all_;
};

/// A layer of its own.
struct formula {
  std::string name;
  std::vector<int> from;  ///< results
  std::vector<variable> variables;
};

/// Why a node has no layer.
struct unsupported {
  std::string why;
};

/// Writes the struct of a term, of leaves with their results. It joins `all`, unless an equal one is there.
/// Throws `unsupported`.
formula write_formula(term_list const& terms, int root, std::map<int, int> const& leaves,
                      std::vector<std::string>& all);

/// a, b, …, z, aa, ab, …
std::string letters(int n);

/// A number as it is written in C++. Throws `unsupported` for what is none there.
std::string literal(float x);

}  // namespace edl::tool::lifting
