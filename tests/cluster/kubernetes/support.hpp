// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "base/http/client/support.hpp"
#include "edl/cluster/kubernetes/access.hpp"

namespace test {

inline edl::kubernetes::access to(wire_server const& s) {
  edl::kubernetes::access a;
  a.server = s.url();
  a.ca = issued().self.certificate;
  a.origin = "a test";
  a.token = [](bool) { return std::string("secret"); };
  return a;
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
