// Plans a run file and prints what a step takes of each memory, byte by byte; nothing
// is trained, and no tensor gets memory.  ledger RUN.json [KEY.PATH=VALUE]...
#include "ok.h"

#include <inttypes.h>

static void print(const tr_ledger *ledger) {
    for (int s = 0; s < TR_SPACES; s++) {
        char words[32];
        if (ledger->total[s] == 0) {
            continue;
        }
        printf("%s: %s\n", tr_space_name((tr_space)s),
               tr_size_words(ledger->total[s], words, sizeof words));
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            if (ledger->bytes[s][c] > 0) {
                printf("%16" PRId64 "  %s\n", ledger->bytes[s][c],
                       tr_ledger_name((tr_ledger_category)c));
            }
        }
    }
}

int main(int argc, char **argv) {
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    ok(tr_run_create(&run, &err), &err);
    ok(tr_run_load_file(run, argc > 1 ? argv[1] : "run.json", &err), &err);
    for (int i = 2; i < argc; i++) {
        ok(tr_run_assign(run, argv[i], &err), &err);
    }
    ok(tr_run_set(run, "plan_only", "true", &err), &err);
    ok(tr_run_resolve(run, &err), &err);
    ok(tr_run_make_plan(run, &plan, &err), &err);
    print(tr_plan_ledger(plan));
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return 0;
}
