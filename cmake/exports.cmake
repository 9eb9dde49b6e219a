# What a shared library exports: the functions that cmake/exports.txt names, each as
# NAME@@TRANCHE_MAJOR.MINOR. tests/install compares the file with the headers and with
# what is exported.
set(TR_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/exports.txt)
set(TR_VERSION_SCRIPT ${CMAKE_BINARY_DIR}/exports.map)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TR_EXPORTS})
file(STRINGS ${TR_EXPORTS} names REGEX "^tr_")
list(JOIN names ";\n        " names)
set(node TRANCHE_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
file(CONFIGURE OUTPUT ${TR_VERSION_SCRIPT} @ONLY
    CONTENT "${node} {\n    global:\n        ${names};\n    local:\n        *;\n};\n")

# tr_export(<target>): the shared library exports these and nothing else
function(tr_export target)
    target_link_options(${target} PRIVATE -Wl,--version-script=${TR_VERSION_SCRIPT}
        $<$<NOT:$<BOOL:${TRANCHE_SANITIZE}>>:-Wl,--no-undefined>)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${TR_VERSION_SCRIPT})
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()
