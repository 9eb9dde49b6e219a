// What is wrong with a step, in words.
#include "plan/proof/proof.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT = 1024, LABEL = 256 };

// "reduce h.3", and of which segment and micro-batch.
static void label(const tr_proof *p, char *text, size_t size) {
    const tr_plan_step *step = p->step;
    int64_t subjects = step->subject == TR_OF_FLAT ? (int64_t)p->plan->flat_count
                                                   : p->plan->unit_count;
    bool known = step->unit >= 0 && step->unit < subjects;
    const char *subject = known ? tr__step_subject(p->plan, step) : NULL;
    int at = snprintf(text, size, "%s%s%s", tr__verb_name(step->label.verb),
                      subject ? " " : "", subject ? subject : "");
    if (at > 0 && (size_t)at < size && step->of_micro_batch) {
        snprintf(text + at, size - (size_t)at, ", segment %d, micro-batch %lld",
                 (int)step->segment, (long long)step->micro);
    }
}

void tr__proof_wrong(tr_proof *p, const char *format, ...) {
    char what[TEXT], who[LABEL];
    va_list args;
    if (p->status != TR_OK) {
        return;
    }
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    label(p, who, sizeof who);
    p->status = tr_fail(p->err, TR_INTERNAL, "plan: %s step %d (%s) %s",
                        tr__sequence_name(p->kind), (int)p->index, who, what);
}

void tr__proof_no_memory(tr_proof *p) {
    if (p->status == TR_OK) {
        p->status = tr_fail(p->err, TR_MEMORY, "no memory to prove the plan");
    }
}
