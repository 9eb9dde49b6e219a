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

static bool add_program(names *n, const tr_program *program) {
    bool good = true;
    for (size_t i = 0; program && i < program->count && good; i++) {
        good = add_name(n, program->instructions[i].kernel->name);
    }
    return good;
}

static bool add_unit(names *n, const tr_unit_program *unit) {
    bool good = add_program(n, tr__unit_piece(unit, TR_VARIANT_RECOMPUTE, 0)) &&
                add_program(n, tr__unit_piece(unit, TR_VARIANT_INFERENCE, 0));
    for (int s = 0; s < unit->segments && good; s++) {
        good = add_program(n, tr__unit_piece(unit, TR_VARIANT_FORWARD, s)) &&
               add_program(n, tr__unit_piece(unit, TR_VARIANT_BACKWARD, s));
    }
    return good;
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
