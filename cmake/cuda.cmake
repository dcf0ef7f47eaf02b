# SPDX-License-Identifier: Apache-2.0
# The library for GPUs, libedl-cuda.so: programs open it when one is asked for, so that they need none of this to be
# built or to start.
find_program(EDL_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
find_library(EDL_CUDNN_LIBRARY cudnn HINTS /usr/local/cuda/lib64)
find_path(EDL_CUDNN_INCLUDE cudnn_graph.h HINTS /usr/local/cuda/include)  # which cuDNN has from 9 on
set(edl_cuda_found OFF)
if(EDL_NVCC AND EDL_CUDNN_LIBRARY AND EDL_CUDNN_INCLUDE)
  execute_process(COMMAND ${EDL_NVCC} --version OUTPUT_VARIABLE edl_nvcc_says)
  if(edl_nvcc_says MATCHES "release ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.8)
    set(edl_cuda_found ON)
  endif()
endif()
option(EDL_CUDA "Build the library for GPUs (CUDA Toolkit 12.8 or newer, cuDNN 9)" ${edl_cuda_found})
message(STATUS "CUDA: ${EDL_CUDA}")
if(NOT EDL_CUDA)
  return()
endif()
if(NOT edl_cuda_found)
  message(FATAL_ERROR "EDL_CUDA=ON, but nvcc 12.8 or newer, or cuDNN 9, is not found: put nvcc into PATH, and name cuDNN with -DEDL_CUDNN_LIBRARY=... and -DEDL_CUDNN_INCLUDE=...")
endif()

# A100, H100 and H200, and as PTX whatever follows.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
set(CMAKE_CUDA_COMPILER ${EDL_NVCC})
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB edl_cuda_units CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/edl/compute/device/cuda/library/kernels/*.cu
     ${PROJECT_SOURCE_DIR}/include/edl/compute/device/cuda/library/*.cpp)
# CMake 3.31 compiles CUDA sources together, too. Those have constants of the same names.
set(edl_cuda_kernels ${edl_cuda_units})
list(FILTER edl_cuda_kernels INCLUDE REGEX "[.]cu$")
set_source_files_properties(${edl_cuda_kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
add_library(edl-cuda SHARED ${edl_cuda_units})
target_include_directories(edl-cuda PRIVATE ${PROJECT_SOURCE_DIR}/include ${CUDAToolkit_INCLUDE_DIRS}
                           ${EDL_CUDNN_INCLUDE})
target_compile_features(edl-cuda PRIVATE cxx_std_20)
# CMake 3.25 does not know what CUDA 13 compiles.
target_compile_options(edl-cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -Werror=all-warnings>
                       $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers -Wno-subobject-linkage>)
target_link_libraries(edl-cuda PRIVATE CUDA::cudart_static CUDA::cublasLt ${EDL_CUDNN_LIBRARY} fmt::fmt-header-only)
set_target_properties(edl-cuda PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} UNITY_BUILD ${EDL_UNITY} UNITY_BUILD_BATCH_SIZE 16)
edl_build_missing(edl-cuda)
install(TARGETS edl-cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
