#include "cli/run_options.h"

void cli_plan_fits(const tr_plan *plan, const char *what) {
    tr_error why = {0};
    if (tr_plan_check_memory(plan, what, &why) == TR_BUDGET) {
        cli_say(NULL, TR_MESSAGE_WARNING, why.message);
    }
}
