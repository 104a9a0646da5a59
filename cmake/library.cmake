# Defines tilewave_base (all but MPI, as objects), tilewave_transport (what names MPI, with the MPI of C++ programs), and
# tilewave, the library for C++ users.
file(GLOB_RECURSE TILEWAVE_SOURCES CONFIGURE_DEPENDS src/*.cpp)
list(FILTER TILEWAVE_SOURCES EXCLUDE REGEX "/transport/mpi[^/]*\\.cpp$")
# What repeated calls pass is optimised as far as it can be; what plans, checks and generates takes two thirds of the
# time to compile with -O1, and runs once for each kind of call.
set(TILEWAVE_RUNS ${TILEWAVE_SOURCES})
list(FILTER TILEWAVE_RUNS INCLUDE REGEX "/src/(arrays|context|core|data|execute|nests|patterns|predict|run|schedule|transport)/")
list(REMOVE_ITEM TILEWAVE_SOURCES ${TILEWAVE_RUNS})
add_library(tilewave_plans OBJECT ${TILEWAVE_SOURCES})
add_library(tilewave_runs OBJECT ${TILEWAVE_RUNS})
target_compile_options(tilewave_plans PRIVATE $<$<CONFIG:Release>:-O1>)
foreach(part tilewave_plans tilewave_runs)
  target_include_directories(${part} PUBLIC include PRIVATE src)
  # Results must be those of the plain loops, bit for bit: no contraction into fused operations.
  target_compile_options(${part} PUBLIC -ffp-contract=off PRIVATE ${TILEWAVE_COMPILING}
    # Sources that are compiled together include each other, so that g++ takes what is theirs alone for a header's.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  target_link_libraries(${part} PUBLIC Threads::Threads)
  # A fifth of the compiling.
  target_precompile_headers(${part} PRIVATE <algorithm> <array> <atomic> <cmath> <functional> <map> <memory>
    <optional> <sstream> <string> <tuple> <vector>)
endforeach()
add_library(tilewave_base INTERFACE)
target_sources(tilewave_base INTERFACE $<TARGET_OBJECTS:tilewave_plans> $<TARGET_OBJECTS:tilewave_runs>)
target_include_directories(tilewave_base INTERFACE include)
target_compile_options(tilewave_base INTERFACE -ffp-contract=off)
target_link_libraries(tilewave_base INTERFACE Threads::Threads)

# The module's transport for the first of the binary interfaces is that of C++ programs.
list(GET TILEWAVE_MPI_ABIS 0 TILEWAVE_MPI_ABI)
add_library(tilewave_transport OBJECT src/transport/mpi.cpp src/transport/mpi_leaving.cpp)
target_include_directories(tilewave_transport PRIVATE include src)
target_compile_options(tilewave_transport PRIVATE -ffp-contract=off ${TILEWAVE_COMPILING})
target_link_libraries(tilewave_transport PRIVATE tilewave_mpi_${TILEWAVE_MPI_ABI})

# The library for C++ users: everything, with one MPI. A program that makes no MPI transport needs no MPI: its object
# stays alone.
add_library(tilewave STATIC $<TARGET_OBJECTS:tilewave_plans> $<TARGET_OBJECTS:tilewave_runs>
  $<TARGET_OBJECTS:tilewave_transport>)
set_target_properties(tilewave PROPERTIES LINKER_LANGUAGE CXX)
add_library(tilewave::tilewave ALIAS tilewave)
target_compile_features(tilewave PUBLIC cxx_std_20)
target_include_directories(tilewave
  PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_options(tilewave PUBLIC -ffp-contract=off)
target_link_libraries(tilewave PUBLIC Threads::Threads ${CMAKE_DL_LIBS} PRIVATE $<BUILD_INTERFACE:tilewave_mpi>)
