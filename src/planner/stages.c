// What of a pipeline a bound goes by: which units are on which stage, and of how many
// waves a stage keeps something.
#include "plan/flow/stages.h"

#include "base/checked.h"
#include "base/memory.h"
#include "planner/planner.h"

#include <math.h>

void tr__request_one_stage(tr_plan_request *request) {
    request->mesh.size[TR_AXIS_PIPELINE] = 1;
    request->mesh.at[TR_AXIS_PIPELINE] = 0;
    request->pipeline_order = TR_PIPELINE_1F1B;
    request->virtual_stages = 0;
}

static const int *find_cut(const tr_kernels *kernels, int chunks, int64_t again) {
    for (size_t i = 0; i < kernels->cut_count; i++) {
        if (kernels->cuts[i].chunks == chunks && kernels->cuts[i].again == again) {
            return kernels->cuts[i].of_unit;
        }
    }
    return NULL;
}

// As the plan cuts (plan/passes/cut_stages.c).
static bool cut(const tr_kernels *kernels, int units, int chunks, int64_t again,
                int *of_unit) {
    double *cost = tr__calloc((size_t)units, sizeof *cost);
    int *first = tr__calloc((size_t)chunks + 1, sizeof *first);
    bool good = cost && first;
    for (int u = 0; u < units && good; u++) {
        cost[u] = u < again ? kernels->again[u].cost : kernels->units[u].cost;
    }
    good = good && tr__cut_units(cost, units, chunks, first, NULL) == TR_OK;
    for (int c = 0; c < chunks && good; c++) {
        for (int u = first[c]; u < first[c + 1]; u++) {
            of_unit[u] = c;
        }
    }
    tr__free(cost);
    tr__free(first);
    return good;
}

const int *tr__kernels_cut(tr_kernels *kernels, int units, int chunks, int64_t again) {
    const int *known = chunks > 1 ? find_cut(kernels, chunks, again) : NULL;
    if (known || chunks <= 1 || chunks > units) {
        return known;
    }
    int *of_unit = tr__calloc((size_t)units, sizeof *of_unit);
    if (of_unit && cut(kernels, units, chunks, again, of_unit) &&
        tr__grow((void **)&kernels->cuts, &kernels->cut_capacity,
                 kernels->cut_count + 1, sizeof *kernels->cuts)) {
        kernels->cuts[kernels->cut_count++] = (tr_unit_chunks){chunks, again, of_unit};
        return of_unit;
    }
    tr__free(of_unit);
    return NULL;
}

// Of interleaved chunks the last is the first to go backward, and the waves that go
// together have been through those before it. One forward, one backward: the stage goes
// on while its first wave is away, as long as it may.
int64_t tr__waves_kept(const tr_plan_request *request, int64_t waves, int64_t i,
                       double away) {
    static const double rounding = 0.98; // of times in a schedule
    int64_t most = tr__min_i64(request->mesh.size[TR_AXIS_PIPELINE], waves);
    int64_t gone = tr__min_i64(most, 1 + (int64_t)fmin(rounding * away, (double)most));
    switch (request->pipeline_order) {
    case TR_PIPELINE_BREADTH_FIRST:
        return waves;
    case TR_PIPELINE_INTERLEAVED:
        return i < request->virtual_stages - 1 ? most : 1;
    case TR_PIPELINE_1F1B:
    case TR_PIPELINE_ZERO_BUBBLE:
        return gone;
    case TR_PIPELINE_V: // waves overlap as their times want it
        break;
    }
    return 1;
}
