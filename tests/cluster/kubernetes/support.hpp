// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "cluster/kubernetes/wire_server.hpp"
#include "edl/cluster/kubernetes/access.hpp"
#include "edl/core/error.hpp"

namespace test {

inline authority const& issued() {
  static authority const a;
  return a;
}

inline edl::kubernetes::access to(wire_server const& s) {
  edl::kubernetes::access a;
  a.server = s.url();
  a.ca = issued().self.certificate;
  a.origin = "a test";
  a.token = [](bool) { return std::string("secret"); };
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

/// A directory for one test.
struct folder {
  std::filesystem::path path;
  folder() {
    auto name = (std::filesystem::temp_directory_path() / "edl-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  ~folder() { std::filesystem::remove_all(path); }
  folder(folder const&) = delete;

  /// As the kubelet does: the new file takes the old one's place.
  std::string write(std::string const& name, std::string const& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / (name + ".new")) << text;
    std::filesystem::rename(path / (name + ".new"), path / name);
    return (path / name).string();
  }
};

}  // namespace test
