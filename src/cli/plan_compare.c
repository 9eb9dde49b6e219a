// tranche plan --compare: what each ZeRO stage, each way of offloading and each wave
// takes.
#include "cli/plan_compare.h"

#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// Where the rows go.
typedef struct table {
    bool json, timed;
    int64_t rows; // so far
    tr_status status;
    tr_error *err;
} table;

static const char *offload_words(const tr_compared *row) {
    static const char *const words[TR_SPACES][TR_SPACES] = {
        [TR_SPACE_DEVICE][TR_SPACE_DEVICE] = "none",
        [TR_SPACE_HOST][TR_SPACE_DEVICE] = "optimizer to host",
        [TR_SPACE_HOST][TR_SPACE_HOST] = "optimizer, parameters to host",
        [TR_SPACE_NVME][TR_SPACE_DEVICE] = "optimizer to NVMe",
        [TR_SPACE_NVME][TR_SPACE_NVME] = "optimizer, parameters to NVMe",
    };
    return words[row->optimizer][row->parameters];
}

static tr_status print_head(tr_run *run, const table *t, tr_error *err) {
    static const char *const keys[] = {"train_batch_size",
                                       "train_micro_batch_size_per_gpu",
                                       "gradient_accumulation_steps"};
    int64_t ranks = tr_run_ranks(run);
    char counts[3][24];
    for (int i = 0; i < 3; i++) {
        const char *value = NULL;
        tr_status status = tr_run_get(run, keys[i], &value, NULL, err);
        if (status != TR_OK) {
            return status;
        }
        snprintf(counts[i], sizeof counts[i], "%s", value ? value : "?");
    }
    bool one = counts[2][0] == '1' && counts[2][1] == '\0';
    printf("a rank of %" PRId64
           "; batch %s = micro-batch %s x %s accumulation step%s x "
           "%" PRId64 " rank%s\n\n",
           ranks, counts[0], counts[1], counts[2], one ? "" : "s", ranks,
           ranks == 1 ? "" : "s");
    printf("%-5s  %-30s %6s %11s %11s %11s", "stage", "offload", "wave", "device",
           "host", "NVMe");
    printf(t->timed ? "   s a step\n" : "\n");
    return TR_OK;
}

static void print_row(const tr_compared *row, bool timed) {
    printf("%-5d  %-30s", row->stage, offload_words(row));
    if (!row->possible) {
        printf("      - no such plan: %s\n", row->why);
        return;
    }
    printf(" %6" PRId64, row->wave);
    for (int s = 0; s < TR_SPACES; s++) {
        char size[32];
        int64_t bytes = row->bytes[s];
        printf(" %11s", bytes > 0 ? tr_size_words(bytes, size, sizeof size) : "-");
    }
    if (timed && row->seconds > 0) {
        printf(" %10.4g", row->seconds);
    } else if (timed) {
        printf(" %10s", "-");
    }
    printf("%s%s%s%s%s\n", row->own ? "  <- the run file's" : "", row->over ? "  " : "",
           row->over ? row->over : "", row->why[0] ? "  no time: " : "", row->why);
}

static json_t *row_json(const tr_compared *row) {
    static const char *const names[TR_SPACES] = {"none", "cpu", "nvme"};
    const int64_t *bytes = row->bytes;
    json_t *held = row->possible ? json_pack("{s:I, s:I, s:I}", "device",
                                             (json_int_t)bytes[TR_SPACE_DEVICE], "host",
                                             (json_int_t)bytes[TR_SPACE_HOST], "nvme",
                                             (json_int_t)bytes[TR_SPACE_NVME])
                                 : json_null();
    return json_pack("{s:i, s:s, s:s, s:I, s:b, s:o, s:o, s:o, s:o}", "stage",
                     row->stage, "offload_optimizer", names[row->optimizer],
                     "offload_param", names[row->parameters], "wave",
                     (json_int_t)row->wave, "run_file", row->own, "bytes", held,
                     "seconds", cli_json_number(row->seconds), "over",
                     cli_json_text(row->over), "why", cli_json_text(row->why));
}

static void take(void *user, const tr_compared *row) {
    enum { DIGITS = 9 };
    table *t = user;
    if (!t->json) {
        print_row(row, t->timed);
    } else if (t->status == TR_OK) {
        fputs(t->rows > 0 ? ",\n  " : "\n  ", stdout);
        t->status = cli_json_line(row_json(row), DIGITS, t->err);
    }
    t->rows++;
}

tr_status cli_plan_compare(tr_run *run, const tr_machine *machine, bool json,
                           tr_error *err) {
    table t = {.json = json, .timed = machine != NULL, .err = err};
    tr_status status = TR_OK;
    if (json) {
        printf("{\"ranks\": %" PRId64 ", \"plans\": [", tr_run_ranks(run));
    } else {
        status = print_head(run, &t, err);
    }
    if (status == TR_OK) {
        status = tr_run_compare(run, machine, take, &t, err);
    }
    if (json) {
        fputs("\n]}\n", stdout);
    } else if (!machine) {
        printf("\n--machine FILE adds the predicted time of a step\n");
    }
    return status == TR_OK ? t.status : status;
}
