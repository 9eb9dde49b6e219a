// config.json of a model's folder; and the same as the "model" object of a run file,
// which is read more strictly.
#include "fuzz.h"

#include "files/safetensors/json.h"
#include "models/models.h"

#include <math.h>
#include <string.h>

enum { LAYERS_MOST = 64 };

// A model of many layers takes memory for all of them, as it should.
static bool is_small(const json_t *keys) {
    static const char *const names[] = {"n_layer", "depth", "depths", "layer_sizes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(keys, names[i]);
        if (fabs(json_number_value(value)) > LAYERS_MOST) {
            return false;
        }
        size_t k;
        json_t *element;
        json_array_foreach(value, k, element) {
            if (strcmp(names[i], "depths") == 0 &&
                fabs(json_number_value(element)) > LAYERS_MOST) {
                return false;
            }
        }
    }
    return true;
}

static void build(const json_t *keys, bool strict) {
    tr_error err = {0};
    tr_model *model = NULL;
    fuzz_check_told(tr__model_from_json(keys, "config.json", strict, &model, &err),
                    &err);
    tr_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tr_error err = {0};
    json_t *keys = NULL;
    tr_status status =
        tr__json_parse("config.json", (const char *)data, size, &keys, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK && is_small(keys)) {
        build(keys, true);
        build(keys, false);
    }
    json_decref(keys);
    return 0;
}
