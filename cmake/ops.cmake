# Makes the list of the library's ops (ops/built_in.h) from the definitions in their
# folders: lines "const tr_op tr__op_<name> = {".
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*/*.c)
set(declared "")
set(listed "")
foreach(file ${files})
    file(STRINGS ${file} lines REGEX "^const tr_op tr__op_[a-z0-9_]+ = {")
    if(lines)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endif()
    foreach(line ${lines})
        string(REGEX MATCH "tr__op_[a-z0-9_]+" name "${line}")
        string(APPEND declared "extern const tr_op ${name};\n")
        string(APPEND listed "    &${name},\n")
    endforeach()
endforeach()
set(TR_OP_LIST ${CMAKE_BINARY_DIR}/op_list.c)
file(CONFIGURE OUTPUT ${TR_OP_LIST} @ONLY CONTENT
"// Made from src/ops by cmake/ops.cmake.
#include \"ops/built_in.h\"

@declared@
const tr_op *const tr__built_in_ops[] = {
@listed@    NULL};
")
