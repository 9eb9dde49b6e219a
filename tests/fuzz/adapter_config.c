// adapter_config.json: what is read of it names layers without harm, and is written as
// it can be read again.
#include "fuzz.h"

#include "base/memory.h"
#include "files/safetensors/json.h"
#include "models/adapter.h"

#include <stdlib.h>
#include <string.h>

static const char *const modules[] = {"", "lm_head", "model.layers.0.self_attn.q_proj",
                                      "transformer.h.11.attn.c_attn"};

static void use(const tr_adapter_config *adapter) {
    for (size_t i = 0; tr__adapter_target(adapter, i); i++) {
        for (size_t m = 0; m < sizeof modules / sizeof *modules; m++) {
            tr__adapter_names(adapter, i, modules[m]);
        }
    }
    for (const char *const *one = tr__adapter_trained(adapter); *one; one++) {
        if (!strchr(*one, '*')) {
            abort();
        }
    }
}

// Written and read again, it asks for the same layers.
static void check_written(const tr_adapter_config *adapter) {
    tr_error err = {0};
    json_t *keys = NULL;
    tr_adapter_config *again = NULL;
    char *text = tr__adapter_text(adapter, "llama", false, "/no/such/base");
    if (!text || tr__json_parse("written", text, strlen(text), &keys, &err) != TR_OK ||
        tr__adapter_from_json(keys, "written", "llama", &again, &err) != TR_OK) {
        abort();
    }
    for (size_t i = 0; tr__adapter_target(adapter, i); i++) {
        const char *target = tr__adapter_target(again, i);
        if (!target || strcmp(target, tr__adapter_target(adapter, i)) != 0) {
            abort();
        }
    }
    tr__adapter_destroy(again);
    json_decref(keys);
    tr__free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char name[] = "adapter_config.json";
    tr_error err = {0};
    json_t *keys = NULL;
    tr_adapter_config *adapter = NULL;
    tr_status status = tr__json_parse(name, (const char *)data, size, &keys, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        status = tr__adapter_from_json(keys, name, "llama", &adapter, &err);
        fuzz_check_told(status, &err);
    }
    if (status == TR_OK) {
        use(adapter);
        check_written(adapter);
    }
    tr__adapter_destroy(adapter);
    json_decref(keys);
    return 0;
}
