// SPDX-License-Identifier: Apache-2.0
// What the tests of a job's files share.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/job.hpp"
#include "edl/base/checkpoint/manifest.hpp"

namespace job {

using lines = std::vector<std::string>;

inline lines const several{"--num_ps_pods=1", "--num_workers=1"};

inline lines with(lines line, lines const& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

inline std::string part_of(std::string const& checkpoint) {
  return checkpoint + "/" + edl::checkpoint::read_manifest(checkpoint).files.at(0).name;
}

inline void damage(std::string const& checkpoint) {
  std::string const file = part_of(checkpoint);
  std::string content = slurp(file);
  content[content.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << content;
}

inline std::vector<std::string> names_in(std::string const& directory) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::size_t lines_in(std::string const& directory) {
  std::size_t n = 0;
  for (std::string const& name : names_in(directory))
    if (!name.starts_with('.')) n += count(slurp(directory + "/" + name), "\n");
  return n;
}

/// A model that was trained, with checkpoints of versions 32 and 64: made once, read by all.
struct trained {
  scratch dir;
  std::string checkpoints = dir / "checkpoints", output = dir / "output";

  trained() {
    CHECK(run(train({"--checkpoint_dir=" + checkpoints, "--checkpoint_steps=32", "--output=" + output}))
              .wait() == 0);
  }
};

inline trained const& model() {
  static trained const one;
  return one;
}

}  // namespace job
