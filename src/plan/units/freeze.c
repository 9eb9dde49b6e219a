#include "plan/units/freeze.h"

#include "base/text.h"

#include <stdio.h>

enum { NAME_BYTES = 1024 };

bool tr__matches_frozen(const tr_plan_request *request, const char *stored) {
    bool frozen = false;
    for (size_t i = 0; i < request->frozen_count; i++) {
        frozen = frozen || tr__glob_match(request->frozen[i], stored);
    }
    for (const char *const *one = request->unfrozen; frozen && one && *one; one++) {
        frozen = !tr__glob_match(*one, stored);
    }
    return frozen;
}

bool tr__is_frozen(const tr_plan_request *request, const char *stored) {
    return !request->inference && tr__matches_frozen(request, stored);
}

bool tr__matches_own(const tr_plan_request *request, const tr_model_unit *unit,
                     const char *name) {
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s%s", unit->prefix, name);
    return tr__matches_frozen(request, text);
}

// The name that files have for it. text: [NAME_BYTES]
static const char *stored_name(const tr_model_unit *unit, const tr_param_info *info,
                               char *text) {
    snprintf(text, NAME_BYTES, "%s%s", info->shared ? "" : unit->prefix, info->name);
    return info->whole ? info->whole : text;
}

static bool freezes(const tr_plan_request *request, const tr_model_unit *unit,
                    const tr_param_info *info) {
    char text[NAME_BYTES];
    return info->quantized || (request->frozen_count > 0 &&
                               tr__is_frozen(request, stored_name(unit, info, text)));
}

// One product makes the gradient of all that lies in one tensor.
static tr_status fail_stacked(const tr_model_unit *unit, const tr_param_info *a,
                              const tr_param_info *b, tr_error *err) {
    const tr_param_info *frozen = a->frozen ? a : b, *trained = a->frozen ? b : a;
    return tr_fail(
        err, TR_USAGE,
        "freeze: %s%s is frozen and %s%s is trained, but both are rows of one "
        "tensor here: freeze both, or neither of them",
        unit->prefix, frozen->name, unit->prefix, trained->name);
}

tr_status tr__freeze_graph(const tr_plan_request *request, const tr_model_unit *unit,
                           tr_graph *graph, tr_error *err) {
    for (size_t i = 0; i < graph->param_count; i++) {
        tr_param_info *info = &graph->params[i];
        info->frozen = freezes(request, unit, info);
        if (info->stacked && info->frozen != info[-1].frozen) {
            return fail_stacked(unit, &info[-1], info, err);
        }
    }
    return TR_OK;
}

bool tr__freezes_alike(const tr_plan_request *request, const tr_model_unit *unit,
                       const tr_graph *graph) {
    bool alike = true;
    for (size_t i = 0; alike && request->frozen_count > 0 && i < graph->param_count;
         i++) {
        alike = freezes(request, unit, &graph->params[i]) == graph->params[i].frozen;
    }
    return alike;
}
