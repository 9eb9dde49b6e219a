#include "infer/trained_base.h"

#include "base/files.h"
#include "files/checkpoint/state.h"
#include "models/adapter.h"

#include <limits.h>
#include <unistd.h>

tr_quantization tr__trained_quantization(const char *folder) {
    char path[PATH_MAX];
    tr_state state;
    tr_manifest manifest;
    double kind = TR_QUANTIZED_NOT;
    if (tr__path_join(path, sizeof path, folder, "state.json", NULL) != TR_OK ||
        access(path, F_OK) != 0 ||
        tr__state_read(path, &state, &manifest, NULL) != TR_OK) {
        return TR_QUANTIZED_NOT;
    }
    tr__state_numbers_get(&state.numbers, "quantized", &kind);
    return (tr_quantization)kind;
}

void tr__ask_for_trained_base(const char *folder, const tr_model *model,
                              tr_plan_request *request) {
    static const char *const all[] = {"*"};
    request->quantization =
        model->adapter ? tr__trained_quantization(folder) : TR_QUANTIZED_NOT;
    if (request->quantization) {
        request->frozen = all;
        request->frozen_count = 1;
        request->unfrozen = tr__adapter_trained(tr__model_adapter(model));
    }
}
