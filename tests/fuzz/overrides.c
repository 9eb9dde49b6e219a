// Values of keys, resolved into a run with its plan: each line of the input is
// KEY=VALUE, as behind --set, over a small run.
#include "fuzz.h"

#include <tranche/extend/planner.h>
#include <tranche/run.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 16, LINE_BYTES = 256, DIGITS = 2 };

static const char base[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [4, 8, 3]},"
    " \"data\": {\"format\": \"random\", \"samples\": 64, \"features\": 4,"
    " \"classes\": 3}, \"steps\": 4, \"train_batch_size\": 8}";

static const char machine_text[] =
    "{\"name\": \"m\", \"ranks_per_node\": 1, \"compute\": {\"flops\": 1e9,"
    " \"bytes\": 1e9}, \"memory\": {\"device\": 1000000000},"
    " \"host\": {\"bytes\": 1e9},"
    " \"copy\": {\"to_device\": {\"bytes\": 1e9}, \"to_host\": {\"bytes\": 1e9}},"
    " \"nvme\": {\"read\": {\"bytes\": 1e9}, \"write\": {\"bytes\": 1e9}}}";

// Files of this machine are no input, and large plans would take long: numbers have at
// most two digits before the point.
static bool is_wanted(const char *line) {
    int digits = 0;
    for (const char *at = line; *at; at++) {
        digits = isdigit((unsigned char)*at) ? digits + 1 : 0;
        if (digits > DIGITS || *at == '/' || ((*at == 'e' || *at == 'E') && digits)) {
            return false;
        }
    }
    return strncmp(line, "data", 4) != 0 && strncmp(line, "model", 5) != 0;
}

static size_t split(char *text, const char *lines[LINES]) {
    size_t count = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line && count < LINES;
         line = strtok_r(NULL, "\n", &rest)) {
        if (is_wanted(line)) {
            lines[count++] = line;
        }
    }
    return count;
}

static tr_machine *machine(void) {
    static tr_machine *opened;
    tr_error err = {0};
    if (!opened) {
        const char *path =
            fuzz_file("machine.json", machine_text, sizeof machine_text - 1);
        fuzz_check(tr_machine_open(path, &opened, &err) == TR_OK, err.message);
    }
    return opened;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[LINES * LINE_BYTES + 1] = "";
    const char *lines[LINES];
    memcpy(text, data, size < sizeof text - 1 ? size : sizeof text - 1);
    size_t count = split(text, lines);
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    parts.machine = machine();
    fuzz_check(tr_run_create(&run, &err) == TR_OK &&
                   tr_run_load_text(run, base, &err) == TR_OK &&
                   tr_run_set(run, "plan_only", "true", &err) == TR_OK &&
                   tr_run_give(run, &parts, &err) == TR_OK,
               err.message);
    tr_status status = TR_OK;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = tr_run_assign(run, lines[i], &err);
    }
    if (status == TR_OK) {
        status = tr_run_resolve(run, &err);
    }
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(run), &plan, &err);
        fuzz_check_told(status, &err);
    }
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return 0;
}
