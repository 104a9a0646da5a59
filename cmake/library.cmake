# Defines tilewave_base (all but MPI, as objects) and tilewave, the library for C++ users.
file(GLOB_RECURSE TILEWAVE_SOURCES CONFIGURE_DEPENDS src/*.cpp)
list(FILTER TILEWAVE_SOURCES EXCLUDE REGEX "/transport/mpi[^/]*\\.cpp$")
add_library(tilewave_base OBJECT ${TILEWAVE_SOURCES})
target_include_directories(tilewave_base PUBLIC include PRIVATE src)
# Results must be those of the plain loops, bit for bit: no contraction into fused operations.
target_compile_options(tilewave_base PUBLIC -ffp-contract=off PRIVATE -Wall -Wextra
  -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)  # g++ 12 warns of its own inlined string and array code
# Sources that are compiled together include each other, so that g++ takes what is theirs alone for a header's.
target_compile_options(tilewave_base PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
target_link_libraries(tilewave_base PUBLIC Threads::Threads)
# A fifth of the compiling.
target_precompile_headers(tilewave_base PRIVATE <algorithm> <array> <atomic> <cmath> <functional> <map> <memory>
  <optional> <sstream> <string> <tuple> <vector>)

# The library for C++ users: everything, with one MPI.
add_library(tilewave STATIC $<TARGET_OBJECTS:tilewave_base> src/transport/mpi.cpp
  src/transport/mpi_leaving.cpp)
# A program that makes no MPI transport needs no MPI: its object stays alone.
set_target_properties(tilewave PROPERTIES UNITY_BUILD OFF)
target_include_directories(tilewave PRIVATE src)
add_library(tilewave::tilewave ALIAS tilewave)
target_compile_features(tilewave PUBLIC cxx_std_20)
target_include_directories(tilewave
  PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_options(tilewave PUBLIC -ffp-contract=off PRIVATE -Wall -Wextra)
target_link_libraries(tilewave PUBLIC Threads::Threads ${CMAKE_DL_LIBS} PRIVATE $<BUILD_INTERFACE:tilewave_mpi>)
