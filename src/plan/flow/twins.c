// No two parameters of a plan have one name.
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"

#include <stdlib.h>
#include <string.h>

// Ascending by hash, then by place.
static int compare_hashes(const void *left, const void *right) {
    const tr_plan_param *a = *(const tr_plan_param *const *)left;
    const tr_plan_param *b = *(const tr_plan_param *const *)right;
    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

// The first parameter in the plan whose name another one before it has, NULL: none.
// Equal names are among equal hashes, of which there are few.
static const tr_plan_param *find_twin(const tr_plan_param *const *sorted,
                                      size_t count) {
    const tr_plan_param *twin = NULL;
    for (size_t i = 1; i < count; i++) {
        for (size_t k = i; k-- > 0 && sorted[k]->hash == sorted[i]->hash;) {
            bool same = strcmp(sorted[k]->name, sorted[i]->name) == 0;
            twin = same && (!twin || sorted[i] < twin) ? sorted[i] : twin;
        }
    }
    return twin;
}

tr_status tr__plan_check_names(const tr_plan *plan, tr_error *err) {
    const tr_plan_param **sorted = tr__calloc(plan->param_count, sizeof *sorted);
    if (!sorted) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's parameters");
    }
    for (size_t i = 0; i < plan->param_count; i++) {
        sorted[i] = &plan->params[i];
    }
    qsort(sorted, plan->param_count, sizeof *sorted, compare_hashes);
    const tr_plan_param *twin = find_twin(sorted, plan->param_count);
    tr__free(sorted);
    return twin ? tr_fail(err, TR_USAGE, "the model has two parameters %s", twin->name)
                : TR_OK;
}
