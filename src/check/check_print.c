#include <tranche/engine.h>

#include "base/sink.h"
#include "files/safetensors/json.h"

#include <inttypes.h>

static void print_cut(const tr_check *check, const tr_check_cut *cut, FILE *to) {
    if (cut->skipped[0]) {
        fprintf(to, "    %-54s not made: %s\n", cut->name, cut->skipped);
        return;
    }
    fprintf(to, "%s %-54s loss %-11.8g", cut->passed ? "ok " : "BAD", cut->name,
            cut->loss);
    if (cut != check->cuts) {
        fprintf(to, " off by %-9.3g at most %-7.2g in %s", cut->distance[cut->worst],
                cut->allowed[cut->worst], check->tensors[cut->worst].name);
    }
    fputc('\n', to);
}

static void print_op(const tr_check_op *op, FILE *to) {
    char name[2 * TR_CHECK_TEXT + 8];
    snprintf(name, sizeof name, "op %s in %s", op->name, op->kind);
    fprintf(to, "%s %-54s %s%s\n",
            op->passed  ? "ok "
            : op->tried ? "BAD"
                        : "   ",
            name, op->tried ? "" : "not tried: ",
            op->passed ? "backward, adding and bounds are right" : op->message);
}

static const char *verdict(const tr_check *check) {
    return check->passed           ? "the cuts agree"
           : check->cut_count == 0 ? "an op is wrong: no cut was made"
                                   : "the cuts differ by more than rounding";
}

static void print_tensors(const tr_check *check, const tr_check_cut *cut, FILE *to) {
    for (size_t t = 0; t < check->tensor_count && cut->distance; t++) {
        fprintf(to,
                "        %-50s %12" PRId64 "  norm %-9.3g off by %-9.3g at most %.2g\n",
                check->tensors[t].name, check->tensors[t].count, check->tensors[t].norm,
                cut->distance[t], cut->allowed[t]);
    }
}

// The most that the cuts allow a tensor.
static double most_allowed(const tr_check *check, size_t t) {
    double most = 0;
    for (size_t i = 0; i < check->cut_count; i++) {
        const tr_check_cut *cut = &check->cuts[i];
        if (cut->allowed && !cut->skipped[0] && cut->allowed[t] > most) {
            most = cut->allowed[t];
        }
    }
    return most;
}

static void print_undecided(const tr_check *check, FILE *to) {
    bool any = false;
    for (size_t t = 0; t < check->tensor_count; t++) {
        double most = most_allowed(check, t);
        if (most > TR_CHECK_DECIDED) {
            fputs(any ? ""
                      : "not decided, because rounding alone explains more than 5% in "
                        "some cut:\n",
                  to);
            fprintf(to, "        %-50s up to %.2g\n", check->tensors[t].name, most);
            any = true;
        }
    }
}

typedef struct printed {
    const tr_check *check;
    bool every;
} printed;

static tr_status print_text(const void *what, FILE *to, tr_error *err) {
    const printed *p = what;
    const tr_check *check = p->check;
    (void)err;
    for (size_t i = 0; i < check->op_count; i++) {
        print_op(&check->ops[i], to);
    }
    for (size_t i = 0; i < check->cut_count; i++) {
        print_cut(check, &check->cuts[i], to);
        if (p->every && i > 0) {
            print_tensors(check, &check->cuts[i], to);
        }
    }
    print_undecided(check, to);
    fprintf(to, "%s\n", verdict(check));
    return TR_OK;
}

tr_status tr_check_print(const tr_check *check, bool every, const tr_sink *to,
                         tr_error *err) {
    const printed what = {check, every};
    return tr__sink_print(to, "tr_check_print", print_text, check ? &what : NULL, err);
}

// By the names of the tensors; NULL: no memory.
static json_t *by_tensor(const tr_check *check, const double *values) {
    json_t *tensors = json_object();
    for (size_t t = 0; t < check->tensor_count && tensors; t++) {
        if (json_object_set_new(tensors, check->tensors[t].name,
                                tr__json_double(values[t])) != 0) {
            json_decref(tensors);
            tensors = NULL;
        }
    }
    return tensors;
}

static json_t *undecided_json(const tr_check *check, const tr_check_cut *cut) {
    json_t *names = json_array();
    for (size_t t = 0; t < check->tensor_count; t++) {
        if (cut->allowed[t] > TR_CHECK_DECIDED) {
            json_array_append_new(names, json_string(check->tensors[t].name));
        }
    }
    return names;
}

static json_t *cut_json(const tr_check *check, const tr_check_cut *cut) {
    if (cut->skipped[0]) {
        return json_pack("{s:s, s:s}", "name", cut->name, "skipped", cut->skipped);
    }
    return json_pack("{s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "name", cut->name,
                     "passed", cut->passed, "same_bits", cut->same_bits, "tolerance",
                     cut->tolerance > 0 || cut->same_bits
                         ? tr__json_double(cut->same_bits ? 0 : cut->tolerance)
                         : json_null(),
                     "loss", tr__json_double(cut->loss), "grad_norm",
                     tr__json_double(cut->grad_norm), "distance",
                     by_tensor(check, cut->distance), "allowed",
                     by_tensor(check, cut->allowed), "undecided",
                     undecided_json(check, cut));
}

// NULL: no memory.
static json_t *ops_json(const tr_check *check) {
    json_t *ops = json_array();
    for (size_t i = 0; i < check->op_count && ops; i++) {
        const tr_check_op *op = &check->ops[i];
        json_t *row =
            json_pack("{s:s, s:s, s:b, s:b, s:s}", "name", op->name, "unit", op->kind,
                      "tried", op->tried, "passed", op->passed, "message", op->message);
        if (json_array_append_new(ops, row) != 0) {
            json_decref(ops);
            ops = NULL;
        }
    }
    return ops;
}

static tr_status print_json(const void *what, FILE *to, tr_error *err) {
    const tr_check *check = what;
    json_t *cuts = json_array();
    bool failed = false;
    for (size_t i = 0; i < check->cut_count; i++) {
        failed |= json_array_append_new(cuts, cut_json(check, &check->cuts[i])) != 0;
    }
    if (failed) {
        json_decref(cuts);
        return tr__json_print(NULL, to, err);
    }
    json_t *all = json_pack("{s:b, s:o, s:o}", "passed", check->passed, "ops",
                            ops_json(check), "cuts", cuts);
    return tr__json_print(all, to, err);
}

tr_status tr_check_print_json(const tr_check *check, const tr_sink *to, tr_error *err) {
    return tr__sink_print(to, "tr_check_print_json", print_json, check, err);
}
