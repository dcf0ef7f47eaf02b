// SPDX-License-Identifier: Apache-2.0
// What a model's program writes is the matter of tests/onnx.sh.
#include "export.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "edl/core/error.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace export_test {

using edl::tool::words;

TEST_CASE("edl export runs the model's program by its path, with the flags as they were given") {
  scratch const dir;
  std::string const program = dir / "mnist";
  std::ofstream(program) << "#!/bin/sh\n";
  auto const said = [](words const& line) { return refusal([&] { edl::tool::export_line(line); }); };
  words const rest{"--checkpoint=m", "--export-onnx", "a b.onnx", "--export_preprocess", "--set", "rate=1"};
  words line{program};
  line.insert(line.end(), rest.begin(), rest.end());
  CHECK(contains(said(line), "is not a program: it cannot be run"));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  words const wanted{program,
                     "export",
                     "--checkpoint_dir_for_init=m",
                     "--export_onnx=a b.onnx",
                     "--export_preprocess=true",
                     "--set=rate=1"};
  CHECK(edl::tool::export_line(line) == wanted);
  words last = rest;
  last.push_back(program);
  CHECK(edl::tool::export_line(last) == wanted);

  CHECK(contains(said(rest), "the model's program is missing"));
  auto const with = [&](std::string const& first) {
    line[0] = first;
    return said(line);
  };
  CHECK(contains(with(dir / "nothing"), "no program " + dir / "nothing"));
  CHECK(contains(with("no-such-program-anywhere"), "in PATH: give the path"));
  CHECK(contains(with(dir / "m.safetensors"), "is a model or a directory: name the program"));
  CHECK(contains(with(dir.path()), "is a model or a directory"));
  CHECK(contains(said({program, "--checkpoint=m"}), "--export_onnx is missing"));
  CHECK(contains(said({program, "--checkpoint=m", "--export_onnx="}), "--export_onnx= has no value"));
  CHECK(contains(said({program, "--export_onnx=m"}), "--checkpoint_dir_for_init is missing"));
  CHECK(contains(said({program, "--checkpoint=m", "--export_onnx=m", "--export_preproces"}), "did you mean"));
}

TEST_CASE("a program that ends well and has written nothing is no model's") {
  scratch const dir;
  std::string const file = dir / "m.onnx", program = dir / "program";
  auto const run = [&](std::string const& does) {
    std::ofstream(program) << "#!/bin/sh\n" << does << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return edl::tool::export_model({program, "--checkpoint=m", "--export_onnx=" + file});
  };
  CHECK(run("echo model >'" + file + "'") == 0);
  CHECK(contains(complaint([&] { run("exit 0"); }), "has not written " + file + ": name a program"));
  CHECK(run("exit 3") == 3);
  CHECK(run("kill -TERM $$") == 128 + 15);
}

}  // namespace export_test
