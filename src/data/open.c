// From options to datasets: which format, which files, which split.
#include "data/encoder/texts.h"
#include "data/order/order.h"
#include "data/order/split.h"
#include "data/sources/dataset.h"
#include "data/sources/formats.h"

#include "base/arguments.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

enum {
    USES_PATHS = 1,
    USES_LABELS = 2,
    USES_DTYPE = 4,
    USES_COLUMN = 8,
    USES_SAMPLES = 16,
    USES_IMAGES = 32,
    USES_TOKENIZER = 64,
    HAS_DOCUMENTS = 256,
    OF_TEXT = 128, // below folders, binary files are none of it
    USES_RECORDS = 512,
    USES_SEPARATOR = 1024,
};

typedef struct data_format {
    const char *name;
    tr_format_open *open;
    unsigned uses; // options with a meaning; others are mistakes
    tr_split_kind split;
} data_format;

static const data_format formats[] = {
    {"bytes", tr__bytes_open, USES_PATHS | USES_LABELS | OF_TEXT, TR_SPLIT_TAIL},
    {"tokens", tr__tokens_open, USES_PATHS | USES_LABELS | USES_DTYPE, TR_SPLIT_TAIL},
    {"text", tr__text_open,
     USES_PATHS | USES_TOKENIZER | USES_SEPARATOR | HAS_DOCUMENTS | OF_TEXT,
     TR_SPLIT_TAIL},
    {"jsonl", tr__jsonl_open,
     USES_PATHS | USES_TOKENIZER | USES_RECORDS | HAS_DOCUMENTS | OF_TEXT,
     TR_SPLIT_SPREAD},
    {"csv", tr__csv_open, USES_PATHS | USES_COLUMN, TR_SPLIT_SPREAD},
    {"npy", tr__npy_open, USES_PATHS | USES_LABELS | USES_IMAGES, TR_SPLIT_SPREAD},
    {"random", tr__random_open, USES_SAMPLES, TR_SPLIT_TAIL},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static tr_status find_format(const char *name, const data_format **out, tr_error *err) {
    const char *names[FORMATS];
    for (int i = 0; i < FORMATS; i++) {
        names[i] = formats[i].name;
        if (name && strcmp(name, names[i]) == 0) {
            *out = &formats[i];
            return TR_OK;
        }
    }
    const char *near = name ? tr__nearest(name, names, FORMATS) : NULL;
    return tr_fail(err, TR_USAGE, "data.format: '%s' is not known; %s%s%s",
                   name ? name : "", near ? "did you mean '" : "", near ? near : "",
                   near ? "'?"
                        : "it is one of bytes, tokens, text, jsonl, csv, npy, random");
}

static bool names_fields(const tr_data_fields *fields) {
    return fields->text || fields->prompt || fields->completion || fields->messages ||
           fields->text_pair || fields->label || fields->anchor || fields->positive ||
           fields->negative;
}

static tr_status check_uses(const tr_data_options *options, const data_format *format,
                            tr_error *err) {
    const struct {
        unsigned use;
        bool given;
        const char *key;
    } keys[] = {
        {USES_PATHS, options->path_count > 0, "data.train"},
        {USES_PATHS, options->validation_path_count > 0, "data.validation (paths)"},
        {USES_LABELS, options->labels != NULL, "data.labels"},
        {USES_LABELS, options->validation_labels != NULL, "data.validation_labels"},
        {USES_DTYPE, options->dtype != NULL, "data.dtype"},
        {USES_TOKENIZER, options->tokenizer != NULL, "data.tokenizer"},
        {USES_TOKENIZER, options->eos_token != NULL, "data.eos_token"},
        {USES_SEPARATOR, options->document_separator != NULL,
         "data.document_separator"},
        {USES_RECORDS, options->loss_on != NULL, "data.loss_on"},
        {USES_RECORDS, names_fields(&options->fields), "data.fields"},
        {USES_RECORDS, options->chat_template != NULL, "data.chat_template"},
        {USES_RECORDS, options->date != NULL, "data.date"},
        {USES_TOKENIZER, options->plain_special, "data.plain_special"},
        {HAS_DOCUMENTS, options->packing, "data.packing"},
        {USES_COLUMN, options->label_column != NULL, "data.label_column"},
        {USES_COLUMN, options->header != TR_HEADER_AUTO, "data.header"},
        {USES_SAMPLES, options->samples != 0, "data.samples"},
        {USES_IMAGES, options->image_layout != NULL, "data.image_layout"},
        {USES_IMAGES, options->image_mean_count > 0, "data.image_mean"},
        {USES_IMAGES, options->image_std_count > 0, "data.image_std"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].given && !(format->uses & keys[i].use)) {
            return tr_fail(err, TR_USAGE, "%s: has no meaning for format %s; remove it",
                           keys[i].key, format->name);
        }
    }
    if ((format->uses & USES_PATHS) && options->path_count == 0) {
        return tr_fail(err, TR_USAGE, "data.train: format %s needs a file or a folder",
                       format->name);
    }
    return TR_OK;
}

static tr_status check_ranges(const tr_data_options *options, tr_error *err) {
    double fraction = options->validation_fraction;
    if (!(fraction >= 0 && fraction < 1)) {
        return tr_fail(
            err, TR_USAGE,
            "data.validation is the fraction %g, which must be at least 0 and below 1",
            fraction);
    }
    if (fraction > 0 && options->validation_path_count > 0) {
        return tr_fail(
            err, TR_USAGE,
            "data.validation has both a fraction and paths: give one of them");
    }
    if (options->validation_labels && options->validation_path_count == 0) {
        return tr_fail(err, TR_USAGE,
                       "data.validation_labels needs files in data.validation");
    }
    if (options->document_separator && options->document_separator[0] == '\0') {
        return tr_fail(err, TR_USAGE,
                       "data.document_separator: is empty; leave it out where each "
                       "file is one document");
    }
    if (options->classes < 0 || options->classes > INT32_MAX || options->features < 0) {
        return tr_fail(err, TR_USAGE,
                       "data.classes is %lld and data.features %lld: both must be 0 or "
                       "more, and classes below 2^31",
                       (long long)options->classes, (long long)options->features);
    }
    bool shuffled;
    return tr__order_parse(options->order, &shuffled, err);
}

// The first rows of packed documents have the most of them.
static tr_split_kind split_of(const tr_data_options *options,
                              const data_format *format) {
    bool rows = options->packing || options->row_texts > 0;
    return rows && strcmp(format->name, "tokens") != 0 ? TR_SPLIT_SPREAD
                                                       : format->split;
}

// Splits *train, or leaves it whole when the fraction is 0.
static tr_status split(const tr_data_options *options, const data_format *format,
                       tr_dataset **train, tr_dataset **validation, tr_error *err) {
    tr_dataset *whole = *train;
    int64_t samples = tr_dataset_samples(whole);
    double fraction = options->validation_fraction;
    if (fraction == 0) {
        return TR_OK;
    }
    int64_t held = llround(fraction * (double)samples);
    if (held < 1 || held >= samples) {
        return tr_fail(err, TR_DATA,
                       "data.validation: a fraction of %g of %lld samples leaves none "
                       "for %s; %s it or add data",
                       fraction, (long long)samples,
                       held < 1 ? "validation" : "training",
                       held < 1 ? "raise" : "lower");
    }
    // The tail does not depend on the seed, so neither does its hash.
    tr_split_kind kind = split_of(options, format);
    uint64_t seed = kind == TR_SPLIT_TAIL ? 0 : options->seed;
    tr_status status =
        tr__dataset_split(whole, kind, held, seed, train, validation, err);
    if (status == TR_OK) {
        tr_dataset_destroy(whole); // the parts hold it
    } else {
        *train = whole;
    }
    return status;
}

static tr_status open_parts(const tr_data_options *options, const data_format *format,
                            tr_dataset **train, tr_dataset **validation,
                            tr_error *err) {
    tr_data_files files = {
        .paths = options->paths,
        .count = options->path_count,
        .labels = options->labels,
        .paths_key = "data.train",
        .labels_key = "data.labels",
        .leave_out = options->leave_out,
        .text = format->uses & OF_TEXT,
    };
    bool windows = options->masked && strcmp(format->name, "tokens") == 0;
    bool texts = (options->row_texts > 0 || options->masked) && !windows;
    tr_format_open *open = texts ? tr__texts_open : format->open;
    tr_status status = open(options, &files, train, err);
    if (status != TR_OK || options->validation_path_count == 0) {
        return status == TR_OK ? split(options, format, train, validation, err)
                               : status;
    }
    // What the training files did not have, the validation files may not have either.
    tr_data_options same = *options;
    if (format->split == TR_SPLIT_SPREAD) {
        same.features = tr__dataset_features(*train);
        same.classes = tr_dataset_classes(*train);
    }
    files.paths = options->validation_paths;
    files.count = options->validation_path_count;
    files.labels = options->validation_labels;
    files.paths_key = "data.validation";
    files.labels_key = "data.validation_labels";
    files.like = *train;
    return open(&same, &files, validation, err);
}

tr_status tr_dataset_open(const tr_data_options *options, tr_dataset **train,
                          tr_dataset **validation, tr_error *err) {
    static const char own_name[] = "tr_dataset_open";
    static const tr_sized known = {"tr_data_options", "TR_DATA_OPTIONS_INIT",
                                   sizeof *options, 0};
    tr_status given = tr__need_sized(options, &known, own_name, err);
    given = given == TR_OK ? tr__need(train, own_name, "train", err) : given;
    if (given != TR_OK) {
        return given;
    }
    const data_format *format = NULL;
    tr_dataset *held = NULL;
    *train = NULL;
    if (validation) {
        *validation = NULL;
    }
    tr_status status = find_format(options->format, &format, err);
    if (status == TR_OK) {
        status = check_uses(options, format, err);
    }
    if (status == TR_OK) {
        status = check_ranges(options, err);
    }
    if (status == TR_OK) {
        status = open_parts(options, format, train, &held, err);
    }
    if (status != TR_OK) {
        tr_dataset_destroy(*train);
        *train = NULL;
    }
    if (status != TR_OK || !validation) {
        tr_dataset_destroy(held);
        return status;
    }
    *validation = held;
    return TR_OK;
}
