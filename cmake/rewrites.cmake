# Makes the list of the library's rewrites (graph/rewrite.h): a file
# src/graph/rewrites/<name>.c defines an array tr__rewrites_<name>.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/graph/rewrites/*.c)
set(declared "")
set(listed "")
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(APPEND declared "extern const tr_rewrite tr__rewrites_${name}[];\n")
    string(APPEND listed "    tr__rewrites_${name},\n")
endforeach()
set(TR_REWRITE_LIST ${CMAKE_BINARY_DIR}/rewrite_list.c)
file(CONFIGURE OUTPUT ${TR_REWRITE_LIST} @ONLY CONTENT
"// Made from src/graph/rewrites by cmake/rewrites.cmake.
#include \"graph/rewrite.h\"

@declared@
const tr_rewrite *const tr__rewrites[] = {
@listed@    NULL};
")
