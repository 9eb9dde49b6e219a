# tr_add_kernels(<target> <files>): compiles each file once for each instruction set, with
# TR_ISA_SUFFIX telling which, and adds the objects to the target; what is written for
# tensors of any format (backend/cpu/real.h) also for each 16-bit one.
set(TR_ISAS generic)
set(TR_ISA_FLAGS_generic "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND TR_ISAS avx2 avx512)
    set(TR_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
    set(TR_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma
        -mprefer-vector-width=512)
endif()

# Adds the objects of `files`, compiled for an instruction set and a format of the tensors
# ("": f32), to the target.
function(tr_add_kernel_objects target files isa real)
    string(TOUPPER "TR_REAL${real}" definition)
    set(objects ${target}-kernels-${isa}${real})
    add_library(${objects} OBJECT ${files})
    tr_target_options(${objects})
    target_include_directories(${objects} PRIVATE ${CMAKE_SOURCE_DIR}/include
        ${CMAKE_SOURCE_DIR}/src)
    target_compile_definitions(${objects} PRIVATE TR_ISA_SUFFIX=${isa}${real})
    if(real)
        target_compile_definitions(${objects} PRIVATE ${definition})
    endif()
    target_compile_options(${objects} PRIVATE -O3 -Wno-psabi ${TR_ISA_FLAGS_${isa}})
    target_link_libraries(${objects} PRIVATE OpenMP::OpenMP_C)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
endfunction()

# What includes backend/cpu/real.h is written for tensors of any format.
function(tr_add_kernels target files)
    set(of_any_format "")
    foreach(file ${files})
        file(STRINGS ${file} includes REGEX "^#include \"backend/cpu/real.h\"")
        if(includes)
            list(APPEND of_any_format ${file})
        endif()
    endforeach()
    foreach(isa ${TR_ISAS})
        if(files)
            tr_add_kernel_objects(${target} "${files}" ${isa} "")
        endif()
        foreach(real _bf16 _f16)
            if(of_any_format)
                tr_add_kernel_objects(${target} "${of_any_format}" ${isa} ${real})
            endif()
        endforeach()
    endforeach()
endfunction()
