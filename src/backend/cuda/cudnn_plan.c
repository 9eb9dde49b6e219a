#include "backend/cuda/cudnn_plan.h"

#include "backend/cuda/cudnn_attention.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ASKED = 16 }; // engines, at most

// Why engines were not taken.
typedef struct refusals {
    int all, nondeterministic, large, small, unbuilt;
    int64_t least;            // bytes that one of the large ones wants
    char text[TR_CUDNN_TEXT]; // what cuDNN says of the last one that it does not build
} refusals;

static void print_shape(const tr_cuda_attend_shape *s, char *text, size_t size) {
    snprintf(text, size,
             "%" PRId64 " x %" PRId64 " heads of %" PRId64 ", %" PRId64
             " of keys, %" PRId64 " tokens each, %s, %s%s",
             s->batch, s->heads, s->depth, s->pairs, s->context,
             s->half == TR_BF16 ? "bf16" : "fp16", s->both ? "both ways" : "causal",
             s->backward || s->has_lse ? "" : ", without logarithms");
}

static tr_status fail(const tr_cudnn_graph *g, const tr_cuda_attend_shape *s,
                      tr_error *err) {
    char shape[160];
    print_shape(s, shape, sizeof shape);
    return tr_fail(err, TR_USAGE,
                   "cuDNN %d.%d does not take attention of %s (%s: %s: %s); "
                   "\"execution\": {\"attention\": \"own\"} does without it",
                   (int)(s->version / 100), (int)(s->version % 100), shape, g->what,
                   g->by->status_name(g->status), g->text);
}

static tr_status refuse(const refusals *r, const tr_cuda_attend_shape *s,
                        tr_error *err) {
    char large[128] = "", unbuilt[TR_CUDNN_TEXT + 64] = "", shape[160];
    print_shape(s, shape, sizeof shape);
    if (r->large > 0) {
        snprintf(large, sizeof large,
                 ", %d want more than the plan's %" PRId64 " bytes (%" PRId64 ")",
                 r->large, s->workspace, r->least);
    }
    if (r->unbuilt > 0) {
        snprintf(unbuilt, sizeof unbuilt, ", %d are not for this GPU (%s)", r->unbuilt,
                 r->text);
    }
    return tr_fail(err, TR_USAGE,
                   "of the %d engines that cuDNN %d.%d has for the %s of attention "
                   "here (%s), %d do not give the same bits every time%s%s: set "
                   "\"execution\": {\"attention\": \"own\"}",
                   r->all, (int)(s->version / 100), (int)(s->version % 100),
                   s->backward ? "backward" : "forward", shape,
                   r->nondeterministic + r->small, large, unbuilt);
}

// ---- engines

static void *ask(tr_cudnn_graph *g, const tr_cudnn_device *device, void *graph) {
    const int32_t mode = TR_CUDNN_HEUR_MODE_A;
    void *heuristics = tr__cudnn_create(g, TR_CUDNN_ENGINEHEUR, "its engines");
    tr__cudnn_refer(g, heuristics, TR_CUDNN_ENGINEHEUR_OPERATION_GRAPH, graph);
    tr__cudnn_set(g, heuristics, TR_CUDNN_ENGINEHEUR_MODE, TR_CUDNN_TYPE_HEUR_MODE, 1,
                  &mode);
    if (device->properties) {
        tr__cudnn_refer(g, heuristics, TR_CUDNN_ENGINEHEUR_DEVICEPROP,
                        device->properties);
    }
    tr__cudnn_finalize(g, heuristics);
    return heuristics;
}

// The first ones come first. Returns how many.
static int64_t recommended(tr_cudnn_graph *g, void *heuristics, void *configs[ASKED]) {
    int64_t count = 0;
    for (int i = 0; i < ASKED; i++) {
        configs[i] = tr__cudnn_create(g, TR_CUDNN_ENGINECFG, "an engine");
    }
    if (g->status == TR_CUDNN_SUCCESS) {
        g->status =
            g->by->get(heuristics, TR_CUDNN_ENGINEHEUR_RESULTS,
                       TR_CUDNN_TYPE_BACKEND_DESCRIPTOR, ASKED, &count, configs);
    }
    return count < ASKED ? count : ASKED;
}

static bool is_noted(const int32_t *notes, int64_t count, int32_t note) {
    int64_t i = 0;
    while (i < count && notes[i] != note) {
        i++;
    }
    return i < count;
}

// An engine of which nothing can be learnt is not taken.
static bool is_deterministic(tr_cudnn_graph *g, void *config, int64_t *number) {
    int32_t notes[TR_CUDNN_NOTES];
    int64_t count = 0, one = 0;
    void *engine = tr__cudnn_create(g, TR_CUDNN_ENGINE, "an engine");
    return engine &&
           g->by->get(config, TR_CUDNN_ENGINECFG_ENGINE,
                      TR_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one,
                      &engine) == TR_CUDNN_SUCCESS &&
           g->by->get(engine, TR_CUDNN_ENGINE_GLOBAL_INDEX, TR_CUDNN_TYPE_INT64, 1,
                      &one, number) == TR_CUDNN_SUCCESS &&
           g->by->get(engine, TR_CUDNN_ENGINE_NUMERICAL_NOTE,
                      TR_CUDNN_TYPE_NUMERICAL_NOTE, TR_CUDNN_NOTES, &count,
                      notes) == TR_CUDNN_SUCCESS &&
           count <= TR_CUDNN_NOTES &&
           !is_noted(notes, count, TR_CUDNN_NONDETERMINISTIC);
}

// The engine's plan, compiled; NULL: the engine is not for this device.
static void *compile(tr_cudnn_graph *g, const tr_cudnn_device *device, void *config) {
    void *plan = tr__cudnn_create(g, TR_CUDNN_EXECUTION_PLAN, "an engine");
    tr__cudnn_refer(g, plan, TR_CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (device->properties) {
        tr__cudnn_refer(g, plan, TR_CUDNN_EXECUTION_PLAN_DEVICEPROP,
                        device->properties);
    } else {
        tr__cudnn_set(g, plan, TR_CUDNN_EXECUTION_PLAN_HANDLE, TR_CUDNN_TYPE_HANDLE, 1,
                      &device->handle);
    }
    return g->status == TR_CUDNN_SUCCESS && g->by->finalize(plan) == TR_CUDNN_SUCCESS
               ? plan
               : NULL;
}

// A backward in less does not write the gradients of all scores: it adds in any order,
// and notes do not tell (9.19 has none for such engines).
static bool fits(tr_cudnn_plan *p, void *plan, const tr_cuda_attend_shape *shape,
                 refusals *r) {
    int64_t count = 0, most = shape->workspace;
    int status = p->graph.by->get(plan, TR_CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE,
                                  TR_CUDNN_TYPE_INT64, 1, &count, &p->workspace);
    if (status != TR_CUDNN_SUCCESS || p->workspace > most) {
        r->least = r->large == 0 || p->workspace < r->least ? p->workspace : r->least;
        r->large++;
        return false;
    }
    bool whole = !shape->backward || p->workspace >= most - TR_CUDA_ATTEND_LEAST;
    r->small += !whole;
    return whole;
}

static bool take(tr_cudnn_plan *p, const tr_cudnn_device *device, void *config,
                 const tr_cuda_attend_shape *shape, refusals *r) {
    r->all++;
    if (!is_deterministic(&p->graph, config, &p->engine)) {
        r->nondeterministic++;
        return false;
    }
    void *plan = compile(&p->graph, device, config);
    if (!plan) {
        p->graph.by->last_error(r->text, sizeof r->text);
        r->text[strcspn(r->text, "\n")] = '\0';
        r->unbuilt++;
        return false;
    }
    p->plan = fits(p, plan, shape, r) ? plan : NULL;
    return p->plan;
}

tr_status tr__cudnn_choose(tr_cudnn_plan *p, const tr_cudnn_library *by,
                           const tr_cudnn_device *device,
                           const tr_cuda_attend_shape *shape, tr_error *err) {
    refusals r = {0};
    void *configs[ASKED];
    *p = (tr_cudnn_plan){.plan = NULL};
    tr__cudnn_graph_begin(&p->graph, by);
    if (shape->backward) {
        tr__cudnn_backward(&p->graph, shape);
    } else {
        tr__cudnn_forward(&p->graph, shape);
    }
    void *graph =
        tr__cudnn_close(&p->graph, device->properties ? NULL : device->handle);
    void *heuristics = ask(&p->graph, device, graph);
    int64_t count = recommended(&p->graph, heuristics, configs);
    for (int64_t i = 0; i < count && !p->plan; i++) {
        take(p, device, configs[i], shape, &r);
    }
    if (p->plan) {
        return TR_OK;
    }
    tr_status status = p->graph.status == TR_CUDNN_SUCCESS
                           ? refuse(&r, shape, err)
                           : fail(&p->graph, shape, err);
    tr__cudnn_graph_end(&p->graph);
    return status;
}

void tr__cudnn_plan_close(tr_cudnn_plan *p) {
    tr__cudnn_graph_end(&p->graph);
    p->plan = NULL;
}

// ---- a launch

typedef struct operands {
    int64_t ids[TR_CUDNN_IDS];
    void *at[TR_CUDNN_IDS];
    int64_t count;
} operands;

static void give(operands *o, int64_t id, const void *address) {
    o->ids[o->count] = id;
    o->at[o->count++] = (void *)address;
}

// Values are on the host, and are read during the call.
static void give_all(operands *o, const tr_cuda_attend *a, const float *scale) {
    static const float one = 1, unseen = -INFINITY;
    give(o, TR_CUDNN_ID_Q, a->q);
    give(o, TR_CUDNN_ID_K, a->k);
    give(o, TR_CUDNN_ID_V, a->v);
    give(o, TR_CUDNN_ID_Y, a->y);
    give(o, TR_CUDNN_ID_SCALE, scale);
    if (a->of.has_lse || a->of.backward) {
        give(o, TR_CUDNN_ID_LSE, a->lse);
    }
    if (!a->of.both) {
        give(o, TR_CUDNN_ID_UNSEEN, &unseen);
    }
    if (a->of.backward) {
        give(o, TR_CUDNN_ID_ONE, &one);
        give(o, TR_CUDNN_ID_DY, a->dy);
        give(o, TR_CUDNN_ID_DELTA, a->delta);
        give(o, TR_CUDNN_ID_DQ, a->dq);
        give(o, TR_CUDNN_ID_DK, a->dk);
        give(o, TR_CUDNN_ID_DV, a->dv);
    }
}

int tr__cudnn_execute(tr_cudnn_plan *p, void *handle, const tr_cuda_attend *a) {
    const float scale = (float)(1 / sqrt((double)a->of.depth));
    operands o = {.count = 0};
    tr_cudnn_graph pack; // of one descriptor
    give_all(&o, a, &scale);
    tr__cudnn_graph_begin(&pack, p->graph.by);
    void *d = tr__cudnn_create(&pack, TR_CUDNN_VARIANT_PACK, "operands");
    tr__cudnn_set(&pack, d, TR_CUDNN_VARIANT_PACK_UNIQUE_IDS, TR_CUDNN_TYPE_INT64,
                  o.count, o.ids);
    tr__cudnn_set(&pack, d, TR_CUDNN_VARIANT_PACK_DATA_POINTERS, TR_CUDNN_TYPE_VOID_PTR,
                  o.count, o.at);
    tr__cudnn_set(&pack, d, TR_CUDNN_VARIANT_PACK_WORKSPACE, TR_CUDNN_TYPE_VOID_PTR, 1,
                  &a->workspace);
    tr__cudnn_finalize(&pack, d);
    int status = pack.status == TR_CUDNN_SUCCESS
                     ? p->graph.by->execute(handle, p->plan, d)
                     : pack.status;
    tr__cudnn_graph_end(&pack);
    return status;
}
