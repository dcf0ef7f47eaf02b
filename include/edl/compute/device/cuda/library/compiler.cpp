// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/compiler.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "edl/core/digest.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

namespace fs = std::filesystem;

/// The functions of NVRTC that are needed, declared as in nvrtc.h.
struct nvrtc {
  struct program;

  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(program** made, char const* source, char const* name, int headers, char const* const* texts,
                char const* const* names) = nullptr;
  int (*destroy)(program** of) = nullptr;
  int (*compile)(program* of, int count, char const* const* options) = nullptr;
  int (*log_size)(program* of, std::size_t* size) = nullptr;
  int (*log)(program* of, char* to) = nullptr;
  int (*code_size)(program* of, std::size_t* size) = nullptr;
  int (*code)(program* of, char* to) = nullptr;
  char const* (*words)(int result) = nullptr;
  int major = 0, minor = 0;
  std::string why;

  nvrtc() {
    void* library = nullptr;
    char const* const named = std::getenv("EDL_NVRTC_LIBRARY");
    // It stays open, as CUDA's other libraries do.
    for (char const* each : {named ? named : "libnvrtc.so.13", named ? nullptr : "libnvrtc.so.12"})
      if (!library && each && !(library = ::dlopen(each, RTLD_NOW | RTLD_LOCAL)) && why.empty())
        why = fmt::format("NVRTC does not load: {}", ::dlerror());
    if (!library) return;
    why.clear();
    auto const find = [&](auto& into, char const* symbol) {
      void* const at = ::dlsym(library, symbol);
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(at);
      if (!at && why.empty()) why = fmt::format("NVRTC has no {}", symbol);
    };
    find(version, "nvrtcVersion");
    find(create, "nvrtcCreateProgram");
    find(destroy, "nvrtcDestroyProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(code_size, "nvrtcGetCUBINSize");
    find(code, "nvrtcGetCUBIN");
    find(words, "nvrtcGetErrorString");
    if (why.empty()) (void)version(&major, &minor);
  }
};

nvrtc const& nvrtc_for(std::string_view name) {
  static nvrtc const it;
  if (!it.why.empty())
    throw error(fmt::format(
        "GPU: `{}` is an expression, whose kernels NVRTC compiles, and {}; install CUDA's NVRTC, name "
        "it by EDL_NVRTC_LIBRARY, or compute on the processor (--device=cpu)",
        name, it.why));
  return it;
}

std::uint64_t digest_of(std::string_view text, std::uint64_t seed = 0) {
  return digest(std::as_bytes(std::span(text)), seed);
}

/// Kept code is preceded by its digest.
std::string read_kept(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t expected = 0;
  if (!in.read(reinterpret_cast<char*>(&expected), sizeof(expected))) return {};
  std::string code{std::istreambuf_iterator<char>(in), {}};
  return digest_of(code) == expected ? code : std::string();
}

/// Failures are of no consequence: the next process compiles again.
void keep(fs::path const& path, std::string const& code, std::size_t most) {
  std::error_code failed;
  fs::path const directory = path.parent_path();
  fs::create_directories(directory, failed);
  std::vector<std::pair<fs::file_time_type, fs::path>> all;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code gone;
    all.emplace_back(it->last_write_time(gone), it->path());
  }
  std::ranges::sort(all);
  for (std::size_t i = 0; i + most <= all.size(); ++i) fs::remove(all[i].second, failed);
  fs::path const fresh = fmt::format("{}.{}", path.string(), ::getpid());
  std::ofstream out(fresh, std::ios::binary);
  std::uint64_t const check = digest_of(code);
  out.write(reinterpret_cast<char const*>(&check), sizeof(check))
      .write(code.data(), std::streamsize(code.size()));
  out.close();
  if (out) fs::rename(fresh, path, failed);
  if (!out || failed) fs::remove(fresh, failed);
}

}  // namespace

std::string compiler::make(std::string const& source, std::string_view name) const {
  nvrtc const& of = nvrtc_for(name);
  auto const check = [&](int result, std::string_view doing) {
    if (result != 0) throw error(fmt::format("GPU: NVRTC: {} `{}`: {}", doing, name, of.words(result)));
  };
  nvrtc::program* program = nullptr;
  check(of.create(&program, source.c_str(), "expression.cu", 0, nullptr, nullptr), "taking the source of");
  struct ender {
    nvrtc const& of;
    nvrtc::program*& program;
    ~ender() { (void)of.destroy(&program); }
  } const end{of, program};
  std::string const target = fmt::format("--gpu-architecture=sm_{}", architecture_);
  std::array<char const*, 3> const options{target.c_str(), "--std=c++17", "--define-macro=HALF"};
  if (int const result = of.compile(program, half_ ? 3 : 2, options.data()); result != 0) {
    std::size_t size = 0;
    (void)of.log_size(program, &size);
    std::string log(size, '\0');
    (void)of.log(program, log.data());
    throw error(
        fmt::format("GPU: the kernels of `{}` do not compile ({}); compute on the processor "
                    "(--device=cpu), and report this as a bug of edl: {}",
                    name, of.words(result), std::string_view(log.c_str()).substr(0, 1000)));
  }
  std::size_t size = 0;
  check(of.code_size(program, &size), "taking the code of");
  std::string code(size, '\0');
  check(of.code(program, code.data()), "taking the code of");
  return code;
}

std::string compiler::compile(std::string const& source, std::string_view name) const {
  if (directory_.empty()) return make(source, name);
  nvrtc const& of = nvrtc_for(name);
  std::string const about =
      fmt::format("{}.{} sm_{} {}", of.major, of.minor, architecture_, half_ ? "half" : "");
  fs::path const path =
      fs::path(directory_) /
      fmt::format("{:016x}{:016x}", digest_of(source, digest_of(about)), digest_of(about, digest_of(source)));
  if (std::string code = read_kept(path); !code.empty()) return code;
  std::string const code = make(source, name);
  keep(path, code, most_files);
  return code;
}

}  // namespace edl::cuda_library
