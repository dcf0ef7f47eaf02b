# SPDX-License-Identifier: Apache-2.0
# usage: cmake -DSOURCE=FILE -DCOMPILER=… -DID=… -DINCLUDES=… -DDEFINITIONS=… -P rejects.cmake
# A program that must not compile. What its first error says is on a line `// rejects: REGEX`, what GCC says besides, of
# where and why, on a line `// facts: REGEX`. It prints no more lines than 20, or than on a line `// Lines: N`.
cmake_minimum_required(VERSION 3.25)
list(TRANSFORM INCLUDES PREPEND -I)
list(TRANSFORM DEFINITIONS PREPEND -D)
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${COMPILER} -std=gnu++20 ${INCLUDES} ${DEFINITIONS}
                        -fsyntax-only ${SOURCE}
                RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles")
endif()
foreach(key IN ITEMS rejects facts Lines)
  file(STRINGS ${SOURCE} ${key} REGEX "^// ${key}: ")
  string(REPLACE "// ${key}: " "" ${key} "${${key}}")
endforeach()
if(NOT Lines)
  set(Lines 20)
endif()
string(REGEX MATCH "[^\n]*error: [^\n]*" first "${said}")
string(REGEX MATCHALL "\n" ends "${said}")
list(LENGTH ends count)
if(NOT rejects OR NOT first MATCHES "${rejects}")
  message(FATAL_ERROR "the first error is not `${rejects}` but:\n${first}\nof:\n${said}")
endif()
if(ID STREQUAL GNU AND facts AND NOT said MATCHES "${facts}")
  message(FATAL_ERROR "nothing is said of `${facts}`:\n${said}")
endif()
if(ID STREQUAL GNU AND count GREATER Lines)
  message(FATAL_ERROR "${count} lines are more than ${Lines}:\n${said}")
endif()
message(STATUS "${count} lines: ${first}")
