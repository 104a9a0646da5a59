# Defines tilewave_mpi (headers and library of the MPI to build against), TILEWAVE_MPI_ABIS (the binary interfaces of
# the MPIs that the Python module can load) and tilewave_mpi_<abi> for each.
if(TILEWAVE_MPI STREQUAL "wheel")
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  # The wheel's files lie in the environment's prefix; ask its metadata where.
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "
import importlib.metadata as m, os
files = {f.name: os.path.abspath(f.locate()) for f in m.files('mpich') or []}
print(os.path.dirname(files['mpi_abi.h']), files['libmpi_abi.so.1'], sep=';', end='')"
    OUTPUT_VARIABLE mpich_paths RESULT_VARIABLE mpich_missing)
  if(mpich_missing)
    message(FATAL_ERROR "the Python package 'mpich' (5.0 or newer) is not in this environment; "
                        "install it, or build with -DTILEWAVE_MPI=system")
  endif()
  list(GET mpich_paths 0 mpich_include)
  # abi: the MPI-5 standard ABI, any library that has it; C++ programs link MPICH's. mpich: MPICH's own. openmpi: Open
  # MPI's. The module's transports link none: they take the functions of the MPI that the process has loaded.
  set(TILEWAVE_MPI_ABIS abi mpich openmpi)
  list(GET mpich_paths 1 mpich_library)
  message(STATUS "MPI: ${mpich_library} (standard ABI)")
  foreach(abi ${TILEWAVE_MPI_ABIS})
    add_library(tilewave_mpi_${abi} INTERFACE)
    target_include_directories(tilewave_mpi_${abi} SYSTEM INTERFACE
      $<IF:$<STREQUAL:${abi},openmpi>,${CMAKE_CURRENT_SOURCE_DIR}/src/transport/openmpi,${mpich_include}>)
  endforeach()
  target_compile_definitions(tilewave_mpi_abi INTERFACE MPI_ABI)
  add_library(tilewave_mpi INTERFACE)
  target_include_directories(tilewave_mpi SYSTEM INTERFACE ${mpich_include})
  target_compile_definitions(tilewave_mpi INTERFACE MPI_ABI)
  target_link_libraries(tilewave_mpi INTERFACE ${mpich_library})
elseif(TILEWAVE_MPI STREQUAL "system")
  enable_language(C)
  # The wheel's compiler wrappers, where it is installed too, are not the site's.
  find_package(Python 3.10 QUIET COMPONENTS Interpreter)
  if(Python_EXECUTABLE)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c "
import importlib.metadata as m, os
print(*{os.path.dirname(os.path.abspath(f.locate())) for f in m.files('mpich') if f.name == 'mpicc'}, sep=';', end='')"
      OUTPUT_VARIABLE mpich_bin ERROR_QUIET)
    list(APPEND CMAKE_IGNORE_PATH ${mpich_bin})
  endif()
  find_package(MPI REQUIRED COMPONENTS C)
  message(STATUS "MPI: ${MPI_C_LIBRARIES} (the site's)")
  set(TILEWAVE_MPI_ABIS system)
  add_library(tilewave_mpi_system INTERFACE)
  target_link_libraries(tilewave_mpi_system INTERFACE MPI::MPI_C)
  # Open MPI 4's and MPICH's C++ bindings, gone from the standard, would want libraries of their own.
  target_compile_definitions(tilewave_mpi_system INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  add_library(tilewave_mpi ALIAS tilewave_mpi_system)
else()
  message(FATAL_ERROR "TILEWAVE_MPI is '${TILEWAVE_MPI}'; allowed: wheel, system")
endif()
