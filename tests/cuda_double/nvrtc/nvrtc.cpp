// SPDX-License-Identifier: Apache-2.0
// A double of NVRTC, as a library that is opened in its place: the few functions that edl calls. The compiler
// of this machine makes a shared library of the source, which the double of CUDA loads as if it were machine
// code.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "generated.hpp"

namespace fs = std::filesystem;
using edl::cuda_double::code_header;

namespace {

/// What CUDA C++ has and C++ has not.
constexpr char beginning[] = R"(
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __shared__ static
struct dim { unsigned x, y, z; };
extern "C" __attribute__((visibility("default"))) struct {
  dim *thread, *block, *block_size, *grid_size;
  void (*wait_for_block)();
  unsigned long (*exchange)(unsigned lanes, unsigned long value, unsigned from, bool own);
} edl_hooks = {};
#define threadIdx (*edl_hooks.thread)
#define blockIdx (*edl_hooks.block)
#define gridDim (*edl_hooks.grid_size)
#define blockDim (*edl_hooks.block_size)
inline void __syncthreads() { edl_hooks.wait_for_block(); }
inline float __shfl_xor_sync(unsigned lanes, float value, int bits, int width) {
  unsigned v;
  __builtin_memcpy(&v, &value, 4);
  const int lane = threadIdx.x % 32, first = lane / width * width, other = (lane - first) ^ bits;
  v = (unsigned)edl_hooks.exchange(lanes, v, other < width ? first + other : lane, other >= width);
  __builtin_memcpy(&value, &v, 4);
  return value;
}
inline float __uint_as_float(unsigned v) { float f; __builtin_memcpy(&f, &v, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned v; __builtin_memcpy(&v, &f, 4); return v; }
#define expf __builtin_expf
#define expm1f __builtin_expm1f
#define logf __builtin_logf
#define log1pf __builtin_log1pf
#define tanhf __builtin_tanhf
#define sqrtf __builtin_sqrtf
#define fabsf __builtin_fabsf
#define powf __builtin_powf
#define erfcf __builtin_erfcf
#define log __builtin_log
#define sqrt __builtin_sqrt
#define sin __builtin_sin
#define cos __builtin_cos
)";

}  // namespace

struct program {
  std::string source, code, log;
};

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
char const* nvrtcGetErrorString(int result) {
  return result == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

int nvrtcCreateProgram(program** made, char const* source, char const*, int, char const* const*,
                       char const* const*) {
  return *made = new program{source, {}, {}}, 0;
}
int nvrtcDestroyProgram(program** of) { return delete *of, *of = nullptr, 0; }

int nvrtcCompileProgram(program* of, int count, char const* const* options) {
  std::string macros;
  bool has_target = false;
  for (int i = 0; i < count; ++i) {
    std::string const option = options[i];
    if (option.starts_with("--define-macro=")) macros += " -D" + option.substr(15);
    has_target = has_target || option.starts_with("--gpu-architecture=sm_");
  }
  if (!has_target) return of->log = "no architecture is given", 6;
  std::string name = (fs::temp_directory_path() / "edl-nvrtc-XXXXXX").string();
  if (!::mkdtemp(name.data())) return of->log = "no temporary directory", 6;
  fs::path const directory = name;
  std::string ending;
  std::regex const kernel(R"(void __launch_bounds__\(THREADS\) (\w+)\(call a\))");
  for (std::sregex_iterator it(of->source.begin(), of->source.end(), kernel), end; it != end; ++it) {
    std::string const each = (*it)[1];
    ending +=
        "extern \"C\" __attribute__((visibility(\"default\"))) void launch_" + each + "(void* a) { " + each +
        "(*(call*)a); }\nextern \"C\" __attribute__((visibility(\"default\"))) unsigned long const size_" +
        each + " = sizeof(call);\n";
  }
  std::ofstream(directory / "source.cpp") << beginning << "#line 1 \"source\"\n" << of->source << ending;
  // Unique symbols would be the same in all such libraries.
  std::string const command = EDL_DOUBLE_CXX
                              " -std=c++17 -O1 -w -shared -fPIC -fvisibility=hidden -fno-gnu-unique "
                              "-ffp-contract=off" +
                              macros + " -o " + name + "/code.so " + name + "/source.cpp 2> " + name + "/log";
  int const result = std::system(command.c_str());
  auto const slurp = [&](char const* file) {
    std::ifstream in(directory / file, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  of->log = slurp("log");
  std::string const made = slurp("code.so");
  code_header header;
  header.size = made.size();
  of->code = std::string(reinterpret_cast<char const*>(&header), sizeof(header)) + made;
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  return result == 0 && !made.empty() ? 0 : 6;
}

int nvrtcGetProgramLogSize(program* of, std::size_t* size) { return *size = of->log.size() + 1, 0; }
int nvrtcGetProgramLog(program* of, char* to) {
  return std::memcpy(to, of->log.c_str(), of->log.size() + 1), 0;
}
int nvrtcGetCUBINSize(program* of, std::size_t* size) { return *size = of->code.size(), 0; }
int nvrtcGetCUBIN(program* of, char* to) { return std::memcpy(to, of->code.data(), of->code.size()), 0; }

}  // extern "C"
