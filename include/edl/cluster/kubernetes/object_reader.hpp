// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace edl::kubernetes {

/// Reads the members of a JSON object. Its errors name the object's owner, the wrong field and what is
/// expected, for example: "team/mnist: spec.workers.min is 0: expected a whole number from 1 to 10000". A
/// member that is absent or null leaves its destination unchanged. The object must outlive the reader.
///
/// Thread safety: safe.
class object_reader {
 public:
  /// `path`: where the object is in the document: "" or "spec.workers".
  object_reader(nlohmann::json const& object, std::string whose, std::string path);

  bool has(char const* name) const { return find(name); }
  nlohmann::json const* find(char const* name) const;  ///< null: absent

  object_reader object(char const* name) const;  ///< an empty one if absent
  std::vector<object_reader> objects(char const* name, std::size_t most) const;

  void take(char const* name, bool& into) const;
  /// Reads texts of at most `most` bytes, without zero bytes.
  void take(char const* name, std::string& into, std::size_t most = 4096) const;
  void take(char const* name, std::vector<std::string>& into, std::size_t most, std::size_t longest) const;
  void take(char const* name, std::map<std::string, std::string>& into) const;

  template <class T>
  void take_number(char const* name, T& into, std::int64_t least, std::int64_t most) const {
    if (find(name)) into = T(number(name, least, most));
  }
  std::int64_t number(char const* name, std::int64_t least, std::int64_t most) const;
  double fraction(char const* name) const;  ///< finite and not negative; 0 if absent

  /// Throws error: "WHOSE: PATH.NAME WHAT".
  [[noreturn]] void fail(std::string const& name, std::string const& what) const;

 private:
  std::string text(nlohmann::json const& v, std::string const& name, std::size_t most) const;

  nlohmann::json const* object_;
  std::string whose_, path_;
};

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/object_reader.ipp"
#endif
