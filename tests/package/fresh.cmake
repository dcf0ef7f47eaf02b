# SPDX-License-Identifier: Apache-2.0
# usage: cmake -DROOT=… -DWORK=… -DGENERATOR=… -P fresh.cmake
# A new build folder without a build type is optimised, and says so. Whatever program or library it installs is built
# by the installation when it is missing, as after the quick start, which builds one target.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=CMAKE_BUILD_TYPE ${CMAKE_COMMAND} -S ${ROOT} -B ${WORK}
                        -G ${GENERATOR}
                        -DEDL_TESTS=OFF -DEDL_EXAMPLES=OFF -DEDL_CUDA=OFF
                OUTPUT_VARIABLE said ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said MATCHES "no CMAKE_BUILD_TYPE is given: Release")
  message(FATAL_ERROR "nothing was said of the build type that is taken:\n${said}")
endif()
file(STRINGS ${WORK}/CMakeCache.txt type REGEX "^CMAKE_BUILD_TYPE:[A-Z]+=Release$")
if(NOT type)
  message(FATAL_ERROR "the build type is not Release")
endif()

set(seen 0)
file(GLOB_RECURSE scripts ${WORK}/cmake_install.cmake)
foreach(script IN LISTS scripts)
  file(READ ${script} text)
  string(REGEX MATCHALL "TYPE (EXECUTABLE|STATIC_LIBRARY|SHARED_LIBRARY|MODULE)[^)]*FILES[^)]*\"[^)]*\\)" rules "${text}")
  foreach(rule IN LISTS rules)
    string(REGEX MATCH "FILES[^\"]*\"([^\"]+)\"" file "${rule}")
    set(file ${CMAKE_MATCH_1})
    math(EXPR seen "${seen} + 1")
    string(FIND "${text}" "NOT EXISTS \"${file}\"" built)
    if(built EQUAL -1)
      message(FATAL_ERROR "${file} is installed, and not built when it is missing: call edl_build_missing()")
    endif()
  endforeach()
endforeach()
if(seen LESS 2)
  message(FATAL_ERROR "only ${seen} rules were found that install a program or library")
endif()
