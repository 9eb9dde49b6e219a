# The CUDA backend's kernels are compiled by nvcc into data that the program has in
# itself and NVIDIA's driver loads. Nothing of CUDA is linked: the driver and cuBLASLt
# are opened when a run computes on a GPU. A build without CUDA plans for GPUs as well,
# and says that it has no kernels where one is to train.
set(TR_CUDA_ARCHITECTURES "80+;90a" CACHE STRING
    "GPUs that kernels are built for; 80+: and all later ones, whose driver compiles them")
find_program(TR_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
get_filename_component(include "${TR_NVCC}" REALPATH)
get_filename_component(include "${include}" DIRECTORY)
find_path(TR_CUDA_INCLUDE cublasLt.h HINTS ${include}/../include)
mark_as_advanced(TR_NVCC TR_CUDA_INCLUDE)
set(lacking "")
if(NOT TR_NVCC)
    set(lacking "nvcc is not found (add its folder to PATH)")
elseif(NOT TR_CUDA_INCLUDE OR NOT EXISTS ${TR_CUDA_INCLUDE}/cuda.h)
    set(lacking "cuda.h and cublasLt.h are not found beside ${TR_NVCC}")
endif()
set(default ON)
if(lacking)
    set(default OFF)
endif()
option(TRANCHE_CUDA "build the kernels for NVIDIA GPUs, which needs nvcc" ${default})
if(TRANCHE_CUDA AND lacking)
    message(FATAL_ERROR "TRANCHE_CUDA: ${lacking}")
elseif(TRANCHE_CUDA)
    set(TR_CUDA_EXCLUDED "/backend/cuda/driver_none\\.c$")
    message(STATUS "CUDA: ${TR_NVCC}, for GPUs ${TR_CUDA_ARCHITECTURES}")
else()
    set(TR_CUDA_EXCLUDED "/backend/cuda/driver(_cublas|_cudnn|_nccl)?\\.c$")
    if(NOT lacking)
        set(lacking "TRANCHE_CUDA is OFF")
    endif()
    message(STATUS "CUDA is left out, so nothing trains on GPUs: ${lacking}")
endif()

# tr_cuda_image(FILE NAME RESULT): a command that compiles FILE for all architectures.
# RESULT is set to the path of what it writes.
# Line numbers are for compute-sanitizer and profilers; they change no instruction.
# Kernels must not need local memory (a stack frame or spilled registers): CUDA would
# reserve it for each thread that a GPU can hold, beside the memory of the plan.
set(TR_CUDA_FLAGS -std=c++17 -O3 -lineinfo -Xptxas -warn-lmem-usage,-warn-spills)
if(TRANCHE_WERROR)
    list(APPEND TR_CUDA_FLAGS -Werror all-warnings)
endif()
if(TRANCHE_CUDA)
    execute_process(COMMAND ${TR_NVCC} --help OUTPUT_VARIABLE help)
    if(help MATCHES "--compress-mode") # from CUDA 12.4 on: a fifth of the bytes
        list(APPEND TR_CUDA_FLAGS --compress-mode=size)
    endif()
endif()
# What nvcc makes of C++, PTX, is the same for each architecture, unless a file asks which
# one it is for by __CUDA_ARCH__; then PTX is made for each, else once, for the oldest.
# Making it is half of nvcc's time.
set(TR_CUDA_FLAGS_EACH "")
set(TR_CUDA_FLAGS_ONCE "")
set(oldest "")
set(sorted ${TR_CUDA_ARCHITECTURES})
list(SORT sorted COMPARE NATURAL)
foreach(architecture ${sorted})
    string(REGEX REPLACE "\\+$" "" real ${architecture})
    string(REGEX REPLACE "[a-z]$" "" plain ${real}) # PTX for all has nothing of sm_90a
    if(NOT oldest)
        set(oldest compute_${plain})
    endif()
    list(APPEND TR_CUDA_FLAGS_EACH -gencode=arch=compute_${real},code=sm_${real})
    list(APPEND TR_CUDA_FLAGS_ONCE -gencode=arch=${oldest},code=sm_${plain})
    if(NOT real STREQUAL architecture)
        list(APPEND TR_CUDA_FLAGS_EACH
            -gencode=arch=compute_${real},code=compute_${real})
        list(APPEND TR_CUDA_FLAGS_ONCE -gencode=arch=${oldest},code=${oldest})
    endif()
endforeach()
list(REMOVE_DUPLICATES TR_CUDA_FLAGS_ONCE)

function(tr_cuda_image file name result)
    set(image ${CMAKE_BINARY_DIR}/cuda/${name}.fatbin)
    file(RELATIVE_PATH shown ${CMAKE_SOURCE_DIR} ${file})
    file(STRINGS ${file} asks REGEX "__CUDA_ARCH__")
    set(flags ${TR_CUDA_FLAGS_ONCE})
    if(asks)
        set(flags ${TR_CUDA_FLAGS_EACH})
    endif()
    add_custom_command(OUTPUT ${image} DEPFILE ${image}.d VERBATIM
        COMMAND ${TR_NVCC} ${TR_CUDA_FLAGS} ${flags}
            -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include
            -MMD -MF ${image}.d -MT ${image} -fatbin -o ${image} ${file}
        DEPENDS ${file} COMMENT "Compiling ${shown} for GPUs")
    set(${result} ${image} PARENT_SCOPE)
endfunction()

# The list of all modules (backend/cuda/modules.h), and their images. The lines
# TR_CUDA_KERNEL(tr_cuda_<name>) of a file say which kernels it has.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*/cuda*.cu)
set(TR_CUDA_IMAGES "")
set(functions "")
set(modules "")
set(data "")
foreach(path ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(RELATIVE_PATH shown ${CMAKE_SOURCE_DIR} ${path})
    string(REGEX REPLACE "^src/ops/[a-z]+/([a-z0-9_]+)/(cuda[a-z0-9_]*)\\.cu$" "\\1_\\2" module
        ${shown})
    file(STRINGS ${path} lines REGEX "^TR_CUDA_KERNEL(_MEETS)?\\(")
    set(own "")
    foreach(line ${lines})
        if(NOT line MATCHES "\\(tr_cuda_([a-z0-9_]+)\\)")
            message(FATAL_ERROR "${path}: \"${line}\" is not the line of a kernel "
                "tr_cuda_<name>")
        endif()
        set(name ${CMAKE_MATCH_1})
        string(APPEND functions "extern tr_cuda_function tr__cuda_function_${name};\n"
            "tr_cuda_function tr__cuda_function_${name} = {\"tr_cuda_${name}\", NULL};\n")
        string(APPEND own "&tr__cuda_function_${name}, ")
    endforeach()
    string(APPEND functions
        "static tr_cuda_function *const ${module}[] = {${own}NULL};\n")
    set(image NULL)
    if(TRANCHE_CUDA)
        tr_cuda_image(${path} ${module} file)
        list(APPEND TR_CUDA_IMAGES ${file})
        set(image tr__cuda_image_${module})
        string(APPEND data "extern const char ${image}[] HIDDEN;\n"
            "__asm__(\".pushsection .rodata\\n.balign 64\\n.global ${image}\\n\"\n"
            "        \".hidden ${image}\\n${image}:\\n.incbin \\\"${file}\\\"\\n.popsection\");\n")
    endif()
    string(APPEND modules "    {\"${shown}\", ${image}, ${module}},\n")
endforeach()
list(JOIN TR_CUDA_ARCHITECTURES " " architectures)
set(TR_CUDA_MODULES ${CMAKE_BINARY_DIR}/cuda_modules.c)
file(CONFIGURE OUTPUT ${TR_CUDA_MODULES} @ONLY CONTENT
"// Made from src/ops/*/*/cuda*.cu by cmake/cuda.cmake.
#include \"backend/cuda/modules.h\"

#include <stddef.h>

#define HIDDEN __attribute__((visibility(\"hidden\")))

const char tr__cuda_architectures[] = \"@architectures@\";

@functions@
@data@
const tr_cuda_module tr__cuda_modules[] = {
@modules@    {NULL, NULL, NULL}};
")
set_source_files_properties(${TR_CUDA_MODULES} PROPERTIES
    OBJECT_DEPENDS "${TR_CUDA_IMAGES}")
