# Kernels need nvcc, and are built where they are asked for: they are linked with CUDA's
# runtime library, which registers them before main() and cannot do without the memory
# that it takes there. Without them the backend plans, and says that it is left out.
option(TRANCHE_CUDA "build the kernels for NVIDIA GPUs, which needs nvcc" OFF)
set(TR_CUDA_ARCHITECTURES "80-real;90a-real" CACHE STRING "GPUs that kernels are built for")
set(TR_CUDA_SOURCES "")
set(TR_CUDA_EXCLUDED "/backend/cuda/driver(_cublas)?\\.c$")
find_program(TR_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
if(TRANCHE_CUDA AND NOT TR_NVCC)
    message(FATAL_ERROR "TRANCHE_CUDA needs nvcc: add its folder to PATH, or leave "
        "-DTRANCHE_CUDA=ON out")
endif()
if(TRANCHE_CUDA)
    set(CMAKE_CUDA_COMPILER ${TR_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${TR_CUDA_ARCHITECTURES})
    set(CMAKE_CUDA_STANDARD 17)
    enable_language(CUDA)
    # What links the library stays C: nothing here needs the runtime library of C++.
    set(CMAKE_CUDA_LINKER_PREFERENCE_PROPAGATES 0)
    string(APPEND CMAKE_CUDA_FLAGS
        " -Xcompiler=-fno-exceptions,-fno-threadsafe-statics")
    find_package(CUDAToolkit REQUIRED)
    file(GLOB TR_CUDA_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/cuda*.cu)
    set(TR_CUDA_EXCLUDED "/backend/cuda/driver_none\\.c$")
    message(STATUS "CUDA: ${TR_NVCC}, for ${TR_CUDA_ARCHITECTURES}")
else()
    message(STATUS "CUDA is left out: -DTRANCHE_CUDA=ON builds it, with nvcc")
endif()
