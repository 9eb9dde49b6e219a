# Makes the list of all kernels of the CPU backend (backend/cpu/kernels.h) from the folders
# of the ops: each that has a file src/ops/<op>/cpu_kernels.c defines an array
# tr__cpu_kernels_<op> there. Likewise that of all updates of optimizers
# (ops/cpu_optimizer.h) from src/ops/<optimizer>/cpu_optimizer.c.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/cpu_kernels.c)
set(declared "")
set(lists "")
foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    string(APPEND declared "extern const tr_cpu_kernels tr__cpu_kernels_${name}[];\n")
    string(APPEND lists "    tr__cpu_kernels_${name},\n")
endforeach()
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/cpu_optimizer.c)
set(optimizers "")
foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    string(APPEND declared "extern const tr_cpu_optimizer tr__cpu_optimizer_${name};\n")
    string(APPEND optimizers "    &tr__cpu_optimizer_${name},\n")
endforeach()
set(TR_CPU_KERNEL_LISTS ${CMAKE_BINARY_DIR}/cpu_kernel_lists.c)
file(CONFIGURE OUTPUT ${TR_CPU_KERNEL_LISTS} @ONLY CONTENT
"// Made from src/ops/*/cpu_*.c by cmake/cpu_kernels.cmake.
#include \"backend/cpu/kernels.h\"
#include \"ops/cpu_optimizer.h\"

@declared@
const tr_cpu_kernels *const tr__cpu_kernel_lists[] = {
@lists@    NULL};

const tr_cpu_optimizer *const tr__cpu_optimizers[] = {
@optimizers@    NULL};
")
