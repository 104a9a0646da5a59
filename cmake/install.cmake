# A CMake package for users of the C++ interface: find_package(tilewave), tilewave::tilewave.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS tilewave EXPORT tilewaveTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tilewave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tilewaveTargets NAMESPACE tilewave:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilewave)
get_target_property(TILEWAVE_MPI_LIBRARIES tilewave_mpi INTERFACE_LINK_LIBRARIES)
configure_package_config_file(cmake/tilewaveConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tilewaveConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilewave)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tilewaveConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tilewaveConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tilewaveConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilewave)
