# tr_add_kernels(<target> <files>): compiles each file once for each instruction set, with
# TR_ISA_SUFFIX telling which, and adds the objects to the target; what is written for
# tensors of any format (backend/cpu/real.h) also for each 16-bit one, and of that what
# multiplies itself (backend/cpu/pair.h) also for pairs of bf16. TR_KERNEL_TARGETS is set
# to the targets of the objects, TR_KERNELS_TAKEN to what is another build's objects
# (TRANCHE_KERNELS_OF).
set(TR_KERNEL_FLAGS -O3 -Wno-psabi)
if(TR_SANITIZED_OPTIMIZATION)
    set(TR_KERNEL_FLAGS ${TR_SANITIZED_OPTIMIZATION} -Wno-psabi)
    # Half of what the tests of training compute is in here.
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backend/cpu/cpu_gemm.c
        PROPERTIES COMPILE_OPTIONS -O2)
endif()
if(TRANCHE_FUZZ) # no fuzz target runs a kernel
    set(TR_KERNEL_FLAGS -O0 -fno-sanitize=all -Wno-psabi)
endif()
set(TR_ISAS generic)
set(TR_ISA_FLAGS_generic "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND TR_ISAS avx2 avx512)
    set(TR_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
    set(TR_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma
        -mprefer-vector-width=512)
    set(TR_ISA_OF_PAIRS avx512)
endif()
# UndefinedBehaviorSanitizer doubles the time to compile vectors of a processor's own, and
# of 16 bits. The generic kernels of f32 are the same source, and the conformance tests run
# them on each case.
set(TR_KERNEL_UNCHECKED "")
if(TRANCHE_SANITIZE MATCHES "undefined" AND NOT TRANCHE_FUZZ)
    set(TR_KERNEL_UNCHECKED -fno-sanitize=undefined)
endif()
# What is compiled here in spite of TRANCHE_KERNELS_OF: AddressSanitizer has to see the
# lowest set and the widest that this machine runs, the two that its conformance tests try.
# Those between are the same source, and no test runs those above. What is of f16 differs
# from bf16 by four conversions (backend/cpu/real.h), which cpu_half.c has here, too. The
# lowest set is here in f32 alone: bf16 is a tenth of this build's time for one set, and
# the widest has it.
set(TR_KERNELS_HERE "")
if(TRANCHE_SANITIZE MATCHES "address" AND NOT TRANCHE_FUZZ)
    set(widest generic)
    if(EXISTS /proc/cpuinfo)
        file(STRINGS /proc/cpuinfo cpu REGEX "^flags" LIMIT_COUNT 1)
        if(cpu MATCHES " avx512f ")
            set(widest avx512)
        elseif(cpu MATCHES " avx2 ")
            set(widest avx2)
        endif()
    endif()
    list(APPEND TR_KERNELS_HERE generic ${widest} ${widest}_bf16 ${widest}_pairs)
endif()
set(TR_REAL_FLAGS_bf16 -DTR_REAL_BF16)
set(TR_REAL_FLAGS_f16 -DTR_REAL_F16)
set(TR_REAL_FLAGS_pairs -DTR_REAL_BF16 -DTR_PAIRS -mavx512bf16)

# Adds the objects of `files`, compiled for an instruction set and a format of the tensors
# ("": f32; "_bf16" and the like), to the target.
function(tr_add_kernel_objects target files isa real)
    if(TRANCHE_KERNELS_OF AND NOT "${isa}${real}" IN_LIST TR_KERNELS_HERE)
        tr_take_objects(${TRANCHE_KERNELS_OF} kernels-${isa}${real} taken)
        target_sources(${target} PRIVATE ${taken})
        set(TR_KERNELS_TAKEN ${TR_KERNELS_TAKEN} ${taken} PARENT_SCOPE)
        return()
    endif()
    set(objects ${target}-kernels-${isa}${real})
    add_library(${objects} OBJECT ${files})
    tr_target_options(${objects})
    target_include_directories(${objects} PRIVATE ${CMAKE_SOURCE_DIR}/include
        ${CMAKE_SOURCE_DIR}/src)
    target_compile_definitions(${objects} PRIVATE TR_ISA_SUFFIX=${isa}${real})
    target_compile_options(${objects} PRIVATE ${TR_KERNEL_FLAGS} ${TR_ISA_FLAGS_${isa}}
        ${TR_REAL_FLAGS${real}})
    if(NOT "${isa}${real}" STREQUAL "generic")
        target_compile_options(${objects} PRIVATE ${TR_KERNEL_UNCHECKED})
    endif()
    target_link_libraries(${objects} PRIVATE OpenMP::OpenMP_C)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    tr_give_objects(kernels-${isa}${real} ${objects})
    add_dependencies(kernels ${objects})
    set(TR_KERNEL_TARGETS ${TR_KERNEL_TARGETS} ${objects} PARENT_SCOPE)
endfunction()

# Those of the files that have a line in which something matches the pattern.
function(tr_files_with pattern files result)
    set(found "")
    foreach(file ${files})
        file(STRINGS ${file} lines REGEX "${pattern}")
        if(lines)
            list(APPEND found ${file})
        endif()
    endforeach()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

function(tr_add_kernels target files)
    set(TR_KERNEL_TARGETS "")
    set(TR_KERNELS_TAKEN "")
    tr_files_with("^#include \"backend/cpu/real.h\"" "${files}" of_any_format)
    tr_files_with("^#include \"backend/cpu/pair.h\"" "${files}" of_pairs)
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
    if(of_pairs AND TR_ISA_OF_PAIRS)
        tr_add_kernel_objects(${target} "${of_pairs}" ${TR_ISA_OF_PAIRS} _pairs)
    endif()
    set(TR_KERNEL_TARGETS ${TR_KERNEL_TARGETS} PARENT_SCOPE)
    set(TR_KERNELS_TAKEN ${TR_KERNELS_TAKEN} PARENT_SCOPE)
endfunction()
