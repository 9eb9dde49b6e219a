# tr_kernel_lists(BACKEND FILE HEADERS RESULT) writes the lists of a backend's kernels and of
# its updates of optimizers, from the folders of the ops. An op that has the file
# src/ops/<kind>/<op>/FILE defines an array tr__<backend>_kernels_<op> there; an optimizer that has
# src/ops/optimizers/<optimizer>/<backend>_optimizer.c defines tr__<backend>_optimizer_<optimizer>.
# HEADERS declare their types and the lists. RESULT is set to the path of the C file.
function(tr_kernel_lists backend file headers result)
    set(declared "")
    foreach(header ${headers})
        string(APPEND declared "#include \"${header}\"\n")
    endforeach()
    string(APPEND declared "\n")
    set(lists "")
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*/${file})
    foreach(path ${files})
        get_filename_component(folder ${path} DIRECTORY)
        get_filename_component(name ${folder} NAME)
        string(APPEND declared
            "extern const tr_${backend}_kernels tr__${backend}_kernels_${name}[];\n")
        string(APPEND lists "    tr__${backend}_kernels_${name},\n")
    endforeach()
    set(optimizers "")
    file(GLOB files CONFIGURE_DEPENDS
        ${CMAKE_SOURCE_DIR}/src/ops/optimizers/*/${backend}_optimizer.c)
    foreach(path ${files})
        get_filename_component(folder ${path} DIRECTORY)
        get_filename_component(name ${folder} NAME)
        string(APPEND declared
            "extern const tr_${backend}_optimizer tr__${backend}_optimizer_${name};\n")
        string(APPEND optimizers "    &tr__${backend}_optimizer_${name},\n")
    endforeach()
    set(written ${CMAKE_BINARY_DIR}/${backend}_kernel_lists.c)
    file(CONFIGURE OUTPUT ${written} @ONLY CONTENT
"// Made from src/ops by cmake/kernel_lists.cmake.
@declared@
const tr_@backend@_kernels *const tr__@backend@_kernel_lists[] = {
@lists@    NULL};

const tr_@backend@_optimizer *const tr__@backend@_optimizers[] = {
@optimizers@    NULL};
")
    set(${result} ${written} PARENT_SCOPE)
endfunction()

tr_kernel_lists(cpu cpu_kernels.c "backend/cpu/kernels.h;ops/optimizers/cpu_optimizer.h"
    TR_CPU_KERNEL_LISTS)
tr_kernel_lists(cuda cuda.c backend/cuda/kernels.h TR_CUDA_KERNEL_LISTS)
