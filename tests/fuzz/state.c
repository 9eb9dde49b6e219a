// state.json of a checkpoint. Its check is computed anew, so that what was changed gets
// past it; what was read must come back the same when it is written and read again.
#include "fuzz.h"

#include "base/hash.h"
#include "base/memory.h"
#include "files/checkpoint/state.h"
#include "files/safetensors/json.h"

#include <stdlib.h>
#include <string.h>

// The text with a check that holds; NULL: it is no object.
static char *with_check(const char *text, size_t bytes) {
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    char *whole = NULL;
    if (json_is_object(root)) {
        json_object_del(root, "check");
        char *content = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
        json_object_set_new(root, "check", tr__json_hash(tr__hash_text(content)));
        whole = json_dumps(root, JSON_COMPACT);
        free(content);
    }
    json_decref(root);
    return whole;
}

static void check_round(const tr_state *state, const tr_manifest *manifest) {
    tr_error err = {0};
    char *text = NULL, *again = NULL;
    tr_state *read = calloc(1, sizeof *read);
    tr_manifest files;
    fuzz_check(tr__state_encode(state, manifest, &text, &err) == TR_OK, err.message);
    fuzz_check(tr__state_decode("again", text, strlen(text), read, &files, &err) ==
                   TR_OK,
               err.message);
    fuzz_check(tr__state_encode(read, &files, &again, &err) == TR_OK, err.message);
    fuzz_check(strcmp(text, again) == 0, "a state that changes when it is written");
    tr__free(text);
    tr__free(again);
    free(read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = with_check((const char *)data, size);
    if (!text) {
        return 0;
    }
    tr_state *state = calloc(1, sizeof *state);
    tr_manifest manifest;
    tr_error err = {0};
    tr_status status =
        tr__state_decode("state.json", text, strlen(text), state, &manifest, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        check_round(state, &manifest);
    }
    free(state);
    free(text);
    return 0;
}
