#include "infer/logits.h"

#include <math.h>
#include <stdbool.h>

tr_status tr__logits_check(const float *logits, int64_t classes, tr_error *err) {
    bool some = false;
    for (int64_t i = 0; i < classes; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY) {
            return tr_fail(err, TR_NUMBERS,
                           "the model's logit %lld is %s: its weights are damaged, or "
                           "of a run that has diverged",
                           (long long)i, isnan(logits[i]) ? "nan" : "inf");
        }
        some = some || isfinite(logits[i]);
    }
    return some ? TR_OK
                : tr_fail(err, TR_NUMBERS,
                          "all of the model's logits are -inf: none can be chosen");
}
