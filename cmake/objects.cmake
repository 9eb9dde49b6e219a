# A build with another MPI differs in src/comm/mpi*.c alone, which include <mpi.h>, and in
# what starts ranks. It may take all other objects of the library from a build that is
# there, with the same compiler and flags.
set(TRANCHE_OBJECTS_OF "" CACHE PATH
    "folder of a build whose objects this one links where they do not depend on MPI")
# What no test of a sanitizer is about, kernels, need not be compiled for each. Which are
# compiled all the same is in kernels.cmake (TR_KERNELS_HERE).
set(TRANCHE_KERNELS_OF "" CACHE PATH
    "folder of a build whose kernels this one links, as they are there")
add_custom_target(objects) # builds what another build may take
add_custom_target(kernels) # the kernels alone

# tr_give_objects(<list> <target>...): writes which objects the targets have
function(tr_give_objects list)
    set(content "")
    foreach(target ${ARGN})
        string(APPEND content "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
    endforeach()
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/objects/${list}.txt CONTENT "${content}")
    add_dependencies(objects ${ARGN})
endfunction()

# tr_take_objects(<folder> <list> <result>): what the build in the folder wrote
function(tr_take_objects folder list result)
    set(file ${folder}/objects/${list}.txt)
    if(NOT EXISTS ${file})
        message(FATAL_ERROR "there is no ${file}: configure that build with tests, and "
            "build its target \"objects\" (TRANCHE_OBJECTS_OF) or \"kernels\" "
            "(TRANCHE_KERNELS_OF)")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} objects)
    set(${result} ${objects} PARENT_SCOPE)
endfunction()
