# Makes the lists of the kernels and of the optimizers' updates of the CUDA backend
# (backend/cuda/kernels.h) from src/ops/*/cuda.c and
# src/ops/*/cuda_optimizer.c, as cmake/cpu_kernels.cmake does for the CPU backend.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/cuda.c)
set(declared "")
set(lists "")
foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    string(APPEND declared "extern const tr_cuda_kernels tr__cuda_kernels_${name}[];\n")
    string(APPEND lists "    tr__cuda_kernels_${name},\n")
endforeach()
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/cuda_optimizer.c)
set(optimizers "")
foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    string(APPEND declared "extern const tr_cuda_optimizer tr__cuda_optimizer_${name};\n")
    string(APPEND optimizers "    &tr__cuda_optimizer_${name},\n")
endforeach()
set(TR_CUDA_KERNEL_LISTS ${CMAKE_BINARY_DIR}/cuda_kernel_lists.c)
file(CONFIGURE OUTPUT ${TR_CUDA_KERNEL_LISTS} @ONLY CONTENT
"// Made from src/ops/*/cuda*.c by cmake/cuda_kernels.cmake.
#include \"backend/cuda/kernels.h\"

@declared@
const tr_cuda_kernels *const tr__cuda_kernel_lists[] = {
@lists@    NULL};

const tr_cuda_optimizer *const tr__cuda_optimizers[] = {
@optimizers@    NULL};
")

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
