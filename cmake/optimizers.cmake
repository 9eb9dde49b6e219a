# Makes the lists of all optimizers (ops/optimizers/optimizer_settings.h) from their folders: an
# optimizer has a settings.c in src/ops/optimizers/<name>, which says its types, and a <name>.c, which
# says its number. The lists are in the order of the numbers.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/optimizers/*/settings.c)
set(rows "")
set(numbers "")
foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file}
        ${folder}/${name}.c)
    file(READ ${file} text)
    if(NOT text MATCHES "\nstatic const char \\*const types\\[\\] = {([^}]*), NULL}")
        message(FATAL_ERROR "${file} has no line "
            "\"static const char *const types[] = {\"...\", NULL};\"")
    endif()
    set(types ${CMAKE_MATCH_1})
    file(READ ${folder}/${name}.c text)
    if(NOT text MATCHES "\n    \\.number = ([0-9]+),")
        message(FATAL_ERROR "${folder}/${name}.c has no line \"    .number = ...,\"")
    endif()
    set(number ${CMAKE_MATCH_1})
    if(number IN_LIST numbers)
        message(FATAL_ERROR "${folder}/${name}.c: another optimizer has number ${number}")
    endif()
    list(APPEND numbers ${number})
    list(APPEND rows "${number}|${name}|${types}")
endforeach()
list(SORT rows COMPARE NATURAL)

set(declared "")
set(settings "")
set(keys "")
set(types "")
foreach(row ${rows})
    string(REGEX MATCH "^[0-9]+\\|([^|]+)\\|(.*)$" row "${row}")
    string(APPEND declared
        "extern const tr_optimizer_settings tr__optimizer_settings_${CMAKE_MATCH_1};\n")
    string(APPEND settings "    &tr__optimizer_settings_${CMAKE_MATCH_1},\n")
    string(APPEND keys "    &tr__optimizer_settings_${CMAKE_MATCH_1}.keys,\n")
    string(APPEND types "    ${CMAKE_MATCH_2},\n")
endforeach()
set(TR_OPTIMIZER_LISTS ${CMAKE_BINARY_DIR}/optimizer_lists.c)
file(CONFIGURE OUTPUT ${TR_OPTIMIZER_LISTS} @ONLY CONTENT
"// Made from src/ops/optimizers/*/settings.c by cmake/optimizers.cmake.
#include \"ops/optimizers/optimizer_settings.h\"

@declared@
const tr_optimizer_settings *const tr__optimizers[] = {
@settings@    NULL};

const tr_key_table *const tr__optimizer_keys[] = {
@keys@    NULL};

const char *const tr__optimizer_types[] = {
@types@    NULL};
")
