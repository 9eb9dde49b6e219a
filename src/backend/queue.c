#include "backend/queue.h"

tr_status tr__backend_fail_launch(tr_status failed, const char *subject,
                                  tr_error *err) {
    if (failed == TR_DATA) {
        return tr_fail(err, failed, "a function of the caller's failed in %s", subject);
    }
    return failed == TR_MEMORY
               ? tr_fail(err, failed,
                         "the kernel library has no memory of its own for a product of "
                         "%s: leave more memory free beside the plan's",
                         subject)
               : tr_fail(err, failed, "the kernel library failed in a product of %s",
                         subject);
}
