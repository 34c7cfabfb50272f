# `cmake --install BUILD --prefix DIR`: the programs, the libraries with their headers, and a package that `find_package(huajin)` finds.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# What a program links: huajin::huajin.
add_library(huajin_library INTERFACE)
set_target_properties(huajin_library PROPERTIES EXPORT_NAME huajin)
target_link_libraries(huajin_library INTERFACE huajin_catalog)
foreach(_target huajin_flags huajin_io huajin_core huajin_zoo huajin_axes huajin_catalog)
  string(REPLACE "huajin_" "" _short ${_target})
  set_target_properties(${_target} PROPERTIES EXPORT_NAME ${_short})
endforeach()
set_target_properties(huajin_front huajin_engine PROPERTIES INSTALL_RPATH "${HUAJIN_TORCH_RPATH}" INSTALL_RPATH_USE_LINK_PATH ON)

set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/huajin")
install(TARGETS huajin_front RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS huajin_engine RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/huajin")
install(TARGETS huajin_library huajin_flags huajin_io huajin_core huajin_zoo huajin_axes huajin_catalog EXPORT huajinTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/huajin" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT huajinTargets NAMESPACE huajin:: DESTINATION "${_package}")
configure_package_config_file(cmake/huajinConfig.cmake.in "${CMAKE_BINARY_DIR}/huajinConfig.cmake" INSTALL_DESTINATION "${_package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/huajinConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/huajinConfig.cmake" "${CMAKE_BINARY_DIR}/huajinConfigVersion.cmake" cmake/FindLibtorch.cmake DESTINATION "${_package}")
