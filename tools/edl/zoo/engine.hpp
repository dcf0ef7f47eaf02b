// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::tool {

/// Builds and pushes images through an engine's command line: docker, or one that takes the same words
/// (podman, buildah, nerdctl).
class container_engine {
 public:
  /// `program` is looked for in PATH.
  explicit container_engine(std::string program) : program_(std::move(program)) {}

  /// Builds `folder`, which holds a Dockerfile; `more` are the engine's own arguments. Throws error: no
  /// engine, none that runs, none that this user may use, or a build that failed.
  void build(std::string const& image, std::string const& folder, std::vector<std::string> const& more) const;

  /// Throws error as `build` does, and where the registry refuses the image.
  void push(std::string const& image) const;

  /// Throws error, with what to do about it, when there is no engine that runs and that this user may use.
  void check() const;

 private:
  std::string program_;
};

/// What to do about an engine's complaint, after a colon; empty where it says enough itself.
std::string engine_advice(std::string const& program, std::string const& complaint);

}  // namespace edl::tool
