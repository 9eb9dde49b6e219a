// Format "tokens": flat little-endian ids, u16 or u32, as tokenizers write them.
#include "data/text/windows.h"

#include "base/text.h"

#include <string.h>

static tr_status parse_dtype(const char *name, int *width, tr_error *err) {
    static const char *const names[] = {"u16", "u32", "uint16", "uint32"};
    static const int widths[] = {2, 4, 2, 4};
    if (!name) {
        *width = 2;
        return TR_OK;
    }
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            *width = widths[i];
            return TR_OK;
        }
    }
    const char *near = tr__nearest(name, names, 4);
    return tr_fail(err, TR_USAGE, "data.dtype: '%s' is not known; %s%s%s", name,
                   near ? "did you mean '" : "tokens are 'u16' or 'u32",
                   near ? near : "", near ? "'?" : "'");
}

tr_status tr__tokens_open(const tr_data_options *options, const tr_data_files *files,
                          tr_dataset **out, tr_error *err) {
    tr_windows_options windows = {
        .length = options->sequence_length,
        .vocabulary = options->vocabulary,
        .entries = "tokens",
        .data = options,
    };
    if (options->masked && !files->labels) {
        return tr_fail(
            err, TR_USAGE,
            "data.format: windows of tokens are masked by their labels "
            "(%s), of which there are none; masks are drawn for \"text\" and "
            "\"jsonl\"",
            files->labels_key);
    }
    tr_status status = parse_dtype(options->dtype, &windows.width, err);
    return status == TR_OK ? tr__windows_open(&windows, files, out, err) : status;
}
