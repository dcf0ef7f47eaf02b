# SPDX-License-Identifier: Apache-2.0
get_filename_component(edl_here "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set_property(GLOBAL PROPERTY EDL_LIBRARY_DIR ${edl_here})

# edl_add_model(name sources… [PREDICTOR]): one binary that is master, parameter server and worker of the model it defines.
# PREDICTOR: edl_add_predictor, too. Where mold or lld is installed, it links, unless flags choose a linker.
function(edl_add_model name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "PREDICTOR" "" "")
  if(NOT ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "edl_add_model(${name}): name at least one source file")
  endif()
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT several AND NOT CMAKE_BUILD_TYPE AND NOT "$ENV{CXXFLAGS}${CMAKE_CXX_FLAGS}" MATCHES "-O")
    message(STATUS "edl: no CMAKE_BUILD_TYPE is given: Release (without optimisation a step takes 6 times as long)")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE edl::edl)
  # Where libedl-cuda.so is, which the program opens when a GPU is asked for.
  get_property(where GLOBAL PROPERTY EDL_LIBRARY_DIR)
  set_property(TARGET ${name} APPEND PROPERTY BUILD_RPATH ${where})
  if(ARG_PREDICTOR)
    edl_add_predictor(${name})
  endif()
  edl_link_fast(${name})
endfunction()

# GNU's linker takes several times as long. Objects of link-time optimisation are for the compiler's own.
function(edl_link_fast name)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(flags "$ENV{LDFLAGS} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}")
  if(flags MATCHES "-fuse-ld|-flto" OR CMAKE_LINKER_TYPE)
    return()
  endif()
  include(CheckLinkerFlag)
  foreach(linker IN ITEMS mold lld)
    check_linker_flag(CXX -fuse-ld=${linker} EDL_LINKS_BY_${linker})
    if(EDL_LINKS_BY_${linker})
      target_link_options(${name} PRIVATE
                          $<$<NOT:$<BOOL:$<TARGET_PROPERTY:INTERPROCEDURAL_OPTIMIZATION>>>:-fuse-ld=${linker}>)
      return()
    endif()
  endforeach()
endfunction()

# edl_add_predictor(name): libNAME-predictor.so, with the functions of edl/predictor.h for the model of that program. Both are
# of the same objects, so that nothing is compiled twice. Other names stay inside: a process may have such libraries of
# several models.
function(edl_add_predictor name)
  set(library ${name}-predictor)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${library})
  file(CONFIGURE OUTPUT ${made}.cpp CONTENT "#include <edl/author/predictor_library.ipp>\n" @ONLY)
  file(CONFIGURE OUTPUT ${made}.map CONTENT "{ global: edl_predictor_*; local: *; };\n" @ONLY)
  target_compile_options(${name} PRIVATE -fPIC -fno-semantic-interposition)
  add_library(${library} SHARED ${made}.cpp $<TARGET_OBJECTS:${name}>)
  target_link_libraries(${library} PRIVATE edl::edl $<TARGET_PROPERTY:${name},LINK_LIBRARIES>)
  target_link_options(${library} PRIVATE LINKER:--version-script=${made}.map)
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${made}.map)
  edl_link_fast(${library})
endfunction()
