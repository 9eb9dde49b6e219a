#include "cli/inspect_samples.h"

#include "cli/json.h"
#include "cli/run_options.h"
#include "report/terminal.h"

#include <tranche/data.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct show {
    tr_run *run;
    tr_dataset *data;
    tr_tokenizer *tokenizer; // NULL: bytes or ids
    int64_t length, vocabulary;
    void *rows[TR_BATCH_TENSORS_MAX]; // of the sample that is shown
    int64_t behind; // the label of a token is that of so many places before: 1, or 0
                    // where masked tokens have their own
    int32_t *ids, *labels; // [length] two of them,
    int32_t *places;       // and of each token in its document; NULL: none
    int32_t *types;        // of each token; NULL: none
    int32_t *follows; // 0: the second span follows the first; NULL: there are no spans
} show;

// ---- text

// The tokens of a sample one after the other: those that are read, and the last label.
static int32_t token_at(const show *s, int64_t i) {
    return i < s->length ? s->ids[i] : s->labels[i - 1];
}

static bool learnt(const show *s, int64_t i) {
    return i >= s->behind && s->labels[i - s->behind] != TR_NO_TARGET;
}

// Another document behind the first one of a row that several share.
static bool begins_document(const show *s, int64_t i) {
    return s->places && i > 0 && i < s->length && s->places[i] == 0;
}

// How many tokens there are without the padding at the end.
static int64_t count_tokens(const show *s) {
    bool more = s->behind > 0 && s->labels[s->length - 1] != TR_NO_TARGET;
    int64_t count = s->length + more;
    while (count > 1 && count <= s->length && !learnt(s, count - 1) &&
           s->ids[count - 1] == 0) {
        count--;
    }
    return count;
}

static void print_bytes(report_clean *to, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        report_clean_put(to, (unsigned char)text[i]);
    }
}

// Tokens [begin, end), of which all are learnt, or none.
static tr_status print_tokens(const show *s, report_clean *to, int64_t begin,
                              int64_t end, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    int32_t *id = calloc((size_t)(end - begin), sizeof *id);
    if (!id) {
        return tr_fail(err, TR_MEMORY, "no memory to show a sample");
    }
    for (int64_t i = begin; i < end; i++) {
        id[i - begin] = token_at(s, i);
    }
    tr_status status = tr_tokenizer_decode(s->tokenizer, id, (size_t)(end - begin),
                                           false, &text, &bytes, err);
    if (status == TR_OK) {
        print_bytes(to, text, bytes);
    }
    tr_tokenizer_text_release(text);
    free(id);
    return status;
}

static void print_ids(const show *s, report_clean *to, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        char text[16];
        int32_t id = token_at(s, i);
        int length = s->vocabulary == 256 ? snprintf(text, sizeof text, "%c", id)
                                          : snprintf(text, sizeof text, "%d ", id);
        print_bytes(to, text, (size_t)length);
    }
}

static tr_status print_run(const show *s, report_clean *to, int64_t begin, int64_t end,
                           tr_error *err) {
    bool inside = learnt(s, begin);
    tr_status status = TR_OK;
    print_bytes(to, "\xe2\x9f\xa6", inside ? 3 : 0);
    if (s->tokenizer) {
        status = print_tokens(s, to, begin, end, err);
    } else {
        print_ids(s, to, begin, end);
    }
    print_bytes(to, "\xe2\x9f\xa7", inside ? 3 : 0);
    return status;
}

static tr_status print_sample(const show *s, int64_t sample, tr_error *err) {
    int64_t count = count_tokens(s), targets = 0;
    for (int64_t i = 0; i < count; i++) {
        targets += learnt(s, i);
    }
    printf("sample %" PRId64 ": %" PRId64 " tokens, %" PRId64
           " of them learnt, %" PRId64 " of padding%s\n",
           sample, count, targets, s->length > count ? s->length - count : 0,
           !s->follows   ? ""
           : *s->follows ? "; the second span is of another document"
                         : "; the second span follows the first");
    report_clean to = report_clean_begin(stdout, true);
    tr_status status = TR_OK;
    for (int64_t begin = 0, end; begin < count && status == TR_OK; begin = end) {
        print_bytes(&to, "\n---\n", begins_document(s, begin) ? 5 : 0);
        end = begin + 1;
        while (end < count && learnt(s, end) == learnt(s, begin) &&
               !begins_document(s, end)) {
            end++;
        }
        status = print_run(s, &to, begin, end, err);
    }
    report_clean_end(&to);
    fputs("\n\n", stdout);
    return status;
}

// ---- JSON

// NULL: no memory.
static json_t *row_json(const int32_t *row, int64_t count) {
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(list, json_integer(row[i]));
    }
    if (json_array_size(list) != (size_t)count) {
        json_decref(list);
        list = NULL;
    }
    return list;
}

// row NULL: the sample has none. false: no memory.
static bool add_row(json_t *to, const char *name, const int32_t *row, int64_t count) {
    return !row || json_object_set_new(to, name, row_json(row, count)) == 0;
}

static tr_status print_object(const show *s, int64_t sample, tr_error *err) {
    json_t *all =
        json_pack("{s:I, s:I, s:o, s:o}", "sample", (json_int_t)sample, "tokens",
                  (json_int_t)count_tokens(s), "input_ids", row_json(s->ids, s->length),
                  "labels", row_json(s->labels, s->length));
    bool good = all && add_row(all, "token_type_ids", s->types, s->length) &&
                add_row(all, "position_ids", s->places, s->length) &&
                add_row(all, "next_sentence_label", s->follows, 1);
    if (!good) {
        json_decref(all);
        all = NULL;
    }
    putchar('\n');
    return cli_json_line(all, 0, err);
}

// ----

static tr_status print_all(const show *s, int64_t count, bool json, tr_error *err) {
    tr_status status = TR_OK;
    fputs(json ? "{\"samples\": [" : "", stdout);
    for (int64_t i = 0; i < count && status == TR_OK; i++) {
        int64_t sample = tr_run_sample(s->run, 0, i);
        status = tr_dataset_read(s->data, &sample, 1, s->rows, err);
        fputs(json && i > 0 ? "," : "", stdout);
        if (status == TR_OK) {
            status = (json ? print_object : print_sample)(s, sample, err);
        }
    }
    fputs(json ? "]}\n" : "", stdout);
    return status;
}

static int32_t *row_of(const show *s, const tr_batch_tensors *tensors,
                       const char *name) {
    int at = tr_batch_find(tensors, name);
    return at >= 0 ? s->rows[at] : NULL;
}

static tr_status open_show(show *s, tr_error *err) {
    const char *tokenizer = tr_run_tokenizer(s->run);
    s->data = tr_run_data(s->run);
    const tr_batch_tensors *tensors = tr_dataset_tensors(s->data);
    if (tr_batch_input(tensors)->desc.dtype != TR_I32) {
        return tr_fail(err, TR_USAGE,
                       "--samples: shows samples of tokens; the data (%s) has features",
                       tr_dataset_about(s->data));
    }
    s->length = tr_shape_count(tr_batch_input(tensors)->desc.shape);
    s->vocabulary = tr_dataset_vocabulary(s->data);
    for (int i = 0; i < tensors->count; i++) {
        s->rows[i] = calloc((size_t)tr_tensor_bytes(tensors->tensor[i].desc), 1);
        if (!s->rows[i]) {
            return tr_fail(err, TR_MEMORY, "no memory to show a sample");
        }
    }
    s->places = row_of(s, tensors, "position_ids");
    s->types = row_of(s, tensors, "token_type_ids");
    s->follows = row_of(s, tensors, "next_sentence_label");
    s->behind = s->types ? 0 : 1; // encoders alone take types
    s->ids = s->rows[tr_batch_input(tensors) - tensors->tensor];
    s->labels = s->rows[tr_batch_target(tensors) - tensors->tensor];
    return tokenizer ? tr_tokenizer_load(tokenizer, &s->tokenizer, err) : TR_OK;
}

tr_status cli_inspect_samples(const char *file, const cli_list *set, int64_t count,
                              bool json, tr_error *err) {
    const cli_run asked = {.set = *set, .seed = -1};
    show s = {0};
    tr_status status = cli_make_run(&asked, file, &s.run, err);
    if (status == TR_OK) {
        status = tr_run_set(s.run, "data_only", "true", err);
    }
    if (status == TR_OK) {
        status = tr_run_resolve(s.run, err);
    }
    if (status == TR_OK) {
        status = open_show(&s, err);
    }
    if (status == TR_OK) {
        int64_t samples = tr_dataset_samples(s.data);
        status = print_all(&s, count < samples ? count : samples, json, err);
    }
    for (int i = 0; i < TR_BATCH_TENSORS_MAX; i++) {
        free(s.rows[i]);
    }
    tr_tokenizer_destroy(s.tokenizer);
    tr_run_destroy(s.run);
    return status;
}
