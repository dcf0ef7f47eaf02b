# edl_add_model(name sources…): one binary that is master, parameter server and worker of the model it defines.
function(edl_add_model name)
  if(NOT ARGN)
    message(FATAL_ERROR "edl_add_model(${name}): name at least one source file")
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE edl::edl)
endfunction()
