// SPDX-License-Identifier: Apache-2.0
// The kernels that are made of expressions, compiled by the real NVRTC. That needs no GPU.
#include "cuda/expressions.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/nn/expression/composition.hpp"
#include "edl/compute/device/cuda/library/compiler.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/error.hpp"
#include "scratch_directory.hpp"

namespace expressions_test {

namespace expression = edl::nn::expression;
using edl::cuda_library::compiler;

namespace {

bool there_or_skip() try {
  return !compiler(80, false, {}).compile("extern \"C\" __global__ void none() {}", "nothing").empty();
} catch (edl::error const& none) {
  MESSAGE("skipped: " << std::string(none.what()));
  return false;
}

/// For both architectures, and both kinds of activations.
void check_compiles(expression::program const& p, edl::shape in, std::string_view name, std::size_t which) {
  auto const text = expression::cuda_source(p, in);
  CAPTURE(name);
  CAPTURE(text);
  for (int const architecture : {80, 90}) {
    std::string const code =
        compiler(architecture, (which + std::size_t(architecture)) % 4 == 1, {}).compile(text, name);
    CHECK(
        code.starts_with("\x7f"
                         "ELF"));
    CHECK((code.find(".text.rows") != code.npos) == (p.sections(1) > 0));
  }
}

}  // namespace

TEST_CASE("NVRTC compiles the kernels of every expression") {
  if (!there_or_skip()) return;
  std::size_t which = 0;
  auto const shape = [&] { return shapes[which++ % shapes.size()]; };
  each_layer([&]<class L>(L const&) {
    check_compiles(expression::compiled<L>::forward, shape(), nn::derived<L>::name, which);
    check_compiles(expression::compiled<L>::backward, shape(), nn::derived<L>::name, which);
  });
  check_compiles(expression::compiled<gate, 3>::forward, shape(), "gate", which);
  check_compiles(expression::compiled<gate, 3>::backward, shape(), "gate", which);
  each_loss([&]<class L>(L const&) {
    check_compiles(expression::compiled_loss<L>::both, shape(), expression::name_of_type<L>(), which);
  });
}

TEST_CASE("NVRTC compiles the kernels of random compositions") {
  if (!there_or_skip()) return;
  for (std::size_t seed = 1; seed <= 12; ++seed) {
    edl::shape const in = shapes[seed % shapes.size()];
    auto const form = expression::form_of(compositions_test::composition{seed}, in);
    auto const backward = expression::scheduler::backward(form, expression::deriver(form).result());
    check_compiles(expression::scheduler::forward(form, backward), in, "forward", seed);
    check_compiles(backward, in, "backward", seed);
  }
}

TEST_CASE("compiled kernels are kept, and compiled again if their file is damaged") {
  if (!there_or_skip()) return;
  namespace fs = std::filesystem;
  scratch const directory;
  std::string const of = directory / "kernels", text = "extern \"C\" __global__ void none() {}";
  compiler const c(90, false, of);
  std::string const code = c.compile(text, "nothing");
  auto const files = [&] {
    std::vector<std::string> all;
    for (auto const& each : fs::directory_iterator(of)) all.push_back(each.path().string());
    return all;
  };
  REQUIRE(files().size() == 1);
  std::string const kept = slurp(files()[0]);
  CHECK(kept.size() == code.size() + 8);
  auto const replace = [&](std::string const& by) { std::ofstream(files()[0], std::ios::binary) << by; };
  for (std::string const& damaged : {kept.substr(0, kept.size() - 1), kept.substr(0, 5), std::string(), [&] {
                                       std::string flipped = kept;
                                       flipped[100] = char(flipped[100] ^ 1);
                                       return flipped;
                                     }()}) {
    replace(damaged);
    CHECK(c.compile(text, "nothing") == code);
    CHECK(slurp(files()[0]) == kept);
  }
  std::string const made_up = "what is there is read";
  std::uint64_t const check = edl::digest(std::as_bytes(std::span(made_up)));
  replace(std::string(reinterpret_cast<char const*>(&check), sizeof(check)) + made_up);
  CHECK(c.compile(text, "nothing") == made_up);
  for (auto const& [architecture, half] : {std::pair(80, false), std::pair(90, true)})
    CHECK(compiler(architecture, half, of).compile(text, "nothing") != std::string());
  CHECK(files().size() == 3);
  for (std::size_t i = 0; i < compiler::most_files; ++i) std::ofstream(of + "/old" + std::to_string(i));
  (void)c.compile(text + "\n", "nothing");
  CHECK(files().size() == compiler::most_files);
}

TEST_CASE("a source that does not compile is an error with its name, and NVRTC's words") {
  if (!there_or_skip()) return;
  std::string why;
  try {
    (void)compiler(90, false, {}).compile("extern \"C\" __global__ void none() { unknown(); }", "my_layer");
  } catch (edl::error const& e) {
    why = e.what();
  }
  CHECK(why.find("`my_layer`") != why.npos);
  CHECK(why.find("unknown") != why.npos);
}

}  // namespace expressions_test
