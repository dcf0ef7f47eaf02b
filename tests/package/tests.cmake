# SPDX-License-Identifier: Apache-2.0
# The installed package, as projects outside of the tree use it.
set(stage ${CMAKE_BINARY_DIR}/stage)
set(work ${CMAKE_BINARY_DIR}/consumers)
if(EDL_SANITIZE)
  set(sanitize -fsanitize=${EDL_SANITIZE})
endif()

add_test(NAME package/install COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${stage})
set_tests_properties(package/install PROPERTIES FIXTURES_SETUP stage)
add_test(NAME package/fresh COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DWORK=${work}/fresh
         -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_LIST_DIR}/fresh.cmake)
add_test(NAME package/readme COMMAND ${CMAKE_COMMAND} -DREADME=${PROJECT_SOURCE_DIR}/README.md -DSTAGE=${stage}
         -DWORK=${work}/readme -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_LIST_DIR}/readme.cmake)
# Asserts are on, as in a build for a debugger, whose tables would take as long as the rest.
add_test(NAME package/consumers COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DSTAGE=${stage} -DWORK=${work}
         -DGENERATOR=${CMAKE_GENERATOR} -DFLAGS=${sanitize} -P ${CMAKE_CURRENT_LIST_DIR}/consumers.cmake)
add_test(NAME package/zoo COMMAND ${PROJECT_SOURCE_DIR}/tests/command/build.sh ${stage} ${work}/zoo -G ${CMAKE_GENERATOR}
         "-DCMAKE_CXX_FLAGS=${sanitize}" "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG")
add_test(NAME package/tasks COMMAND ${PROJECT_SOURCE_DIR}/tests/docs/tasks.sh ${PROJECT_SOURCE_DIR}/docs/tasks ${stage}
         ${work}/tasks -G ${CMAKE_GENERATOR} "-DCMAKE_CXX_FLAGS=-O0 ${sanitize}")
set_tests_properties(package/readme package/consumers package/zoo package/tasks PROPERTIES FIXTURES_REQUIRED stage
                     TIMEOUT 1800)
edl_full_build(package/install package/fresh package/readme package/consumers package/zoo package/tasks)
if(NOT EDL_SANITIZE)
  add_test(NAME package/deb COMMAND ${CMAKE_CURRENT_LIST_DIR}/deb.sh ${CMAKE_BINARY_DIR} ${CMAKE_CPACK_COMMAND})
  set_tests_properties(package/deb PROPERTIES SKIP_RETURN_CODE 77)
  edl_full_build(package/deb)
endif()
