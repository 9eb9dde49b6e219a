// A stand-in for cuDNN's backend API, on the host's memory: as strict as its
// documentation says the library is, and slow. Attributes have their types, descriptors
// are whole before others refer to them, graphs are in order, and what is executed has
// all its memory.
#include "cuda/libraries/cudnn.h"

#include "cuda/libraries/cudnn_tensor.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_ALIGNMENT = 256, ENGINES = 3 };

static dnn_seen seen;
static size_t version = 91900;
static bool has_deterministic = true;
static int64_t more_bytes;
static int handle;

const dnn_seen *dnn_look(void) {
    return &seen;
}

void dnn_set_version(int given) {
    version = (size_t)given;
}

void dnn_set_deterministic(bool has) {
    has_deterministic = has;
}

void dnn_set_more(int64_t bytes) {
    more_bytes = bytes;
}

static int refuse(int status, const char *why) {
    snprintf(seen.refused, sizeof seen.refused, "%s", why);
    return status;
}

// ---- the functions that are opened by their names

size_t cudnnGetVersion(void);
const char *cudnnGetErrorString(int status);
void cudnnGetLastErrorString(char *text, size_t size);
int cudnnCreate(void **out);
int cudnnSetStream(void *of, void *stream);
int cudnnBackendCreateDescriptor(int kind, dnn **out);
int cudnnBackendDestroyDescriptor(dnn *d);
int cudnnBackendFinalize(dnn *d);
int cudnnBackendSetAttribute(dnn *d, int attribute, int type, int64_t count,
                             const void *values);
int cudnnBackendGetAttribute(dnn *d, int attribute, int type, int64_t asked,
                             int64_t *count, void *values);
int cudnnBackendExecute(void *of, dnn *plan, dnn *pack);

size_t cudnnGetVersion(void) {
    return version;
}

const char *cudnnGetErrorString(int status) {
    return status == TR_CUDNN_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
           : status == TR_CUDNN_NOT_FINALIZED ? "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"
           : status == TR_CUDNN_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                              : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char *text, size_t size) {
    snprintf(text, size, "%s\n", seen.refused);
}

int cudnnCreate(void **out) {
    *out = &handle;
    return TR_CUDNN_SUCCESS;
}

int cudnnSetStream(void *of, void *stream) {
    seen.stream = stream;
    return of == &handle ? TR_CUDNN_SUCCESS : TR_CUDNN_BAD_PARAM;
}

int cudnnBackendCreateDescriptor(int kind, dnn **out) {
    *out = calloc(1, sizeof **out);
    (*out)->kind = kind;
    (*out)->axis = -1;
    seen.alive++;
    return TR_CUDNN_SUCCESS;
}

int cudnnBackendDestroyDescriptor(dnn *d) {
    seen.alive--;
    free(d);
    return TR_CUDNN_SUCCESS;
}

// ---- attributes

enum { ANY = -1 };

// What an attribute is given: so many values of a type, and, of descriptors, their
// kind.
typedef struct rule {
    int kind, attribute, type, of;
    int64_t most;
    size_t at, bytes, count_at; // count_at 0: exactly `most` values
    bool optional;
} rule;

#define FIELD(field) offsetof(dnn, field), sizeof(((dnn *)0)->field)
#define ONE(kind, attribute, type, field)                                              \
    {                                                                                  \
        TR_CUDNN_##kind, TR_CUDNN_##kind##_##attribute, TR_CUDNN_TYPE_##type, ANY, 1,  \
            FIELD(field), 0, false                                                     \
    }
#define REFERENCE(kind, attribute, of, field)                                          \
    {                                                                                  \
        TR_CUDNN_##kind, TR_CUDNN_##kind##_##attribute,                                \
            TR_CUDNN_TYPE_BACKEND_DESCRIPTOR, TR_CUDNN_##of, 1, FIELD(field), 0, false \
    }
#define OPTIONAL(kind, attribute, of, field)                                           \
    {                                                                                  \
        TR_CUDNN_##kind, TR_CUDNN_##kind##_##attribute,                                \
            TR_CUDNN_TYPE_BACKEND_DESCRIPTOR, TR_CUDNN_##of, 1, FIELD(field), 0, true  \
    }
#define MANY(kind, attribute, type, of, most, field, count)                            \
    {                                                                                  \
        TR_CUDNN_##kind, TR_CUDNN_##kind##_##attribute, TR_CUDNN_TYPE_##type, of,      \
            most, offsetof(dnn, field), sizeof(((dnn *)0)->field[0]),                  \
            offsetof(dnn, count), false                                                \
    }

static const rule rules[] = {
    ONE(TENSOR, BYTE_ALIGNMENT, INT64, alignment),
    ONE(TENSOR, DATA_TYPE, DATA_TYPE, type),
    MANY(TENSOR, DIMENSIONS, INT64, ANY, DNN_RANK, dim, rank),
    MANY(TENSOR, STRIDES, INT64, ANY, DNN_RANK, stride, rank),
    ONE(TENSOR, UNIQUE_ID, INT64, id),
    ONE(TENSOR, IS_VIRTUAL, BOOLEAN, is_virtual),
    ONE(TENSOR, IS_BY_VALUE, BOOLEAN, by_value),
    ONE(MATMUL, COMP_TYPE, DATA_TYPE, math),
    REFERENCE(OPERATION_MATMUL, ADESC, TENSOR, x),
    REFERENCE(OPERATION_MATMUL, BDESC, TENSOR, b),
    REFERENCE(OPERATION_MATMUL, CDESC, TENSOR, y),
    REFERENCE(OPERATION_MATMUL, DESC, MATMUL, how),
    ONE(POINTWISE, MODE, POINTWISE_MODE, mode),
    ONE(POINTWISE, MATH_PREC, DATA_TYPE, math),
    {TR_CUDNN_POINTWISE, TR_CUDNN_POINTWISE_AXIS, TR_CUDNN_TYPE_INT64, ANY, 1,
     FIELD(axis), 0, true},
    REFERENCE(OPERATION_POINTWISE, PW_DESCRIPTOR, POINTWISE, how),
    REFERENCE(OPERATION_POINTWISE, XDESC, TENSOR, x),
    OPTIONAL(OPERATION_POINTWISE, BDESC, TENSOR, b),
    OPTIONAL(OPERATION_POINTWISE, TDESC, TENSOR, t),
    REFERENCE(OPERATION_POINTWISE, YDESC, TENSOR, y),
    {TR_CUDNN_REDUCTION, TR_CUDNN_REDUCTION_OPERATOR, TR_CUDNN_TYPE_REDUCTION_OPERATOR,
     ANY, 1, FIELD(mode), 0, false},
    ONE(REDUCTION, COMP_TYPE, DATA_TYPE, math),
    REFERENCE(OPERATION_REDUCTION, XDESC, TENSOR, x),
    REFERENCE(OPERATION_REDUCTION, YDESC, TENSOR, y),
    REFERENCE(OPERATION_REDUCTION, DESC, REDUCTION, how),
    REFERENCE(OPERATION_RESHAPE, XDESC, TENSOR, x),
    REFERENCE(OPERATION_RESHAPE, YDESC, TENSOR, y),
    ONE(OPERATIONGRAPH, HANDLE, HANDLE, handle),
    MANY(OPERATIONGRAPH, OPS, BACKEND_DESCRIPTOR, ANY, DNN_OPERATIONS, operations,
         count),
    ONE(ENGINEHEUR, MODE, HEUR_MODE, mode),
    REFERENCE(ENGINEHEUR, OPERATION_GRAPH, OPERATIONGRAPH, graph),
    REFERENCE(ENGINECFG, ENGINE, ENGINE, engine),
    ONE(EXECUTION_PLAN, HANDLE, HANDLE, handle),
    REFERENCE(EXECUTION_PLAN, ENGINE_CONFIG, ENGINECFG, config),
    MANY(VARIANT_PACK, UNIQUE_IDS, INT64, ANY, DNN_OPERATIONS, ids, id_count),
    MANY(VARIANT_PACK, DATA_POINTERS, VOID_PTR, ANY, DNN_OPERATIONS, at, count),
    ONE(VARIANT_PACK, WORKSPACE, VOID_PTR, memory_of_work),
};
enum { RULES = sizeof rules / sizeof *rules };

static int find(const dnn *d, int attribute) {
    int i = 0;
    while (i < RULES &&
           !(rules[i].kind == d->kind && rules[i].attribute == attribute)) {
        i++;
    }
    return i;
}

static bool are_whole(const rule *r, int64_t count, const void *values) {
    bool whole = true;
    for (int64_t i = 0; i < count && r->type == TR_CUDNN_TYPE_BACKEND_DESCRIPTOR; i++) {
        const dnn *other = ((dnn *const *)values)[i];
        whole =
            whole && other && other->final && (r->of == ANY || other->kind == r->of);
    }
    return whole;
}

int cudnnBackendSetAttribute(dnn *d, int attribute, int type, int64_t count,
                             const void *values) {
    int i = d ? find(d, attribute) : RULES;
    if (i == RULES) {
        return refuse(TR_CUDNN_BAD_PARAM, "no such attribute of the descriptor");
    }
    const rule *r = &rules[i];
    if (d->final || !values || type != r->type || count < 1 || count > r->most ||
        (!r->count_at && count != r->most)) {
        return refuse(TR_CUDNN_BAD_PARAM,
                      "an attribute's type or count, or it is late");
    }
    if (!are_whole(r, count, values)) {
        return refuse(TR_CUDNN_NOT_FINALIZED, "a descriptor that is not finalized");
    }
    memcpy((char *)d + r->at, values, (size_t)count * r->bytes);
    if (r->count_at) {
        memcpy((char *)d + r->count_at, &count, sizeof count);
    }
    d->given |= UINT64_C(1) << i;
    return TR_CUDNN_SUCCESS;
}

// ---- what is whole

static bool has_all(const dnn *d) {
    bool all = true;
    for (int i = 0; i < RULES; i++) {
        all =
            all && (rules[i].kind != d->kind || rules[i].optional || d->given >> i & 1);
    }
    return all;
}

static const char *check_tensor(const dnn *t) {
    bool good = t->id != 0 && t->rank == DNN_RANK && !(t->is_virtual && t->by_value) &&
                t->alignment >= 4 && (t->alignment & (t->alignment - 1)) == 0;
    for (int i = 0; i < DNN_RANK; i++) {
        good = good && t->dim[i] >= 1 && t->stride[i] >= 1;
    }
    return good ? NULL : "a tensor without number, sizes or alignment";
}

// Operands that a mode has: x and y it always has.
static const char *check_pointwise(const dnn *o) {
    int mode = o->how->mode;
    bool one = mode == TR_CUDNN_EXP || mode == TR_CUDNN_LOG;
    bool index = mode == TR_CUDNN_GEN_INDEX, select = mode == TR_CUDNN_BINARY_SELECT;
    bool compares = mode == TR_CUDNN_CMP_GE;
    bool two = mode == TR_CUDNN_ADD || mode == TR_CUDNN_SUB || mode == TR_CUDNN_MUL ||
               mode == TR_CUDNN_DIV || compares;
    bool operands = (o->b != NULL) == (two || select) && (o->t != NULL) == select &&
                    (o->how->axis >= 0) == index && (one || index || select || two);
    bool types = (!index || o->y->type == TR_CUDNN_INT32) &&
                 (!compares || o->y->type == TR_CUDNN_BOOLEAN) &&
                 (!select || o->t->type == TR_CUDNN_BOOLEAN);
    return operands && types ? NULL : "a pointwise operation's operands";
}

static const char *check_operation(const dnn *o) {
    if (!dnn_fits(o)) {
        return "shapes that do not go together";
    }
    return o->kind == TR_CUDNN_OPERATION_POINTWISE ? check_pointwise(o) : NULL;
}

// Is it made by one of the first operations?
static bool is_made(const dnn *graph, const dnn *tensor, int64_t before) {
    int64_t i = 0;
    while (i < before && graph->operations[i]->y != tensor) {
        i++;
    }
    return i < before;
}

static bool is_ready(const dnn *graph, const dnn *tensor, int64_t at) {
    return !tensor || !tensor->is_virtual || is_made(graph, tensor, at);
}

static bool is_operation(int kind) {
    return kind == TR_CUDNN_OPERATION_MATMUL || kind == TR_CUDNN_OPERATION_POINTWISE ||
           kind == TR_CUDNN_OPERATION_REDUCTION || kind == TR_CUDNN_OPERATION_RESHAPE;
}

static const char *check_graph(const dnn *g) {
    bool good = g->handle == &handle;
    for (int64_t i = 0; i < g->count; i++) {
        const dnn *o = g->operations[i];
        good = good && is_operation(o->kind) && is_ready(g, o->x, i) &&
               is_ready(g, o->b, i) && is_ready(g, o->t, i) && !is_made(g, o->y, i) &&
               !o->y->by_value;
    }
    return good ? NULL : "operations that are not in order, or another handle";
}

static const char *check_pack(const dnn *p) {
    bool good = p->id_count == p->count;
    for (int64_t i = 0; i < p->count; i++) {
        for (int64_t k = 0; k < i; k++) {
            good = good && p->ids[i] != p->ids[k];
        }
    }
    return good ? NULL : "numbers and addresses that do not go together";
}

static const char *check(const dnn *d) {
    return !has_all(d)                          ? "attributes are left out"
           : d->kind == TR_CUDNN_TENSOR         ? check_tensor(d)
           : is_operation(d->kind)              ? check_operation(d)
           : d->kind == TR_CUDNN_OPERATIONGRAPH ? check_graph(d)
           : d->kind == TR_CUDNN_VARIANT_PACK   ? check_pack(d)
                                                : NULL;
}

int cudnnBackendFinalize(dnn *d) {
    const char *why = d && !d->final ? check(d) : "no descriptor, or it is final";
    if (why) {
        return refuse(TR_CUDNN_BAD_PARAM, why);
    }
    if (d->kind == TR_CUDNN_EXECUTION_PLAN) {
        if (d->config->engine->number >= ENGINES || d->handle != &handle) {
            return refuse(TR_CUDNN_NOT_SUPPORTED, "an engine of another device");
        }
        seen.compiled++;
    }
    d->final = true;
    return TR_CUDNN_SUCCESS;
}

// ---- engines of a backward: the first two add in any order, of which the second says
// nothing; the third does not. A forward has one, if its graph makes logarithms (so
// have 9.19 and 9.26).

static const dnn *in_memory(const dnn *graph, int64_t id) {
    const dnn *found = NULL;
    for (int64_t i = 0; i < graph->count; i++) {
        const dnn *o = graph->operations[i];
        const dnn *const all[] = {o->x, o->b, o->t, o->y};
        for (int k = 0; k < 4; k++) {
            found = all[k] && all[k]->id == id ? all[k] : found;
        }
    }
    return found;
}

// As 9.19 has it on sm_90 (tests/cuda/libraries/plans.c asks the real one).
static int64_t workspace_of(const dnn *graph, int64_t engine) {
    enum { LEAST = 256, TILE = 128, KEYS = 2, QUERY_GRADIENT = 11 };
    const dnn *dq = in_memory(graph, QUERY_GRADIENT);
    if (!dq) {
        return LEAST;
    }
    int64_t rows = dq->dim[0] * dq->dim[1] * dq->dim[2];
    int64_t keys = (dq->dim[2] + TILE - 1) / TILE * TILE;
    int64_t shared =
        in_memory(graph, KEYS)->dim[1] < dq->dim[1] ? 4 * rows * dq->dim[3] : 0;
    return LEAST + shared + (engine == ENGINES - 1 ? 2 * rows * keys : 0);
}

// Those of a forward, virtual or not.
static bool has_logarithms(const dnn *graph) {
    bool has = false;
    for (int64_t i = 0; i < graph->count; i++) {
        const dnn *o = graph->operations[i];
        has = has ||
              (o->kind == TR_CUDNN_OPERATION_POINTWISE && o->how->mode == TR_CUDNN_LOG);
    }
    return has;
}

static int64_t engines_of(const dnn *graph, bool backward) {
    return backward ? has_deterministic ? ENGINES : ENGINES - 1 : has_logarithms(graph);
}

static int recommend(dnn *h, int64_t asked, int64_t *count, dnn *const *configs) {
    bool backward = in_memory(h->graph, 11);
    int64_t has = engines_of(h->graph, backward);
    *count = has < asked ? has : asked;
    for (int64_t i = 0; i < *count; i++) {
        dnn *engine = NULL;
        cudnnBackendCreateDescriptor(TR_CUDNN_ENGINE, &engine);
        engine->graph = h->graph;
        engine->number = i;
        engine->deterministic = i > 0 || !backward;
        engine->workspace = workspace_of(h->graph, i) + more_bytes;
        engine->final = true;
        configs[i]->engine = engine;
        configs[i]->final = true;
    }
    seen.alive -= (int)*count; // they are the library's
    return TR_CUDNN_SUCCESS;
}

static int tell_engine(const dnn *e, int attribute, int type, int64_t *count,
                       void *values) {
    static const int32_t notes[] = {0, TR_CUDNN_NONDETERMINISTIC};
    if (attribute == TR_CUDNN_ENGINE_GLOBAL_INDEX && type == TR_CUDNN_TYPE_INT64) {
        *count = 1;
        memcpy(values, &e->number, sizeof e->number);
        return TR_CUDNN_SUCCESS;
    }
    if (attribute != TR_CUDNN_ENGINE_NUMERICAL_NOTE ||
        type != TR_CUDNN_TYPE_NUMERICAL_NOTE) {
        return refuse(TR_CUDNN_BAD_PARAM, "no such attribute of an engine");
    }
    *count = e->deterministic ? 1 : 2;
    memcpy(values, notes, (size_t)*count * sizeof *notes);
    return TR_CUDNN_SUCCESS;
}

int cudnnBackendGetAttribute(dnn *d, int attribute, int type, int64_t asked,
                             int64_t *count, void *values) {
    if (!d || !d->final || asked < 1) {
        return refuse(TR_CUDNN_NOT_FINALIZED, "a descriptor that is not finalized");
    }
    bool descriptors = type == TR_CUDNN_TYPE_BACKEND_DESCRIPTOR;
    if (attribute == TR_CUDNN_ENGINEHEUR_RESULTS && descriptors &&
        d->kind == TR_CUDNN_ENGINEHEUR) {
        return recommend(d, asked, count, values);
    }
    if (attribute == TR_CUDNN_ENGINECFG_ENGINE && descriptors &&
        d->kind == TR_CUDNN_ENGINECFG) {
        **(dnn **)values = *d->engine; // into the caller's own descriptor
        *count = 1;
        return TR_CUDNN_SUCCESS;
    }
    if (attribute == TR_CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE &&
        type == TR_CUDNN_TYPE_INT64 && d->kind == TR_CUDNN_EXECUTION_PLAN) {
        *(int64_t *)values = d->config->engine->workspace;
        *count = 1;
        return TR_CUDNN_SUCCESS;
    }
    return d->kind == TR_CUDNN_ENGINE
               ? tell_engine(d, attribute, type, count, values)
               : refuse(TR_CUDNN_BAD_PARAM, "no such attribute to be read");
}

// ---- execution

static void *given(const dnn *pack, int64_t id) {
    int64_t i = 0;
    while (i < pack->count && pack->ids[i] != id) {
        i++;
    }
    return i < pack->count ? pack->at[i] : NULL;
}

// The tensor's memory: the caller's, or, of a virtual one, its own.
static bool place(dnn *t, const dnn *pack) {
    if (!t || t->memory) {
        return true;
    }
    t->memory = t->is_virtual ? calloc(1, (size_t)dnn_bytes(t)) : given(pack, t->id);
    int64_t alignment = t->by_value ? 4 : t->alignment;
    return t->memory && (uintptr_t)t->memory % (uintptr_t)alignment == 0;
}

static void let_go(dnn *t) {
    if (t && t->memory) {
        if (t->is_virtual) {
            free(t->memory);
        }
        t->memory = NULL;
    }
}

static bool place_all(const dnn *graph, const dnn *pack) {
    bool good = true;
    for (int64_t i = 0; i < graph->count; i++) {
        dnn *o = graph->operations[i];
        good = place(o->x, pack) && place(o->b, pack) && place(o->t, pack) &&
               place(o->y, pack) && good;
    }
    return good;
}

static void let_all_go(const dnn *graph) {
    for (int64_t i = 0; i < graph->count; i++) {
        dnn *o = graph->operations[i];
        let_go(o->x);
        let_go(o->b);
        let_go(o->t);
        let_go(o->y);
    }
}

// The workspace is the library's: nothing that means something may lie there.
int cudnnBackendExecute(void *of, dnn *plan, dnn *pack) {
    if (of != &handle || !plan || !plan->final || !pack || !pack->final) {
        return refuse(TR_CUDNN_NOT_FINALIZED, "a plan or a pack that is not finalized");
    }
    const dnn *engine = plan->config->engine, *graph = engine->graph;
    if (!pack->memory_of_work || (uintptr_t)pack->memory_of_work % WORK_ALIGNMENT) {
        return refuse(TR_CUDNN_BAD_PARAM, "a workspace that is not aligned");
    }
    memset(pack->memory_of_work, 0xff, (size_t)engine->workspace);
    bool good = place_all(graph, pack);
    for (int64_t i = 0; i < graph->count && good; i++) {
        dnn_compute(graph->operations[i]);
    }
    let_all_go(graph);
    seen.executed += good;
    return good ? TR_CUDNN_SUCCESS
                : refuse(TR_CUDNN_BAD_PARAM, "a tensor without memory");
}
