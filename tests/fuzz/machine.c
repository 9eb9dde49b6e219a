// Machine files: what was written must come back the same when it is read.
#include "fuzz.h"

#include "base/memory.h"
#include "sim/machine.h"

#include <stdlib.h>
#include <string.h>

static char *print(const tr_machine *machine) {
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    FILE *to = open_memstream(&text, &bytes);
    fuzz_check(tr__machine_print(machine, NULL, 0, to, &err) == TR_OK, err.message);
    fclose(to);
    return text;
}

// What a printed machine prints as when it is read.
static char *print_again(const char *printed) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    tr_status status = tr__machine_parse("again", printed, &machine, &err);
    fuzz_check(status == TR_OK, err.message);
    char *text = print(machine);
    tr_machine_close(machine);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    tr_machine *machine = NULL;
    tr_error err = {0};
    tr_status status = tr__machine_parse("machine.json", text, &machine, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        char *printed = print(machine); // rounded, and "-0" becomes 0 when it is read
        char *twice = print_again(printed), *thrice = print_again(twice);
        fuzz_check(strcmp(twice, thrice) == 0, "a machine that changes when written");
        free(printed);
        free(twice);
        free(thrice);
        tr_machine_close(machine);
    }
    free(text);
    return 0;
}
