# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=DIR -DCLANG_FORMAT=PROGRAM -P format.cmake: every source file is as clang-format 16 lays it out. With -DFIX=ON
# the files are rewritten.
cmake_minimum_required(VERSION 3.25)
if(NOT CLANG_FORMAT)
  message("skipped: there is no clang-format-16 (tools/test installs it)")
  return()
endif()
set(sources "")
foreach(folder IN ITEMS include tests tools bench examples)
  file(GLOB_RECURSE found ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.ipp ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.cu
       ${ROOT}/${folder}/*.cuh)
  list(APPEND sources ${found})
endforeach()
# A network that a newcomer reads first has a layer on each line.
list(FILTER sources EXCLUDE REGEX "/tools/edl/zoo/template/|/examples/mnist/main\\.cpp$")
if(FIX)
  execute_process(COMMAND ${CLANG_FORMAT} -i ${sources} COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
execute_process(COMMAND ${CLANG_FORMAT} --dry-run -Werror ${sources} RESULT_VARIABLE wrong ERROR_VARIABLE told)
if(wrong)
  string(REGEX MATCHALL "[^\n]*: error: [^\n]*" lines "${told}")
  string(REPLACE ";" "\n" lines "${lines}")
  message(FATAL_ERROR "files that clang-format 16 lays out otherwise (`cmake --build build/default --target format` mends them):\n${lines}")
endif()
