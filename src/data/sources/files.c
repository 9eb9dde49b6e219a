// The files of a set, and what is told of them.
#include "base/text.h"
#include "data/sources/formats.h"

#include <stdarg.h>
#include <stdio.h>

void tr__data_say(const tr_data_options *options, const char *format, ...) {
    char line[1024];
    va_list arguments;
    if (!options->say) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    options->say(options->say_user, line);
}

static void say_passed_over(const tr_data_options *options, const tr_data_files *files,
                            const tr_file_list *list) {
    bool one = list->hidden == 1;
    if (list->hidden > 0) {
        tr__data_say(options,
                     "%s: passed over %lld hidden file%s or folder%s (the name begins "
                     "with a dot); name what is to be taken",
                     files->paths_key, (long long)list->hidden, one ? "" : "s",
                     one ? "" : "s");
    }
    if (list->binary > 0) {
        tr__data_say(options,
                     "%s: passed over %lld binary file%s (a zero byte among the first "
                     "%d); name what is to be taken",
                     files->paths_key, (long long)list->binary,
                     tr__plural((int64_t)list->binary), TR_TEXT_LOOKED);
    }
}

tr_status tr__data_files_list(const tr_data_options *options,
                              const tr_data_files *files, tr_file_list *list,
                              tr_error *err) {
    tr_status status = TR_OK;
    *list = (tr_file_list){.text = files->text};
    tr__file_list_leave_out(list, files->leave_out);
    for (size_t i = 0; status == TR_OK && i < files->count; i++) {
        status = tr__file_list_add(list, files->paths[i], err);
    }
    if (status == TR_OK) {
        say_passed_over(options, files, list);
    } else {
        tr__file_list_clear(list);
    }
    return status;
}
