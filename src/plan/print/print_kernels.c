// The names of the kernels that a plan's units run, by kind of unit, and what those
// that are a library's say of how it computes.
#include "backend/backend.h"
#include "base/half.h"
#include "base/memory.h"
#include "plan/flow/plan.h"
#include "plan/print/print.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 100, SAID = 160 };

// Instructions, the first of each kernel's name.
typedef struct names {
    const tr_instruction **all;
    size_t count, capacity;
} names;

static bool add_name(names *n, const tr_instruction *at) {
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->all[i]->kernel->name, at->kernel->name) == 0) {
            return true;
        }
    }
    if (!tr__grow((void **)&n->all, &n->capacity, n->count + 1, sizeof *n->all)) {
        return false;
    }
    n->all[n->count++] = at;
    return true;
}

static bool add_role(names *n, const tr_unit_program *unit, tr_variant role) {
    bool good = true;
    for (int i = 0; i < tr__unit_pieces(unit, role); i++) {
        const tr_program *program = tr__unit_piece(unit, role, i);
        for (size_t k = 0; k < program->count && !program->exchange && good; k++) {
            good = add_name(n, &program->instructions[k]);
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
        const char *name = n->all[i]->kernel->name;
        int length = (int)strlen(name) + 2;
        bool full = i == 0 || used + length > COLUMNS;
        const char *comma = i + 1 < n->count ? "," : "";
        used = full ? length : used + length;
        fprintf(to, "%s%s%s", full ? i == 0 ? "    " : "\n    " : " ", name, comma);
    }
    fprintf(to, n->count > 0 ? "\n" : "");
}

// What a kernel says of itself; false: nothing. text: [SAID]
static bool ask(const tr_instruction *at, char *text) {
    bool says = at->kernel->say;
    if (says) {
        at->kernel->say(&at->desc, at->state, text, SAID);
    }
    return says;
}

static void print_said(const names *n, FILE *to) {
    char text[SAID];
    for (size_t i = 0; i < n->count; i++) {
        if (ask(n->all[i], text)) {
            fprintf(to, "    %s: %s\n", n->all[i]->kernel->name, text);
        }
    }
}

// Why attention is taken from no library, where one could compute it.
static void print_lacking(const tr_plan *plan, FILE *to) {
    const tr_plan_request *r = &plan->request;
    const tr_backend *backend = tr__backend(r->backend);
    const char *why = NULL;
    bool could = backend->attention && plan->target.attention == 0 &&
                 tr__dtype_is_half(r->compute) && !r->reproducible && !r->elsewhere;
    if (could && backend->attention(&why) == 0) {
        fprintf(to, "    attention by own kernels: %s\n", why);
    }
}

static tr_status collect(const tr_plan *plan, names *n, tr_error *err) {
    bool good = true;
    for (int u = 0; u < plan->unit_count && good; u++) {
        good = add_unit(n, plan->units[u].program);
    }
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to print the plan");
}

tr_status tr__kernels_print(const tr_plan *plan, FILE *to, tr_error *err) {
    names n = {0};
    tr_status status = collect(plan, &n, err);
    if (status == TR_OK) {
        fprintf(to, "\nkernels of %s\n", tr__target_name(&plan->target));
        print_names(&n, to);
        print_said(&n, to);
        print_lacking(plan, to);
    }
    tr__free(n.all);
    return status;
}

static void write_said(const names *n, tr_json_writer *to) {
    char text[SAID];
    tr__json_line(to, 2);
    tr__json_put_open(to, "libraries", '[');
    for (size_t i = 0; i < n->count; i++) {
        if (ask(n->all[i], text)) {
            tr__json_line(to, 4);
            tr__json_open(to, '{');
            tr__json_put_text(to, "kernel", n->all[i]->kernel->name);
            tr__json_put_text(to, "says", text);
            tr__json_close(to, '}');
        }
    }
    tr__json_line(to, 2);
    tr__json_close(to, ']');
}

static bool any_says(const names *n) {
    size_t i = 0;
    while (i < n->count && !n->all[i]->kernel->say) {
        i++;
    }
    return i < n->count;
}

tr_status tr__kernels_write(const tr_plan *plan, tr_json_writer *to, tr_error *err) {
    names n = {0};
    tr_status status = collect(plan, &n, err);
    if (status == TR_OK && any_says(&n)) {
        write_said(&n, to);
    }
    tr__free(n.all);
    return status;
}
