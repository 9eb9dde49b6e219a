#include "plan/units/own.h"

#include "base/memory.h"
#include "base/quantized.h"
#include "plan/units/apart.h"

const tr_own_row tr__own_rows[TR_OWN] = {
    [TR_OWN_TRAINED] = {NULL},
    [TR_OWN_APART] = {.apart = true},
    [TR_OWN_FROZEN] = {"frozen", .frozen = true},
    [TR_OWN_QUANTIZED] = {NULL, .frozen = true, .quantized = true},
    [TR_OWN_SPLIT] = {"split", .split = true},
    [TR_OWN_SPLIT_APART] = {"split", .split = true, .apart = true},
    [TR_OWN_SPLIT_FROZEN] = {"split, frozen", .split = true, .frozen = true},
    [TR_OWN_SPLIT_QUANTIZED] = {"split", .split = true, .frozen = true,
                                .quantized = true},
    [TR_OWN_REPEATED] = {"repeated", .split = true, .repeated = true},
    [TR_OWN_REPEATED_APART] = {"repeated", .split = true, .repeated = true,
                               .apart = true},
    [TR_OWN_REPEATED_FROZEN] = {"repeated, frozen", .split = true, .repeated = true,
                                .frozen = true},
    [TR_OWN_REPEATED_QUANTIZED] = {"repeated", .split = true, .repeated = true,
                                   .frozen = true, .quantized = true},
    [TR_OWN_SUMMED] = {"summed", .summed = true},
    [TR_OWN_SUMMED_APART] = {"summed", .summed = true, .apart = true},
};

// What is frozen has no gradients and states in which it could differ.
tr_own tr__own_of(const tr_param_info *param) {
    bool frozen = param->frozen || param->quantized;
    bool repeated = param->split && param->repeats > 1;
    for (int own = 0; own < TR_OWN; own++) {
        const tr_own_row *row = &tr__own_rows[own];
        if (row->frozen == frozen && row->quantized == (param->quantized != 0) &&
            row->split == param->split && row->repeated == repeated &&
            (frozen || (row->apart == param->apart && row->summed == param->summed))) {
            return (tr_own)own;
        }
    }
    return TR_OWN_TRAINED;
}

char *tr__own_name(const tr_plan_request *r, const char *unit, tr_own own) {
    const tr_own_row *row = &tr__own_rows[own];
    const char *what = row->quantized ? tr__quantization_name(r->quantization)
                       : row->apart   ? tr__apart_name(r->apart)
                                      : NULL;
    const char *first = row->name ? row->name : what;
    const char *second = row->name ? what : NULL;
    return tr__format("%s (%s%s%s)", unit, first ? first : "", second ? ", " : "",
                      second ? second : "");
}
