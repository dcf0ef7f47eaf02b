# SPDX-License-Identifier: Apache-2.0
# usage: cmake -DROOT=… -DSTAGE=… -DWORK=… -DGENERATOR=… -DFLAGS=… -P consumers.cmake
# The projects of the examples find the installed package; one of a model and one of the headers alone are built with it,
# and run. What the examples' sources need of it is seen in the tree.
cmake_minimum_required(VERSION 3.25)
foreach(project IN ITEMS examples/mnist examples/cifar10 examples/census examples/pictures examples/remote
                         tests/package/consumer)
  get_filename_component(name ${project} NAME)
  file(REMOVE_RECURSE ${WORK}/${name})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${ROOT}/${project} -B ${WORK}/${name} -G ${GENERATOR}
                          -DCMAKE_PREFIX_PATH=${STAGE} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
                          -DCMAKE_CXX_FLAGS=${FLAGS}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${WORK}/${name}/CMakeCache.txt found REGEX "^edl_DIR:[A-Z]+=${STAGE}/")
  if(NOT found)
    message(FATAL_ERROR "${project} has found another edl than that in ${STAGE}")
  endif()
endforeach()
file(GLOB_RECURSE config ${STAGE}/edl-config.cmake)
file(STRINGS ${config} by_gcc REGEX "compiled by GNU")
find_program(other NAMES clang++-19 clang++-16)
if(other AND by_gcc)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${ROOT}/examples/mnist -B ${WORK}/other -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${STAGE}
                          -DCMAKE_CXX_COMPILER=${other}
                  ERROR_VARIABLE said RESULT_VARIABLE result)
  if(result EQUAL 0 OR NOT said MATCHES "was compiled by GNU")
    message(FATAL_ERROR "what Clang compiles is to be linked with what GCC has compiled: ${result}\n${said}")
  endif()
  file(WRITE ${WORK}/headers/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES CXX)
find_package(edl REQUIRED CONFIG COMPONENTS header_only)
")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/headers -B ${WORK}/headers/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${STAGE}
                          -DCMAKE_CXX_COMPILER=${other}
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/consumer --parallel 2 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/consumer/consumer train ERROR_VARIABLE said RESULT_VARIABLE result)
if(result EQUAL 0 OR NOT said MATCHES "--training_data")
  message(FATAL_ERROR "`consumer train` ended with ${result} and said:\n${said}")
endif()
