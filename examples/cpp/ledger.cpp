// Plans a run file and prints the plan and what a step takes of each memory; nothing is
// trained, and no tensor gets memory.  ledger RUN.json [KEY.PATH=VALUE]...
#include "handle.hpp"

#include <cstdio>

static bool print_piece(void *, const char *piece, size_t bytes) {
    return std::fwrite(piece, 1, bytes, stdout) == bytes;
}

static void print(const tr_ledger &ledger) {
    for (int s = 0; s < TR_SPACES; s++) {
        char words[32];
        if (ledger.total[s] > 0) {
            std::printf("%s: %s\n", tr_space_name(tr_space(s)),
                        tr_size_words(ledger.total[s], words, sizeof words));
        }
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            if (ledger.bytes[s][c] > 0) {
                std::printf("%16lld  %s\n", static_cast<long long>(ledger.bytes[s][c]),
                            tr_ledger_name(tr_ledger_category(c)));
            }
        }
    }
}

int main(int argc, char **argv) try {
    const tr_sink out = {print_piece, nullptr};
    auto run = make(tr_run_destroy, tr_run_create);
    call(tr_run_load_file, run.get(), argc > 1 ? argv[1] : "run.json");
    for (int i = 2; i < argc; i++) {
        call(tr_run_assign, run.get(), argv[i]);
    }
    call(tr_run_set, run.get(), "plan_only", "true");
    call(tr_run_resolve, run.get());
    auto plan = make(tr_plan_destroy, tr_run_make_plan, run.get());
    call(tr_run_print_plan, run.get(), plan.get(), &out);
    print(*tr_plan_ledger(plan.get()));
    return 0;
} catch (const failure &error) {
    std::fprintf(stderr, "ledger: %s\n", error.what());
    return tr_status_exit(error.status);
}
