# SPDX-License-Identifier: Apache-2.0
get_filename_component(edl_here "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set_property(GLOBAL PROPERTY EDL_LIBRARY_DIR ${edl_here})

# edl_add_model(name sources…): one binary that is master, parameter server and worker of the model it defines.
function(edl_add_model name)
  if(NOT ARGN)
    message(FATAL_ERROR "edl_add_model(${name}): name at least one source file")
  endif()
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT several AND NOT CMAKE_BUILD_TYPE AND NOT "$ENV{CXXFLAGS}${CMAKE_CXX_FLAGS}" MATCHES "-O")
    message(STATUS "edl: no CMAKE_BUILD_TYPE is given: Release (without optimisation a step takes 6 times as long)")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE edl::edl)
  # Where libedl-cuda.so is, which the program opens when a GPU is asked for.
  get_property(where GLOBAL PROPERTY EDL_LIBRARY_DIR)
  set_property(TARGET ${name} APPEND PROPERTY BUILD_RPATH ${where})
endfunction()
