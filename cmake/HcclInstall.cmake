# SPDX-License-Identifier: Apache-2.0
# The install tree: headers and library where programs for Gaudi expect them, and files for pkg-config and CMake.
include(CMakePackageConfigHelpers)
set(habanalabs_lib ${CMAKE_INSTALL_LIBDIR}/habanalabs)
set(habanalabs_include ${CMAKE_INSTALL_INCLUDEDIR}/habanalabs)

install(TARGETS hccl_shared EXPORT hccl LIBRARY DESTINATION ${habanalabs_lib}
        INCLUDES DESTINATION ${habanalabs_include})
install(DIRECTORY include/hccl/ DESTINATION ${habanalabs_include} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# hccl_install_link(<folder> <name> <target>): installs a relative symbolic link.
function(hccl_install_link folder name target)
  set(link ${PROJECT_BINARY_DIR}/install_links/${folder}/${name})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/install_links/${folder})
  file(CREATE_LINK ${target} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${folder})
endfunction()
hccl_install_link(${CMAKE_INSTALL_INCLUDEDIR} hccl habanalabs)  # <hccl/hccl.h>
foreach(name libSynapse.so libhccl.so libhccl.so.2)
  hccl_install_link(${CMAKE_INSTALL_LIBDIR} ${name} habanalabs/libSynapse.so)
endforeach()

install(EXPORT hccl NAMESPACE hccl:: FILE hcclTargets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hccl)
configure_package_config_file(cmake/hcclConfig.cmake.in ${PROJECT_BINARY_DIR}/hcclConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hccl)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hcclConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hcclConfig.cmake ${PROJECT_BINARY_DIR}/hcclConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hccl)
configure_file(cmake/hccl.pc.in ${PROJECT_BINARY_DIR}/hccl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
