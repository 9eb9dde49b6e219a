# A build with another MPI differs in src/comm/mpi*.c alone, which include <mpi.h>, and in
# what starts ranks. It may take all other objects of the library from a build that is
# there, with the same compiler and flags.
set(TRANCHE_OBJECTS_OF "" CACHE PATH
    "folder of a build whose objects this one links where they do not depend on MPI")
add_custom_target(objects) # builds what another build may take

# tr_give_objects(<list> <target>...): writes which objects the targets have
function(tr_give_objects list)
    set(content "")
    foreach(target ${ARGN})
        string(APPEND content "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
    endforeach()
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/objects/${list}.txt CONTENT "${content}")
    add_dependencies(objects ${ARGN})
endfunction()

# tr_take_objects(<list> <result>): what the other build wrote
function(tr_take_objects list result)
    set(file ${TRANCHE_OBJECTS_OF}/objects/${list}.txt)
    if(NOT EXISTS ${file})
        message(FATAL_ERROR "TRANCHE_OBJECTS_OF: there is no ${file}: configure that "
            "build with tests, and build its target \"objects\"")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} objects)
    set(${result} ${objects} PARENT_SCOPE)
endfunction()
