# Makes two imported targets from whichever libtorch (2.11 or newer) is at hand:
#   huajin_torch   headers and libraries of torch: CPU. CUDA is never linked: the program opens libtorch_cuda.so when it is asked for (core/process.h),
#                  so --as-needed can't drop it and a machine without CUDA needs no library of it
#   huajin_openmp  the one OpenMP runtime: the one that this torch was linked with
# Where it looks: HUAJIN_TORCH (-D or environment), a folder that is, or holds, one of
#   - a `pip install --target` folder or a site-packages (DIR/torch/lib/libtorch_cpu.so), with or without the CUDA packages beside it
#   - a Python environment (DIR/lib/python3.*/site-packages/torch)
#   - an official libtorch zip (DIR/lib/libtorch_cpu.so, or DIR/libtorch/lib/...)
# else the cache that ./huajin fills: ${HUAJIN_CACHE:-~/.cache/huajin}/torch-*.
# Sets Libtorch_FOUND, HUAJIN_TORCH_ROOT, HUAJIN_TORCH_VERSION, HUAJIN_TORCH_LAYOUT and HUAJIN_TORCH_CUDA (has libtorch_cuda.so). The wheel's own
# TorchConfig.cmake is not used: it fails without a matching CUDA set-up.
set(HUAJIN_TORCH "" CACHE PATH "Folder of a pip torch, a Python environment or a libtorch zip")
set(_huajin_torch_wanted "${HUAJIN_TORCH}")
if(NOT _huajin_torch_wanted AND DEFINED ENV{HUAJIN_TORCH})
  set(_huajin_torch_wanted "$ENV{HUAJIN_TORCH}")
endif()

set(_candidates)
if(_huajin_torch_wanted)
  file(GLOB _environment LIST_DIRECTORIES true "${_huajin_torch_wanted}/lib/python3.*/site-packages/torch")
  set(_candidates "${_huajin_torch_wanted}/torch" "${_huajin_torch_wanted}/libtorch" "${_huajin_torch_wanted}" ${_environment})
else()
  if(DEFINED ENV{HUAJIN_CACHE})
    set(_cache "$ENV{HUAJIN_CACHE}")
  else()
    set(_cache "$ENV{HOME}/.cache/huajin")
  endif()
  file(GLOB _versions LIST_DIRECTORIES true "${_cache}/torch-*")
  list(SORT _versions COMPARE NATURAL ORDER DESCENDING)
  list(TRANSFORM _versions APPEND "/torch" OUTPUT_VARIABLE _candidates)
  if(NOT _candidates)
    set(_candidates "${_cache}/torch-*/torch")
  endif()
endif()

set(HUAJIN_TORCH_ROOT)
foreach(_candidate IN LISTS _candidates)
  if(EXISTS "${_candidate}/lib/libtorch_cpu.so" AND EXISTS "${_candidate}/include/ATen/core/Tensor.h")
    set(HUAJIN_TORCH_ROOT "${_candidate}")
    break()
  endif()
endforeach()
if(NOT HUAJIN_TORCH_ROOT)
  list(JOIN _candidates ", " _looked)
  message(FATAL_ERROR "libtorch not found (looked for lib/libtorch_cpu.so and include/ATen in: ${_looked}). Run ./huajin doctor once, which fetches it, or pass "
    "-DHUAJIN_TORCH=DIR where DIR is a pip torch (the folder that holds torch/), a Python environment, or an unpacked libtorch zip.")
endif()

# ---- version
set(_version_lines)
foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(NOT _version_lines AND EXISTS "${HUAJIN_TORCH_ROOT}/include/${_header}")
    file(STRINGS "${HUAJIN_TORCH_ROOT}/include/${_header}" _version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  endif()
endforeach()
string(REGEX REPLACE "[^0-9;]" "" _version_numbers "${_version_lines}")
string(REPLACE ";" "." HUAJIN_TORCH_VERSION "${_version_numbers}")
if(NOT HUAJIN_TORCH_VERSION)
  message(FATAL_ERROR "${HUAJIN_TORCH_ROOT} has no torch/version.h with a version in it: that is no complete libtorch. Pass -DHUAJIN_TORCH=DIR of another one.")
endif()
if(HUAJIN_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "libtorch ${HUAJIN_TORCH_VERSION} in ${HUAJIN_TORCH_ROOT} is too old: huajin needs 2.11 or newer. Pass -DHUAJIN_TORCH=DIR of a newer one, or "
    "run ./huajin doctor once, which fetches one.")
endif()

# ---- C++ ABI: of the library's own symbols. torch has used the new one since 2.7; a build of someone's own may not.
file(STRINGS "${HUAJIN_TORCH_ROOT}/lib/libc10.so" _new_abi REGEX "_ZN3c105Error.*NSt7__cxx1112basic_string" LIMIT_COUNT 1)
if(_new_abi)
  set(_abi 1)
else()
  set(_abi 0)
endif()

# ---- the OpenMP runtime that torch was linked with. A second one in the process means two pools of threads that fight, or an abort.
find_program(HUAJIN_READELF NAMES readelf llvm-readelf eu-readelf)
set(_openmp_name "libgomp.so.1")
if(HUAJIN_READELF)
  execute_process(COMMAND "${HUAJIN_READELF}" -d "${HUAJIN_TORCH_ROOT}/lib/libtorch_cpu.so" OUTPUT_VARIABLE _needed ERROR_QUIET)
  if(_needed MATCHES "\\[(lib(gomp|omp|iomp5)[^]]*)\\]")
    set(_openmp_name "${CMAKE_MATCH_1}")
  endif()
endif()
set(_openmp_file)
foreach(_directory "${HUAJIN_TORCH_ROOT}/lib" "${HUAJIN_TORCH_ROOT}/../torch.libs")
  if(NOT _openmp_file AND EXISTS "${_directory}/${_openmp_name}")
    get_filename_component(_openmp_file "${_directory}/${_openmp_name}" REALPATH)
    set(_openmp_directory "${_directory}")
  endif()
endforeach()

if(NOT TARGET huajin_openmp)
  add_library(huajin_openmp INTERFACE IMPORTED GLOBAL)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND _openmp_file)
    target_compile_options(huajin_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)  # not to the linker: it would add the system's
    target_link_libraries(huajin_openmp INTERFACE "${_openmp_directory}/${_openmp_name}")
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(huajin_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
    target_link_options(huajin_openmp INTERFACE -fopenmp)
  else()
    # Clang's code needs libomp, a second runtime beside torch's libgomp. Without the flag our own loops run on one thread, torch's on all of them.
    target_compile_options(huajin_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>)
    if(NOT Libtorch_FIND_QUIETLY)
      message(STATUS "${CMAKE_CXX_COMPILER_ID}: built without OpenMP, since torch brings ${_openmp_name}; huajin's own kernels use one thread (GCC: all)")
    endif()
  endif()
endif()

# ---- libraries
set(HUAJIN_TORCH_CUDA OFF)
if(EXISTS "${HUAJIN_TORCH_ROOT}/lib/libtorch_cuda.so")
  set(HUAJIN_TORCH_CUDA ON)
endif()
# The wheel ships its CUDA libraries beside torch; even its libtorch_cpu.so asks the loader for two of them.
get_filename_component(_beside "${HUAJIN_TORCH_ROOT}" DIRECTORY)  # by name, not through "..": torch/ may be a link
file(GLOB _nvidia LIST_DIRECTORIES true "${_beside}/nvidia/*/lib")
set(HUAJIN_TORCH_RPATH "${HUAJIN_TORCH_ROOT}/lib")
foreach(_directory ${_nvidia})
  list(APPEND HUAJIN_TORCH_RPATH "${_directory}")
endforeach()

if(EXISTS "${HUAJIN_TORCH_ROOT}/build-version")
  set(HUAJIN_TORCH_LAYOUT "libtorch zip")
elseif(EXISTS "${_beside}/nvidia/cudnn" OR EXISTS "${_beside}/nvidia/cublas")
  set(HUAJIN_TORCH_LAYOUT "pip torch with CUDA packages")
elseif(EXISTS "${HUAJIN_TORCH_ROOT}/__init__.py")
  set(HUAJIN_TORCH_LAYOUT "pip torch without CUDA packages")
else()
  set(HUAJIN_TORCH_LAYOUT "libtorch folder")
endif()

if(NOT TARGET huajin_torch)
  add_library(huajin_torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(huajin_torch SYSTEM INTERFACE "${HUAJIN_TORCH_ROOT}/include" "${HUAJIN_TORCH_ROOT}/include/torch/csrc/api/include")
  # One header an operator: without it, a + b pulls in all of ATen (9 s a file).
  target_compile_definitions(huajin_torch INTERFACE AT_PER_OPERATOR_HEADERS _GLIBCXX_USE_CXX11_ABI=${_abi})
  target_compile_features(huajin_torch INTERFACE cxx_std_20)
  target_link_libraries(huajin_torch INTERFACE "${HUAJIN_TORCH_ROOT}/lib/libtorch_cpu.so" "${HUAJIN_TORCH_ROOT}/lib/libc10.so")
  foreach(_directory IN LISTS HUAJIN_TORCH_RPATH)
    target_link_options(huajin_torch INTERFACE "-Wl,-rpath,${_directory}" "-Wl,-rpath-link,${_directory}")
  endforeach()
endif()

# ---- does it compile and link? Once a folder, with a plain message instead of a page of undefined references later.
if(NOT HUAJIN_TORCH_WORKS STREQUAL "${HUAJIN_TORCH_ROOT} ${CMAKE_CXX_COMPILER} ${_abi}")
  file(WRITE "${CMAKE_BINARY_DIR}/torch_check/check.cpp" "#include <c10/util/Exception.h>\n#include <string>\nint main(int argc, char**) {\n  const std::string text(size_t(argc), 'x');\n"
    "  try {\n    TORCH_CHECK(argc < 0, text);\n  } catch (const c10::Error& e) {\n    return std::string(e.what()).find(text) == std::string::npos;\n  }\n  return 1;\n}\n")
  try_compile(_works "${CMAKE_BINARY_DIR}/torch_check" "${CMAKE_BINARY_DIR}/torch_check/check.cpp" LINK_LIBRARIES huajin_torch huajin_openmp
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON OUTPUT_VARIABLE _output)
  if(NOT _works)
    string(REGEX MATCH "[^\n]*(error|undefined reference)[^\n]*" _first "${_output}")
    file(WRITE "${CMAKE_BINARY_DIR}/torch_check/output.txt" "${_output}")
    message(FATAL_ERROR "a program of ten lines does not compile or link against libtorch ${HUAJIN_TORCH_VERSION} in ${HUAJIN_TORCH_ROOT}: ${_first} "
      "(all of it: ${CMAKE_BINARY_DIR}/torch_check/output.txt). The compiler must know C++20 (GCC 12, clang 14 or newer) and the folder must be whole; "
      "-DHUAJIN_TORCH=DIR names another one.")
  endif()
  set(HUAJIN_TORCH_WORKS "${HUAJIN_TORCH_ROOT} ${CMAKE_CXX_COMPILER} ${_abi}" CACHE INTERNAL "")
endif()

set(Libtorch_FOUND TRUE)
if(NOT Libtorch_FIND_QUIETLY)
  message(STATUS "libtorch ${HUAJIN_TORCH_VERSION} (${HUAJIN_TORCH_LAYOUT}) in ${HUAJIN_TORCH_ROOT}; OpenMP: ${_openmp_name}; CUDA: ${HUAJIN_TORCH_CUDA}; C++11 ABI: ${_abi}")
endif()
