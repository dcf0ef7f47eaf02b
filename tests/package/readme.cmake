# SPDX-License-Identifier: Apache-2.0
# usage: cmake -DREADME=… -DSTAGE=… -DWORK=… -DGENERATOR=… -P readme.cmake
# The project of the README, as it stands there: without a build type it is optimised, and says so; what a user asks for is
# left alone.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
foreach(kind IN ITEMS cpp cmake)
  file(READ ${README} text)
  string(FIND "${text}" "```${kind}\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${README} has no snippet of ${kind}")
  endif()
  string(LENGTH "```${kind}\n" length)
  math(EXPR begin "${begin} + ${length}")
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "```" end)
  string(SUBSTRING "${text}" 0 ${end} ${kind})
endforeach()
file(WRITE ${WORK}/main.cpp "${cpp}")
file(WRITE ${WORK}/CMakeLists.txt "${cmake}")

# What is said, and the command that compiles the model, go into `said` and `command`.
macro(configure folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=CMAKE_BUILD_TYPE --unset=CXXFLAGS --unset=CFLAGS ${CMAKE_COMMAND}
                          -S ${WORK} -B ${WORK}/${folder} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${STAGE}
                          -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ${ARGN}
                  OUTPUT_VARIABLE said ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${WORK}/${folder}/compile_commands.json commands)
  string(JSON command GET "${commands}" 0 command)
endmacro()

configure(build)
if(NOT said MATCHES "no CMAKE_BUILD_TYPE is given: Release" OR NOT command MATCHES " -O3 ")
  message(FATAL_ERROR "the README's model is not optimised:\n${said}\n${command}")
endif()
configure(debug -DCMAKE_BUILD_TYPE=Debug)
if(said MATCHES "no CMAKE_BUILD_TYPE" OR command MATCHES " -O[1-3s]" OR NOT command MATCHES " -g ")
  message(FATAL_ERROR "Debug was asked for, and not given:\n${said}\n${command}")
endif()
configure(flags -DCMAKE_CXX_FLAGS=-O1)
if(said MATCHES "no CMAKE_BUILD_TYPE" OR NOT command MATCHES " -O1 " OR command MATCHES " -O3 ")
  message(FATAL_ERROR "-O1 was asked for, and not given:\n${said}\n${command}")
endif()
