// dump_plans [--steps] FIRST COUNT: the plans of drawn requests, for comparing two
// versions (tools/compare_plans.sh). One line for each request: its number, its status,
// a hash of all that follows from it, and the bytes of its arenas. With --steps every
// step and access, too.
#include "base/hash.h"
#include "plan/drawn.h"
#include "plan/flow/access.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dump {
    const tr_plan *plan;
    uint64_t hash;
    bool says;
} dump;

static void add(dump *d, const char *name, int64_t number) {
    d->hash = tr__hash_more(d->hash, &number, sizeof number);
    if (d->says) {
        printf(" %s %" PRId64, name, number);
    }
}

static void end_line(const dump *d) {
    if (d->says) {
        printf("\n");
    }
}

static void add_access(dump *d, const tr_access *access) {
    const tr_buffer *buffer = &d->plan->buffers[access->value];
    add(d, "   space", buffer->space);
    add(d, "mode", access->mode);
    add(d, "from", buffer->offset + access->first);
    add(d, "to", buffer->offset + access->end);
    end_line(d);
}

static int by_place(const void *a_, const void *b_) {
    const tr_access *a = a_, *b = b_;
    int64_t order = a->value != b->value   ? a->value - b->value
                    : a->first != b->first ? a->first - b->first
                                           : (int64_t)a->mode - (int64_t)b->mode;
    return (order > 0) - (order < 0);
}

// Ranges of one mode that overlap or adjoin, as one: how finely accesses are noted says
// nothing of the plan. The count of those that are left, in their order.
static size_t join(tr_access *items, size_t count) {
    size_t kept = 0;
    if (count > 0) {
        qsort(items, count, sizeof *items, by_place);
    }
    for (size_t i = 0; i < count; i++) {
        tr_access *last = NULL;
        for (size_t k = kept; k-- > 0 && !last && items[k].value == items[i].value;) {
            bool adjoins =
                items[k].mode == items[i].mode && items[i].first <= items[k].end;
            last = adjoins ? &items[k] : NULL;
        }
        if (!last) {
            items[kept++] = items[i];
        } else if (items[i].end > last->end) {
            last->end = items[i].end;
        }
    }
    return kept;
}

static void add_step(dump *d, const tr_plan_step *step) {
    if (d->says) {
        const char *subject = tr__step_subject(d->plan, step);
        printf("  %s %s", tr__verb_name(step->label.verb), subject ? subject : "");
    }
    add(d, "kind", step->label.verb);
    add(d, "stream", step->stream);
    add(d, "guard", step->guard);
    add(d, "micro", step->micro);
    for (int s = 0; s < TR_STREAMS; s++) {
        add(d, "wait", step->wait[s]);
    }
    end_line(d);
}

static void add_sequence(dump *d, tr_sequence_kind kind) {
    const tr_sequence *sequence = &d->plan->sequences[kind];
    tr_accesses accesses = {0};
    tr_error error = {0};
    if (tr__accesses_find(d->plan, kind, &accesses, &error) != TR_OK) {
        fprintf(stderr, "dump_plans: %s\n", error.message);
        exit(1);
    }
    for (size_t i = 0; i < sequence->count; i++) {
        size_t begin = accesses.begin[i];
        size_t count = join(accesses.items + begin, accesses.begin[i + 1] - begin);
        add_step(d, &sequence->steps[i]);
        for (size_t k = begin; k < begin + count; k++) {
            add_access(d, &accesses.items[k]);
        }
    }
    tr__accesses_clear(&accesses);
}

static void add_plan(dump *d) {
    const tr_ledger *ledger = tr_plan_ledger(d->plan);
    const tr_traffic *traffic = &d->plan->traffic;
    for (int s = 0; s < TR_SEQUENCES; s++) {
        add_sequence(d, (tr_sequence_kind)s);
    }
    for (int space = 0; space < TR_SPACES; space++) {
        add(d, "arena", d->plan->arena_bytes[space]);
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            add(d, "bytes", ledger->bytes[space][c]);
        }
    }
    add(d, "gather", traffic->gather);
    add(d, "reduce", traffic->reduce);
    add(d, "device_host", traffic->device_host);
    add(d, "reached", traffic->reached);
    add(d, "nvme", traffic->nvme);
    add(d, "flops", (int64_t)d->plan->flops);
    end_line(d);
}

static int64_t arenas_of(const tr_plan *plan) {
    int64_t bytes = 0;
    for (int space = 0; plan && space < TR_SPACES; space++) {
        bytes += plan->arena_bytes[space];
    }
    return bytes;
}

static void dump_request(const test_models *models, uint64_t index, bool says) {
    tr_plan_request request = test_draw_request(models, index);
    tr_plan *plan = NULL;
    tr_error error = {0};
    tr_status status = tr_plan_make(&request, &plan, &error);
    dump d = {.plan = plan, .says = says && status == TR_OK};
    if (status == TR_OK) {
        add_plan(&d);
    }
    printf("%" PRIu64 " %d %016" PRIx64 " %" PRId64 " %s\n", index, (int)status, d.hash,
           arenas_of(plan), status == TR_OK ? "" : error.message);
    tr_plan_destroy(plan);
}

int main(int argc, char **argv) {
    bool says = argc > 1 && strcmp(argv[1], "--steps") == 0;
    test_models models;
    if (argc != 3 + says) {
        fprintf(stderr, "usage: dump_plans [--steps] FIRST COUNT\n");
        return 2;
    }
    uint64_t first = strtoull(argv[1 + says], NULL, 10);
    uint64_t count = strtoull(argv[2 + says], NULL, 10);
    test_models_make(&models);
    for (uint64_t i = first; i < first + count; i++) {
        dump_request(&models, i, says);
    }
    test_models_destroy(&models);
    return 0;
}
