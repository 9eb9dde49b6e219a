// Format "bytes": files as they are, one id a byte.
#include "data/text/windows.h"

tr_status tr__bytes_open(const tr_data_options *options, const tr_data_files *files,
                         tr_dataset **out, tr_error *err) {
    tr_windows_options windows = {
        .width = 1,
        .length = options->sequence_length,
        .vocabulary = options->vocabulary ? options->vocabulary : 256,
        .entries = "bytes",
        .data = options,
    };
    return tr__windows_open(&windows, files, out, err);
}
