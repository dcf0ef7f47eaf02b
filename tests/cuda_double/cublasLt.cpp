// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "device.hpp"
#include "edl/core/bfloat16.hpp"
#include "numbers.hpp"

struct cublasLtContext {};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;
  std::int32_t batch = 1;
  std::int64_t stride = 0;  // from one matrix to the next
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  bool a_turned = false, b_turned = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace = 0, implementations = ~std::uint64_t(0);
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::map<int, std::uint32_t> alignments;  // 256 otherwise
};

namespace {

using edl::cuda_double::fail;
using layout = cublasLtMatrixLayoutOpaque_t;
using description = cublasLtMatmulDescOpaque_t;

std::size_t element(layout const& l) { return l.type == CUDA_R_32F ? 4 : 2; }
std::size_t bytes(layout const& l) {
  return std::size_t(l.stride * (l.batch - 1) + l.leading * (l.columns - 1) + l.rows) * element(l);
}

bool has_bias(description const& how) {
  return (how.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 || how.epilogue == CUBLASLT_EPILOGUE_BGRADA;
}

/// The extents m, n and k, if the layouts fit together.
struct extents {
  std::int64_t m, n, k;
};
std::optional<extents> fit(description const& how, layout const& a, layout const& b, layout const& d) {
  extents const e{how.a_turned ? a.columns : a.rows, how.b_turned ? b.rows : b.columns,
                  how.a_turned ? a.rows : a.columns};
  bool const inner = (how.b_turned ? b.columns : b.rows) == e.k;
  if (!inner || d.rows != e.m || d.columns != e.n || a.batch != d.batch || b.batch != d.batch) return {};
  return e;
}

/// What an algorithm is, kept in its opaque words.
struct algorithm {
  std::uint64_t number = 0, workspace = 0, alignment = 0, rounds = 0, wrong = 0, trusts = 0, forgets = 0;

  cublasLtMatmulAlgo_t opaque() const {
    return {{number, workspace, alignment, rounds, wrong, trusts, forgets, 0}};
  }
  static algorithm from(cublasLtMatmulAlgo_t const& a) {
    return {a.data[0], a.data[1], a.data[2], a.data[3], a.data[4], a.data[5], a.data[6]};
  }
};

float read(cudaDataType_t type, void const* at, std::int64_t i) {
  return type == CUDA_R_32F ? static_cast<float const*>(at)[i]
                            : edl::from_bfloat16(static_cast<std::uint16_t const*>(at)[i]);
}

void write(cudaDataType_t type, void* at, std::int64_t i, float v) {
  if (type == CUDA_R_32F)
    static_cast<float*>(at)[i] = v;
  else
    static_cast<std::uint16_t*>(at)[i] = edl::to_bfloat16(v);
}

/// op(x) by columns, as its factors are read.
std::vector<float> factor(layout const& l, bool turned, void const* at, bool rounds) {
  std::int64_t const rows = turned ? l.columns : l.rows, columns = turned ? l.rows : l.columns;
  std::vector<float> v(std::size_t(rows * columns));
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      v[std::size_t(j * rows + i)] = read(l.type, at, turned ? i * l.leading + j : j * l.leading + i);
  if (rounds) edl::cuda_double::product_inputs(v);
  return v;
}

void multiply(description const& how, layout const& la, layout const& lb, layout const& ld, extents e,
              algorithm const& with, void const* a, void const* b, void* d) {
  auto const x = factor(la, how.a_turned, a, with.rounds), y = factor(lb, how.b_turned, b, with.rounds);
  for (std::int64_t j = 0; j < e.n; ++j) {
    std::vector<float> column(std::size_t(e.m), 0.0f);
    for (std::int64_t k = 0; k < e.k; ++k)
      for (std::int64_t i = 0; i < e.m; ++i)
        column[std::size_t(i)] += x[std::size_t(k * e.m + i)] * y[std::size_t(j * e.k + k)];
    for (std::int64_t i = 0; i < e.m; ++i) {
      float v = column[std::size_t(i)];
      if (with.wrong) v = v * 1.25f + 0.5f;
      if (how.epilogue & CUBLASLT_EPILOGUE_BIAS) v += read(ld.type, how.bias, i);
      if (how.epilogue & CUBLASLT_EPILOGUE_RELU) v = v < 0 ? 0 : v;
      write(ld.type, d, j * ld.leading + i, v);
    }
  }
  if (how.epilogue == CUBLASLT_EPILOGUE_BGRADA)
    for (std::int64_t i = 0; i < e.m; ++i) {
      float sum = 0;
      for (std::int64_t k = 0; k < e.k; ++k) sum += x[std::size_t(k * e.m + i)];
      write(ld.type, how.bias, i, sum);
    }
}

template <class T>
bool take(T& to, void const* value, std::size_t size) {
  if (!value || size != sizeof(T)) return false;
  std::memcpy(&to, value, size);
  return true;
}

template <class P>
P* of_batch(layout const& l, P* first, std::int64_t i) {
  using byte = std::conditional_t<std::is_const_v<P>, char const, char>;
  return static_cast<byte*>(first) + std::size_t(i * l.stride) * element(l);
}

bool aligned(void const* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

}  // namespace

std::size_t cublasLtGetVersion() { return 130100; }

char const* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                 : "CUBLAS_STATUS_NOT_SUPPORTED";
}

char const* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success"
         : status == CUBLAS_STATUS_INVALID_VALUE
             ? "an unsupported value or parameter was passed to the function"
             : "the functionality requested is not supported";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  if (rows < 1 || columns < 1 || leading < std::int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *l = new layout{type, std::int64_t(rows), std::int64_t(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t attribute, void const* value,
                                                std::size_t size) {
  bool const good = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
                        ? take(l->batch, value, size) && l->batch > 0
                        : take(l->stride, value, size) && l->stride >= 0;
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete l;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* how, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *how = new description{.compute = compute};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t how) {
  delete how;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t how,
                                              cublasLtMatmulDescAttributes_t attribute, void const* value,
                                              std::size_t size) {
  std::int32_t turn = 0;
  std::uint32_t epilogue = 0;
  bool good = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      good = take(turn, value, size), how->a_turned = turn == CUBLAS_OP_T;
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      good = take(turn, value, size), how->b_turned = turn == CUBLAS_OP_T;
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      good = take(epilogue, value, size), how->epilogue = cublasLtEpilogue_t(epilogue);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      good = take(how->bias, value, size);
      break;
  }
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void const* value, std::size_t size) {
  bool good = false;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    good = take(p->workspace, value, size);
  else if (attribute == CUBLASLT_MATMUL_PREF_IMPL_MASK)
    good = take(p->implementations, value, size);
  else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    good = take(p->reductions, value, size);
  else
    good = take(p->alignments[attribute], value, size);
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// Some results are not to be used: one says so itself, and some compute something else, which shows, where
// the preferences exclude them.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t p, int requested,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (edl::cuda_double::whim("no_algorithms")) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!handle || requested < 1 || c->type != d->type || a->type != b->type)
    return CUBLAS_STATUS_INVALID_VALUE;
  auto const e = fit(*how, *a, *b, *d);
  if (!e) return CUBLAS_STATUS_INVALID_VALUE;
  bool const half = a->type == CUDA_R_16BF;
  if (!half && d->type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (has_bias(*how) && !aligned(how->bias, 16)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((how->epilogue & CUBLASLT_EPILOGUE_BIAS) && e->m % 2 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (how->epilogue == CUBLASLT_EPILOGUE_BGRADA && (!half || e->m % 4 != 0))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (how->epilogue == CUBLASLT_EPILOGUE_BGRADB) return CUBLAS_STATUS_NOT_SUPPORTED;

  auto const at_least = [&](int attribute) {
    auto const at = p->alignments.find(attribute);
    return at == p->alignments.end() ? 256u : at->second;
  };
  bool wide = true;
  for (auto const& [l, attribute] : {std::pair(a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
                                     std::pair(b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES),
                                     std::pair(c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
                                     std::pair(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)})
    wide = wide && at_least(attribute) >= 16 && std::size_t(l->leading) * element(*l) % 16 == 0 &&
           std::size_t(l->stride) * element(*l) % 16 == 0;
  bool const tensor_cores = (p->implementations & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0;
  bool const tf32 = how->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  auto const add = [&](algorithm const& al, cublasStatus_t state = CUBLAS_STATUS_SUCCESS) {
    if (*found < requested && al.workspace <= p->workspace)
      results[(*found)++] = {al.opaque(), std::size_t(al.workspace), state, 1.0f, {}};
  };
  std::uint64_t const rounds = !half && tf32;
  add({.number = 99, .wrong = 1}, CUBLAS_STATUS_NOT_SUPPORTED);
  if (p->reductions & (CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE))
    add({.number = 70, .workspace = 64, .wrong = 1});
  if (!half && !tf32 && tensor_cores) add({.number = 71, .wrong = 1});
  if (e->m % 2 != 0 && e->m > 4) add({.number = 72, .wrong = 1});  // and nothing says so
  bool const far = at_least(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) < 16 ||
                   at_least(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) < 16;
  if (far && (half || !tf32)) add({.number = 73, .trusts = 1});  // that they are aligned all the same
  if (d->batch > 1)  // that each product has its own first factor, or second
    for (std::uint64_t const which : {1, 2}) add({.number = 73 + which, .forgets = which});
  if (tensor_cores && wide && (half || tf32))
    add({.number = 66, .workspace = 8192, .alignment = 16, .rounds = rounds});
  if (tensor_cores && (half || tf32)) add({.number = 21, .rounds = rounds});
  if (!half) add({.number = 5, .workspace = 1000});
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(cublasLtMatmulAlgo_t const* a,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t size, std::size_t* written) {
  if (size != 4) return CUBLAS_STATUS_INVALID_VALUE;
  auto const number = std::uint32_t(attribute == CUBLASLT_ALGO_CONFIG_ID ? algorithm::from(*a).number
                                    : attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1
                                                                                   : 0);
  std::memcpy(value, &number, 4);
  *written = 4;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how, void const* alpha,
                              void const* a, cublasLtMatrixLayout_t la, void const* b,
                              cublasLtMatrixLayout_t lb, void const* beta, void const* c,
                              cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              cublasLtMatmulAlgo_t const* opaque, void* workspace, std::size_t workspace_size,
                              cudaStream_t stream) {
  auto const e = fit(*how, *la, *lb, *ld);
  if (!handle || !e || !opaque || lc->type != ld->type || c != d) return CUBLAS_STATUS_INVALID_VALUE;
  float one = 0, zero = 1;
  if (!take(one, alpha, 4) || !take(zero, beta, 4) || one != 1 || zero != 0)
    fail("cuBLASLt: alpha and beta are not 1 and 0");
  algorithm with = algorithm::from(*opaque);
  if (with.trusts && !(aligned(a, 16) && aligned(b, 16))) with.wrong = 1;
  if (workspace_size < with.workspace) return CUBLAS_STATUS_INVALID_VALUE;
  if (with.workspace > 0 &&
      (!aligned(workspace, 256) || !edl::cuda_double::on_device(workspace, workspace_size)))
    fail("cuBLASLt: the workspace is too small, not aligned, or not the GPU's");
  for (auto const& [p, l] : {std::pair<void const*, layout*>(a, la), std::pair<void const*, layout*>(b, lb),
                             std::pair<void const*, layout*>(d, ld)}) {
    if (!aligned(p, std::max<std::size_t>(with.alignment, element(*l)))) return CUBLAS_STATUS_INVALID_VALUE;
    if (!edl::cuda_double::on_device(p, bytes(*l))) fail("cuBLASLt: a matrix is not in the GPU's memory");
  }
  if (has_bias(*how)) {
    if (!aligned(how->bias, 16)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!edl::cuda_double::on_device(how->bias, std::size_t(e->m) * element(*ld)))
      fail("cuBLASLt: the bias is not in the GPU's memory");
  }
  edl::cuda_double::enqueue(stream,
                            [how = *how, la = *la, lb = *lb, ld = *ld, e = *e, with, a, b, d, workspace] {
                              std::memset(workspace, 0xff, with.workspace);
                              for (std::int64_t i = 0; i < ld.batch; ++i)
                                multiply(how, la, lb, ld, e, with, of_batch(la, a, with.forgets == 1 ? 0 : i),
                                         of_batch(lb, b, with.forgets == 2 ? 0 : i), of_batch(ld, d, i));
                            });
  return CUBLAS_STATUS_SUCCESS;
}
