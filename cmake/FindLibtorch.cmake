# Makes the imported target huajin_torch from whichever libtorch is at hand:
#   HUAJIN_TORCH   a folder that holds, or is, one of
#     - a `pip install --target` folder or a site-packages (DIR/torch/lib/libtorch_cpu.so), with or without CUDA packages
#     - an official libtorch zip (DIR/lib/libtorch_cpu.so, or DIR/libtorch/lib/...)
#   else the cache that ./huajin fills: ${HUAJIN_CACHE:-~/.cache/huajin}/torch-*.
# Sets Libtorch_FOUND, HUAJIN_TORCH_ROOT, HUAJIN_TORCH_VERSION and HUAJIN_TORCH_CUDA. The wheel's own TorchConfig.cmake is not used: it fails
# without a matching CUDA set-up.
set(HUAJIN_TORCH "" CACHE PATH "Folder of a pip torch, a Python environment's site-packages or a libtorch zip")

set(_candidates)
if(HUAJIN_TORCH)
  list(APPEND _candidates "${HUAJIN_TORCH}/torch" "${HUAJIN_TORCH}/libtorch" "${HUAJIN_TORCH}")
else()
  if(DEFINED ENV{HUAJIN_CACHE})
    set(_cache "$ENV{HUAJIN_CACHE}")
  else()
    set(_cache "$ENV{HOME}/.cache/huajin")
  endif()
  file(GLOB _versions LIST_DIRECTORIES true "${_cache}/torch-*")
  list(SORT _versions COMPARE NATURAL ORDER DESCENDING)
  foreach(_version IN LISTS _versions)
    list(APPEND _candidates "${_version}/torch")
  endforeach()
endif()

foreach(_candidate IN LISTS _candidates)
  if(EXISTS "${_candidate}/lib/libtorch_cpu.so" AND EXISTS "${_candidate}/include/ATen/core/Tensor.h")
    set(HUAJIN_TORCH_ROOT "${_candidate}")
    break()
  endif()
endforeach()

if(NOT HUAJIN_TORCH_ROOT)
  message(FATAL_ERROR "libtorch not found (looked in: ${_candidates}). Run ./huajin doctor once, which fetches it, or pass -DHUAJIN_TORCH=DIR where "
    "DIR is a pip torch (the folder that holds torch/), a Python site-packages, or an unpacked libtorch zip.")
endif()

file(STRINGS "${HUAJIN_TORCH_ROOT}/include/torch/headeronly/version.h" _version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
if(NOT _version_lines)
  file(STRINGS "${HUAJIN_TORCH_ROOT}/include/torch/csrc/api/include/torch/version.h" _version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
endif()
string(REGEX REPLACE "[^0-9;]" "" _version_numbers "${_version_lines}")
string(REPLACE ";" "." HUAJIN_TORCH_VERSION "${_version_numbers}")
if(HUAJIN_TORCH_VERSION AND HUAJIN_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "libtorch ${HUAJIN_TORCH_VERSION} in ${HUAJIN_TORCH_ROOT} is too old: huajin needs 2.11 or newer. Pass -DHUAJIN_TORCH=DIR of a newer one.")
endif()

add_library(huajin_torch INTERFACE)
target_include_directories(huajin_torch SYSTEM INTERFACE "${HUAJIN_TORCH_ROOT}/include" "${HUAJIN_TORCH_ROOT}/include/torch/csrc/api/include")
# One header an operator: without it, a + b pulls in all of ATen (9 s a file).
target_compile_definitions(huajin_torch INTERFACE AT_PER_OPERATOR_HEADERS)
target_compile_features(huajin_torch INTERFACE cxx_std_20)
set(_libraries "${HUAJIN_TORCH_ROOT}/lib/libtorch_cpu.so" "${HUAJIN_TORCH_ROOT}/lib/libc10.so")
set(_rpath "${HUAJIN_TORCH_ROOT}/lib")

set(HUAJIN_TORCH_CUDA OFF)
if(EXISTS "${HUAJIN_TORCH_ROOT}/lib/libtorch_cuda.so")
  set(HUAJIN_TORCH_CUDA ON)
endif()
# The wheel with CUDA ships its CUDA libraries beside torch; even libtorch_cpu.so asks the loader for two of them.
file(GLOB _nvidia "${HUAJIN_TORCH_ROOT}/../nvidia/*/lib")
list(APPEND _rpath ${_nvidia})

target_link_libraries(huajin_torch INTERFACE ${_libraries})
foreach(_directory IN LISTS _rpath)
  target_link_options(huajin_torch INTERFACE "-Wl,-rpath,${_directory}" "-Wl,-rpath-link,${_directory}")
endforeach()
set(Libtorch_FOUND TRUE)
message(STATUS "libtorch ${HUAJIN_TORCH_VERSION} in ${HUAJIN_TORCH_ROOT} (CUDA libraries: ${HUAJIN_TORCH_CUDA})")
