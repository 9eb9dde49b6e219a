// The names of the kernels that a plan's units run, by kind of unit.
#include "backend/backend.h"
#include "base/memory.h"
#include "plan/flow/plan.h"
#include "plan/print/print.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 100 };

typedef struct names {
    const char **all;
    size_t count, capacity;
} names;

static bool add_name(names *n, const char *name) {
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->all[i], name) == 0) {
            return true;
        }
    }
    if (!tr__grow((void **)&n->all, &n->capacity, n->count + 1, sizeof *n->all)) {
        return false;
    }
    n->all[n->count++] = name;
    return true;
}

static bool add_role(names *n, const tr_unit_program *unit, tr_variant role) {
    bool good = true;
    for (int i = 0; i < tr__unit_pieces(unit, role); i++) {
        const tr_program *program = tr__unit_piece(unit, role, i);
        for (size_t k = 0; k < program->count && !program->exchange && good; k++) {
            good = add_name(n, program->instructions[k].kernel->name);
        }
    }
    return good;
}

static bool add_unit(names *n, const tr_unit_program *unit) {
    return add_role(n, unit, TR_VARIANT_RECOMPUTE) &&
           add_role(n, unit, TR_VARIANT_INFERENCE) &&
           add_role(n, unit, TR_VARIANT_FORWARD) &&
           add_role(n, unit, TR_VARIANT_BACKWARD);
}

static void print_names(const names *n, FILE *to) {
    int used = 0;
    for (size_t i = 0; i < n->count; i++) {
        int length = (int)strlen(n->all[i]) + 2;
        bool full = i == 0 || used + length > COLUMNS;
        const char *comma = i + 1 < n->count ? "," : "";
        used = full ? length : used + length;
        fprintf(to, "%s%s%s", full ? i == 0 ? "    " : "\n    " : " ", n->all[i],
                comma);
    }
    fprintf(to, n->count > 0 ? "\n" : "");
}

tr_status tr__kernels_print(const tr_plan *plan, FILE *to, tr_error *err) {
    names n = {0};
    bool good = true;
    for (int u = 0; u < plan->unit_count && good; u++) {
        good = add_unit(&n, plan->units[u].program);
    }
    if (good) {
        fprintf(to, "\nkernels of %s\n", tr__target_name(&plan->target));
        print_names(&n, to);
    }
    tr__free(n.all);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to print the plan");
}
