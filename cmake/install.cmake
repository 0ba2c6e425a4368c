# What `cmake --install` leaves behind: libraries, public headers, the program, its data, and the CMake package.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradfuse)
install(TARGETS gradfuse gradfuse_nn gradfuse_train EXPORT gradfuse-targets FILE_SET HEADERS)
install(EXPORT gradfuse-targets NAMESPACE gradfuse:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gradfuse-config.cmake.in
  ${PROJECT_BINARY_DIR}/gradfuse-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradfuse-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gradfuse-config.cmake ${PROJECT_BINARY_DIR}/gradfuse-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/find_dnnl.cmake ${CMAKE_CURRENT_LIST_DIR}/find_xxhash.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
