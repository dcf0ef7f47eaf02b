# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=DIR -P licences.cmake: every source file says under which licence it is. What `edl zoo init` gives away is its
# author's own.
cmake_minimum_required(VERSION 3.25)
set(without "")
foreach(folder IN ITEMS include tests tools bench cmake python)
  file(GLOB_RECURSE sources ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.ipp ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.cu
       ${ROOT}/${folder}/*.cuh ${ROOT}/${folder}/*.proto ${ROOT}/${folder}/*.cmake ${ROOT}/${folder}/*.py ${ROOT}/${folder}/*.sh
       ${ROOT}/${folder}/CMakeLists.txt)
  foreach(source IN LISTS sources)
    if(source MATCHES "/tools/zoo/template/|/__pycache__/")
      continue()
    endif()
    file(STRINGS ${source} licence LIMIT_COUNT 1 REGEX "SPDX-License-Identifier: Apache-2.0")
    if(licence STREQUAL "")
      string(APPEND without "  ${source}\n")
    endif()
  endforeach()
endforeach()
if(without)
  message(FATAL_ERROR "files without a line `SPDX-License-Identifier: Apache-2.0`:\n${without}")
endif()
