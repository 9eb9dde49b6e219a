#include "train/memory_check.h"

#include "base/machine.h"
#include "base/text.h"

tr_status tr__memory_check(const tr_plan *plan, const char *what, tr_error *err) {
    const tr_ledger *ledger = tr_plan_ledger(plan);
    int64_t needs = ledger->total[TR_SPACE_DEVICE] + ledger->total[TR_SPACE_HOST] +
                    TR_PROCESS_BYTES;
    int64_t memory = tr__machine_memory();
    char want[32], have[32];
    if (memory == 0 || needs <= memory) {
        return TR_OK;
    }
    tr__print_size(want, sizeof want, needs);
    tr__print_size(have, sizeof have, memory);
    return tr_fail(err, TR_BUDGET, "%s needs %s of memory, this machine has %s", what,
                   want, have);
}
