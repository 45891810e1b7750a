// cuBLASLt: a description becomes descriptors of the library, one for one. blas_emulated.hpp has the same names.
#pragma once
#if defined(STRATA_CUBLASLT)
#include <cublasLt.h>
#endif

#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <strata/cuda/machine/blas_product.hpp>
#include <strata/cuda/machine/machine.hpp>
#include <vector>

namespace strata::machine {

#if defined(STRATA_CUBLASLT)
inline constexpr bool has_blas = true;
/// The workspace of a product, in bytes: what NVIDIA recommends for Hopper and Blackwell.
inline constexpr std::size_t blas_workspace = std::size_t{32} << 20;

namespace detail {
inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_error({"cuBLASLt: ", what, ": ", cublasLtGetStatusString(status)});
}
/// The handle of a device, kept until the program ends: at that point the driver may be gone already.
inline cublasLtHandle_t blas_handle(int device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  const std::lock_guard locked(mutex);
  check(device, cudaSetDevice(device), "cudaSetDevice");
  cublasLtHandle_t& handle = handles[device];
  if (!handle) check(cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}
template <auto Destroy>
struct destroyed_by {
  void operator()(auto* p) const { Destroy(p); }
};
template <class Handle, auto Destroy>
using owned = std::unique_ptr<std::remove_pointer_t<Handle>, destroyed_by<Destroy>>;
using blas_layout = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using blas_operation = owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using blas_preference = owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
}  // namespace detail

/// Identifies the device and the library: algorithms chosen on one are invalid on another.
inline std::string blas_identity(int device) {
  cudaDeviceProp properties{};
  detail::check(device, cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return strata::detail::text_of(
      {properties.name, " with ", properties.multiProcessorCount, " multiprocessors, cuBLASLt ", long(cublasLtGetVersion())});
}

class blas_call {
  blas_product what_;
  detail::blas_operation operation_;
  detail::blas_layout a_, b_, d_;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    detail::check(cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof value), "a descriptor");
  }
  detail::blas_layout layout(cudaDataType_t type, long rows, long columns, const blas_matrix& of) const {
    cublasLtMatrixLayout_t made = nullptr;
    detail::check(cublasLtMatrixLayoutCreate(&made, type, std::uint64_t(rows), std::uint64_t(columns), of.leading), "a layout");
    detail::blas_layout all(made);
    const std::int32_t count = what_.count;
    const std::int64_t stride = of.stride;
    detail::check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "a layout");
    detail::check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                  "a layout");
    return all;
  }
  static cublasLtMatmulAlgo_t of_library(const blas_algorithm& how) {
    static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof how.numbers);
    return std::bit_cast<cublasLtMatmulAlgo_t>(how);
  }
  static constexpr cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU,
                                                     CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_BGRADA};

 public:
  blas_call(const queue&, const blas_product& what) : what_(what) {
    const bool halves = what.factors == factor_type::bf16;
    const cudaDataType_t stored = what.stores_bf16 ? CUDA_R_16BF : CUDA_R_32F;
    cublasLtMatmulDesc_t made = nullptr;
    detail::check(
        cublasLtMatmulDescCreate(
            &made, what.factors == factor_type::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a descriptor");
    operation_.reset(made);
    set(CUBLASLT_MATMUL_DESC_TRANSA, what.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, what.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogues[int(what.epilogue)]);
    if (has_bias(what.epilogue)) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, stored);
      set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, std::int64_t(what.bias_stride));
    }
    const cudaDataType_t factors = halves ? CUDA_R_16BF : CUDA_R_32F;
    a_ = layout(factors, what.rows_of_a(), what.a.transposed ? what.m : what.k, what.a);
    b_ = layout(factors, what.rows_of_b(), what.b.transposed ? what.k : what.n, what.b);
    d_ = layout(stored, what.m, what.n, what.d);
  }

  /// The algorithms that may be able to run it, the most promising first. Sums are not cut into parts that several blocks add up:
  /// leaves and rows give a device enough work.
  std::vector<blas_algorithm> algorithms(const queue& q) const {
    cublasLtMatmulPreference_t made = nullptr;
    detail::check(cublasLtMatmulPreferenceCreate(&made), "a preference");
    const detail::blas_preference preference(made);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      detail::check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value), "a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(blas_workspace));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(what_.a.alignment));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(what_.b.alignment));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(what_.d.alignment));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(what_.d.alignment));
    // Looked at for its alignment only.
    if (has_bias(what_.epilogue))
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void*>(std::uintptr_t(what_.bias_alignment)));
    cublasLtMatmulHeuristicResult_t found[16] = {};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(detail::blas_handle(q.device()), operation_.get(), a_.get(),
                                                                 b_.get(), d_.get(), d_.get(), made, 16, found, &count);
    std::vector<blas_algorithm> all;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i)
      if (found[i].state == CUBLAS_STATUS_SUCCESS) all.push_back(std::bit_cast<blas_algorithm>(found[i].algo));
    return all;
  }
  bool can_run(const queue& q, const blas_algorithm& how) const {
    const cublasLtMatmulAlgo_t algorithm = of_library(how);
    cublasLtMatmulHeuristicResult_t found{};
    return cublasLtMatmulAlgoCheck(detail::blas_handle(q.device()), operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                   &algorithm, &found) == CUBLAS_STATUS_SUCCESS &&
           found.workspaceSize <= blas_workspace;
  }
  void run(const queue& q, const blas_algorithm& how, const blas_addresses& at, bool adds) const {
    const cublasLtMatmulAlgo_t algorithm = of_library(how);
    const float one = 1, beta = adds ? 1.f : 0.f;
    if (has_bias(what_.epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.bias);
    detail::check(cublasLtMatmul(detail::blas_handle(q.device()), operation_.get(), &one, at.a, a_.get(), at.b, b_.get(), &beta,
                                 at.d, d_.get(), at.d, d_.get(), &algorithm, at.workspace, blas_workspace, q.handle()),
                  "a product of matrices");
  }
  /// The mean of some runs.
  double milliseconds(const queue& q, const blas_algorithm& how, const blas_addresses& at) const {
    constexpr int runs = 5;
    run(q, how, at, false);
    return milliseconds_of(q, [&] {
             for (int i = 0; i < runs; ++i) run(q, how, at, false);
           }) / runs;
  }
};

#else
inline constexpr bool has_blas = false;
inline constexpr std::size_t blas_workspace = 0;
#endif

}  // namespace strata::machine
