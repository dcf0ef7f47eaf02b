// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/matrix.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

constexpr int most_algorithms = 8;
constexpr std::uint64_t most_product_workspace = std::uint64_t(64) << 20;  // bytes

void check_cublas(cublasStatus_t status, product const* p, std::string_view doing) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw error(fmt::format("cuBLASLt: {}{}{}: {} ({})", doing, p ? " of " : "", p ? p->describe() : "",
                            cublasLtGetStatusName(status), cublasLtGetStatusString(status)));
}

template <auto Destroy>
struct destroy {
  template <class T>
  void operator()(T* handle) const {
    (void)Destroy(handle);
  }
};
template <class T, auto Destroy>
using owned = std::unique_ptr<std::remove_pointer_t<T>, destroy<Destroy>>;
using layout = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using description = owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using preference = owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

layout lay(product const& p, char const* name, cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t l = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&l, type, std::uint64_t(rows), std::uint64_t(columns), rows), &p,
               fmt::format("laying out {} ({} × {})", name, rows, columns));
  layout made(l);
  auto const set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    check_cublas(cublasLtMatrixLayoutSetAttribute(l, attribute, &value, sizeof(value)), &p,
                 fmt::format("laying out {} of {}", p.batch, name));
  };
  if (p.batch == 1) return made;
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::int32_t(p.batch));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  return made;
}

cublasComputeType_t compute_type(precision p) {
  return p == precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

char const* words(cublasLtEpilogue_t e) {
  switch (e) {
    case CUBLASLT_EPILOGUE_RELU:
      return ", relu";
    case CUBLASLT_EPILOGUE_BIAS:
      return ", bias";
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      return ", bias and relu";
    case CUBLASLT_EPILOGUE_BGRADA:
      return ", sums of the first";
    default:
      return "";
  }
}

}  // namespace

std::string product::describe() const {
  auto const type = [](cudaDataType_t t) { return t == CUDA_R_32F ? "float32" : "bfloat16"; };
  return fmt::format("{}{} × {} × {}{}{} ({} to {}{})", batch > 1 ? fmt::format("{} of ", batch) : "", m, n,
                     k, a_turned ? ", first turned" : "", b_turned ? ", second turned" : "", type(in),
                     type(out), words(after));
}

/// What is made once for a product.
struct matrix_products::prepared {
  layout a, b, d;
  description operation;
};

struct matrix_products::state {
  edl::precision precision = edl::precision::float32;
  owned<cublasLtHandle_t, cublasLtDestroy> handle;
  std::map<product, prepared> known;
};

matrix_products::matrix_products(edl::precision p) : s_(std::make_unique<state>()) {
  s_->precision = p;
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublasLtCreate(&handle), nullptr, "starting");
  s_->handle.reset(handle);
}

matrix_products::~matrix_products() = default;

matrix_products::prepared& matrix_products::prepare(product const& p) {
  if (auto const at = s_->known.find(p); at != s_->known.end()) return at->second;
  prepared made;
  made.a = lay(p, "the first", p.in, p.a_turned ? p.k : p.m, p.a_turned ? p.m : p.k);
  made.b = lay(p, "the second", p.in, p.b_turned ? p.n : p.k, p.b_turned ? p.k : p.n);
  made.d = lay(p, "the result", p.out, p.m, p.n);
  cublasLtMatmulDesc_t how = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&how, compute_type(s_->precision), CUDA_R_32F), &p,
               "describing a product");
  made.operation.reset(how);
  auto const set = [&](char const* name, cublasLtMatmulDescAttributes_t attribute, auto value) {
    check_cublas(cublasLtMatmulDescSetAttribute(how, attribute, &value, sizeof(value)), &p,
                 fmt::format("setting {} (attribute {}) of a product", name, int(attribute)));
  };
  set("the first factor's turn", CUBLASLT_MATMUL_DESC_TRANSA,
      std::int32_t(p.a_turned ? CUBLAS_OP_T : CUBLAS_OP_N));
  set("the second factor's turn", CUBLASLT_MATMUL_DESC_TRANSB,
      std::int32_t(p.b_turned ? CUBLAS_OP_T : CUBLAS_OP_N));
  set("the epilogue", CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t(p.after));
  return s_->known.emplace(p, std::move(made)).first->second;
}

namespace {

/// The bias' address, also for the heuristics: its alignment counts.
void set_bias(cublasLtMatmulDesc_t how, product const& p, void* at) {
  if (p.after == CUBLASLT_EPILOGUE_DEFAULT || p.after == CUBLASLT_EPILOGUE_RELU) return;
  check_cublas(cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof(at)), &p,
               "setting the bias");
}

}  // namespace

std::vector<product_way> matrix_products::propose(product const& p) {
  prepared& made = prepare(p);
  // Only its alignment is looked at now.
  set_bias(made.operation.get(), p, reinterpret_cast<void*>((std::uintptr_t(1) << 20) | bias_alignment));
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw), &p, "preparing the choice");
  preference const wanted(raw);
  auto const prefer = [&](char const* name, cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(raw, attribute, &value, sizeof(value)), &p,
                 fmt::format("setting {} (preference {}) for the choice", name, int(attribute)));
  };
  prefer("the workspace", CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_product_workspace);
  prefer("the first's alignment", CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(p.a_aligned));
  prefer("the second's alignment", CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(p.b_aligned));
  prefer("the result's alignment", CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(p.d_aligned));
  prefer("the result's alignment", CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(p.d_aligned));
  // Sums that are cut into parts are added in float32.
  prefer("how parts are added", CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  auto const proposed = [&] {
    std::array<cublasLtMatmulHeuristicResult_t, most_algorithms> results{};
    int found = 0;
    cublasStatus_t const status = cublasLtMatmulAlgoGetHeuristic(
        s_->handle.get(), made.operation.get(), made.a.get(), made.b.get(), made.d.get(), made.d.get(), raw,
        int(results.size()), results.data(), &found);
    std::vector<product_way> ways;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return ways;
    check_cublas(status, &p, "choosing an algorithm");
    for (int i = 0; i < found; ++i)
      if (results[std::size_t(i)].state == CUBLAS_STATUS_SUCCESS)
        ways.push_back({results[std::size_t(i)].algo, results[std::size_t(i)].workspaceSize});
    return ways;
  };
  if (s_->precision == precision::float32) {
    prefer("arithmetic", CUBLASLT_MATMUL_PREF_IMPL_MASK,
           ~std::uint64_t(CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK));
    if (auto ways = proposed(); !ways.empty()) return ways;
    // The type of the sums promises float32 by itself.
    prefer("arithmetic", CUBLASLT_MATMUL_PREF_IMPL_MASK, ~std::uint64_t(0));
  }
  return proposed();
}

void matrix_products::run(product const& p, product_way const& way, void const* a, void const* b, void* d,
                          void* more, void* workspace, cudaStream_t stream) {
  prepared& made = prepare(p);
  set_bias(made.operation.get(), p, more);
  float const one = 1, zero = 0;
  check_cublas(
      cublasLtMatmul(s_->handle.get(), made.operation.get(), &one, a, made.a.get(), b, made.b.get(), &zero, d,
                     made.d.get(), d, made.d.get(), &way.algorithm, workspace, way.workspace, stream),
      &p, "the product");
}

std::string describe(product_way const& way) {
  auto const ask = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    bool const known = cublasLtMatmulAlgoConfigGetAttribute(&way.algorithm, attribute, &value, sizeof(value),
                                                            &written) == CUBLAS_STATUS_SUCCESS;
    return known ? value : 0;
  };
  std::uint32_t const parts = ask(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  return fmt::format("cuBLASLt algorithm {} (tile {}, stages {}{})", ask(CUBLASLT_ALGO_CONFIG_ID),
                     ask(CUBLASLT_ALGO_CONFIG_TILE_ID), ask(CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     parts > 1 ? fmt::format(", sums in {} parts", parts) : "");
}

}  // namespace edl::cuda_library
