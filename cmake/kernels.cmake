# tr_add_kernels(<target> <files>): compiles each file once for each instruction set, with
# TR_ISA_SUFFIX telling which, and adds the objects to the target.
set(TR_ISAS generic)
set(TR_ISA_FLAGS_generic "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND TR_ISAS avx2 avx512)
    set(TR_ISA_FLAGS_avx2 -mavx2 -mfma)
    set(TR_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma
        -mprefer-vector-width=512)
endif()

function(tr_add_kernels target files)
    if(NOT files)
        return()
    endif()
    foreach(isa ${TR_ISAS})
        set(objects ${target}-kernels-${isa})
        add_library(${objects} OBJECT ${files})
        tr_target_options(${objects})
        target_include_directories(${objects} PRIVATE ${CMAKE_SOURCE_DIR}/include
            ${CMAKE_SOURCE_DIR}/src)
        target_compile_definitions(${objects} PRIVATE TR_ISA_SUFFIX=${isa})
        target_compile_options(${objects} PRIVATE -O3 -Wno-psabi ${TR_ISA_FLAGS_${isa}})
        target_link_libraries(${objects} PRIVATE OpenMP::OpenMP_C)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endforeach()
endfunction()
