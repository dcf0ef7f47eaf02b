# SPDX-License-Identifier: Apache-2.0
# Debian packages, by `cpack` in the build folder: libedl-dev has the library, its headers and what CMake needs, edl has the
# commands with their manual pages and completion, python3-edl has the Python module. Manual pages are made where help2man is
# installed.
file(WRITE ${PROJECT_BINARY_DIR}/extras/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: edl

Files: *
Copyright: the edl authors
License: Apache-2.0
 Debian has the text in /usr/share/common-licenses/Apache-2.0.
")
foreach(each IN ITEMS edl:tools libedl-dev:dev python3-edl:python)
  string(REPLACE ":" ";" each ${each})
  list(GET each 0 package)
  list(GET each 1 component)
  install(FILES ${PROJECT_BINARY_DIR}/extras/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component})
endforeach()
set(edl_extras ${PROJECT_BINARY_DIR}/extras)
set(edl_made "")
foreach(shell IN ITEMS bash zsh fish)
  add_custom_command(OUTPUT ${edl_extras}/edl.${shell} DEPENDS edl-tool COMMAND ${CMAKE_COMMAND} -E make_directory ${edl_extras}
                     COMMAND edl-tool completion ${shell} > ${edl_extras}/edl.${shell} VERBATIM)
  list(APPEND edl_made ${edl_extras}/edl.${shell})
endforeach()
install(FILES ${edl_extras}/edl.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME edl COMPONENT tools
        OPTIONAL)
install(FILES ${edl_extras}/edl.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _edl COMPONENT tools
        OPTIONAL)
install(FILES ${edl_extras}/edl.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools OPTIONAL)

find_program(EDL_HELP2MAN help2man)
mark_as_advanced(EDL_HELP2MAN)
if(EDL_HELP2MAN)
  set(edl_said_of_edl-tool "elastic deep learning on Kubernetes")
  set(edl_said_of_edl-controller "keep the TrainingJobs of a cluster")
  foreach(tool IN ITEMS edl-tool edl-controller)
    if(TARGET ${tool})
      string(REPLACE "-tool" "" page ${tool})
      string(JOIN " " run ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${tool}>)
      add_custom_command(OUTPUT ${edl_extras}/${page}.1 DEPENDS ${tool}
                         COMMAND ${CMAKE_COMMAND} -E make_directory ${edl_extras}
                         COMMAND ${EDL_HELP2MAN} --no-info --name ${edl_said_of_${tool}} --output ${edl_extras}/${page}.1
                                 ${run} VERBATIM)
      list(APPEND edl_made ${edl_extras}/${page}.1)
      install(FILES ${edl_extras}/${page}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools OPTIONAL)
    endif()
  endforeach()
endif()
add_custom_target(edl-extras ALL DEPENDS ${edl_made})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME edl)
set(CPACK_PACKAGE_VENDOR "the edl authors")
set(CPACK_PACKAGE_CONTACT "the edl authors <maintainers@edl.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "elastic deep learning on Kubernetes")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tools dev python)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME edl)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The commands edl and edl-controller: jobs, model zoos, data and TrainingJobs of a cluster.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libedl-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "The library and headers that models are built with.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-edl)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), python3-numpy")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Predictions of trained models in Python.")
# What building edl needs, a model needs too.
file(STRINGS ${PROJECT_SOURCE_DIR}/tools/packages edl_needed REGEX "^lib.*-dev|^nlohmann|^zlib1g|^protobuf-compiler|^cmake")
list(FILTER edl_needed EXCLUDE REGEX "httplib|dnnl")
if(edl_onednn)
  list(APPEND edl_needed libdnnl-dev)
endif()
list(JOIN edl_needed ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)
include(CPack)
