# The targets of strata, in a project that embeds it and in an installation. Expects
#   strata_INCLUDE_DIR   the folder with strata/strata.hpp
#   strata_PROCESSOR     the processor that programs are compiled for, after -march=, or nothing
#   strata_LIBRARY       a library of the compiled mode that was built before, or nothing
include_guard(GLOBAL)

# strata::strata: strata.hpp, data.hpp and all headers that need no further library. Compressed data sets need zlib, weights files
# nlohmann_json and parameter_views.hpp Boost.Hana, which are used if they are found.
find_package(Threads REQUIRED)
find_package(ZLIB QUIET)
find_package(nlohmann_json QUIET)
find_path(strata_BOOST_INCLUDE_DIR boost/hana.hpp)
mark_as_advanced(strata_BOOST_INCLUDE_DIR)

add_library(strata::strata INTERFACE IMPORTED GLOBAL)
target_include_directories(strata::strata INTERFACE "${strata_INCLUDE_DIR}")
target_compile_features(strata::strata INTERFACE cxx_std_20)
target_link_libraries(strata::strata INTERFACE Threads::Threads $<TARGET_NAME_IF_EXISTS:ZLIB::ZLIB>
  $<TARGET_NAME_IF_EXISTS:nlohmann_json::nlohmann_json>)
if(strata_BOOST_INCLUDE_DIR)
  target_include_directories(strata::strata SYSTEM INTERFACE "${strata_BOOST_INCLUDE_DIR}")
endif()
if(strata_PROCESSOR)
  target_compile_options(strata::strata INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-march=${strata_PROCESSOR}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-march=${strata_PROCESSOR}>")
endif()

# strata::compiled: the same, with a library of all code that does not depend on a network (STRATA_COMPILED).
if(EXISTS "${strata_LIBRARY}")
  add_library(strata::compiled STATIC IMPORTED GLOBAL)
  set_target_properties(strata::compiled PROPERTIES IMPORTED_LOCATION "${strata_LIBRARY}")
  target_compile_definitions(strata::compiled INTERFACE STRATA_COMPILED)
  target_link_libraries(strata::compiled INTERFACE strata::strata)
else()
  set(strata_sources library kernels_float kernels_double)
  list(TRANSFORM strata_sources PREPEND "${strata_INCLUDE_DIR}/strata/compiled/")
  list(TRANSFORM strata_sources APPEND .cpp)
  add_library(strata_compiled STATIC EXCLUDE_FROM_ALL ${strata_sources})
  target_compile_definitions(strata_compiled PUBLIC STRATA_COMPILED)
  target_compile_options(strata_compiled PRIVATE $<$<NOT:$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:-O3>)
  target_link_libraries(strata_compiled PUBLIC strata::strata)
  add_library(strata::compiled ALIAS strata_compiled)
endif()

# strata_precompile(TARGET): compiles its files in less than half the time. The target is linked with strata::compiled, and strata.hpp is
# compiled once for all of them.
function(strata_precompile target)
  target_link_libraries(${target} PRIVATE strata::compiled)
  target_precompile_headers(${target} PRIVATE <strata/strata.hpp>)
endfunction()

# strata_part(NAME LACKS [TARGET...]): a target for headers that need more than strata::strata. LACKS names what is missing on this
# machine, or is empty; linking a program with the target then causes an error of CMake with that text.
function(strata_part name lacks)
  add_library(strata::${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(strata::${name} INTERFACE strata::strata ${ARGN})
  if(lacks)
    target_link_libraries(strata::${name} INTERFACE strata::${name}_needs_${lacks})
  endif()
endfunction()

# strata::workers: several processes.
find_package(OpenSSL QUIET)
find_path(strata_PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp)
mark_as_advanced(strata_PROTOZERO_INCLUDE_DIR)
if(NOT OPENSSL_FOUND)
  strata_part(workers OpenSSL)
elseif(NOT strata_PROTOZERO_INCLUDE_DIR)
  strata_part(workers protozero)
else()
  strata_part(workers "" ${OPENSSL_LIBRARIES})  # OpenSSL's own targets are those of this folder
  target_include_directories(strata::workers SYSTEM INTERFACE "${OPENSSL_INCLUDE_DIR}" "${strata_PROTOZERO_INCLUDE_DIR}")
endif()

# strata::xla: programs for TPUs and other devices with a plugin of PJRT, which is loaded when they run.
strata_part(xla "" ${CMAKE_DL_LIBS})

# strata::cuda: .cu files, which the language CUDA of the project compiles.
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  strata_part(cuda "" CUDA::cudart ${CMAKE_DL_LIBS})
  target_compile_options(strata::cuda INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr>")
else()
  strata_part(cuda the_CUDA_Toolkit)
endif()

# strata::emulated_cuda: emulated GPUs, for tests.
find_library(strata_BOOST_CONTEXT boost_context)
mark_as_advanced(strata_BOOST_CONTEXT)
if(strata_BOOST_CONTEXT)
  strata_part(emulated_cuda "" "${strata_BOOST_CONTEXT}")
  target_include_directories(strata::emulated_cuda INTERFACE "${strata_INCLUDE_DIR}/strata_emulated_cuda")
else()
  strata_part(emulated_cuda Boost.Context)
endif()
