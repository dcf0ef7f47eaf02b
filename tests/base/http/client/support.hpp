// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "base/http/client/wire_server.hpp"
#include "edl/core/error.hpp"

namespace test {

inline authority const& issued() {
  static authority const a;
  return a;
}

/// What it says when it throws an E; otherwise what it threw, or nothing.
template <class E = edl::error, class F>
std::string thrown(F&& f) {
  try {
    f();
    return "nothing was thrown";
  } catch (E const& e) {
    return e.what();
  } catch (std::exception const& e) {
    return std::string("something else was thrown: ") + e.what();
  }
}

/// Whether it is one line that has all these parts.
inline bool says(std::string const& text, std::initializer_list<std::string> parts) {
  bool all = text.find('\n') == text.npos;
  for (auto const& part : parts) all = all && text.find(part) != text.npos;
  if (!all) MESSAGE(text);
  return all;
}

}  // namespace test
