// Functions that templates find without defining them.
#include "jinja/function.h"

#include <time.h>

enum { RANGE_MAX = 100000, DATE_MAX = 64 };

static tr_jinja_value raise_exception(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)self;
    tr_jinja_string text = tr__jinja_to_text(run, &arguments->value[0]);
    tr__jinja_fail(run, "the template refuses the conversation: %.*s",
                   (int)(text.count < 500 ? text.count : 500), text.bytes);
    return tr__jinja_none();
}

// What one letter behind a percent sign stands for; 0: it is not supported.
static size_t show_part(char letter, const struct tm *now, char text[DATE_MAX]) {
    switch (letter) {
#define PART(letter, format)                                                           \
    case letter:                                                                       \
        return strftime(text, DATE_MAX, format, now)
        PART('a', "%a");
        PART('A', "%A");
        PART('b', "%b");
        PART('B', "%B");
        PART('d', "%d");
        PART('e', "%e");
        PART('F', "%F");
        PART('H', "%H");
        PART('I', "%I");
        PART('j', "%j");
        PART('m', "%m");
        PART('M', "%M");
        PART('p', "%p");
        PART('S', "%S");
        PART('T', "%T");
        PART('Y', "%Y");
#undef PART
    case '%':
        text[0] = '%';
        return 1;
    default:
        return 0;
    }
}

static tr_jinja_value strftime_now(tr_jinja_run *run, const tr_jinja_value *self,
                                   const tr_jinja_bound *arguments) {
    (void)self;
    char text[DATE_MAX];
    tr_jinja_buffer to = {0};
    tr_jinja_string format = tr__jinja_text_or(run, arguments, 0, "");
    if (!run->now) {
        tr__jinja_fail(run, "strftime_now shows today's date, and the data would not "
                            "be the same tomorrow: set data.date, as 2026-11-22");
    }
    for (size_t i = 0; i < format.count && run->status == TR_OK; i++) {
        bool part = format.bytes[i] == '%' && i + 1 < format.count;
        size_t count = part ? show_part(format.bytes[i + 1], run->now, text) : 0;
        if (part && count == 0) {
            tr__jinja_fail(run, "strftime_now: %%%c is not supported",
                           format.bytes[i + 1]);
        }
        tr__jinja_add(run, &to,
                      part ? (tr_jinja_string){text, count}
                           : tr__jinja_part(format, i, i + 1));
        i += part;
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// dict(...) and namespace(...): of a dictionary, and of named values.
static tr_jinja_dict *gather(tr_jinja_run *run, const tr_jinja_arguments *arguments) {
    tr_jinja_dict *dict = tr__jinja_make_dict(run);
    bool from = arguments->count == 1 && arguments->value[0].kind == TR_JINJA_DICT;
    if (arguments->count > 0 && !from) {
        tr__jinja_fail(run, "dict and namespace: named values are supported, and one "
                            "dictionary");
        return dict;
    }
    const tr_jinja_dict *other = from ? arguments->value[0].as.dict : NULL;
    for (size_t i = 0; other && i < other->count; i++) {
        tr__jinja_dict_put(run, dict, &other->entry[i].key, &other->entry[i].value);
    }
    for (size_t i = 0; i < arguments->named_count; i++) {
        const tr_jinja_entry *named = &arguments->named[i];
        tr__jinja_dict_put(run, dict, &named->key, &named->value);
    }
    return dict;
}

static tr_jinja_value make_dict(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_arguments *arguments) {
    (void)self;
    return tr__jinja_of_dict(gather(run, arguments));
}

static tr_jinja_value namespace(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_arguments *arguments) {
    tr_jinja_value value = make_dict(run, self, arguments);
    if (value.kind == TR_JINJA_DICT) {
        value.kind = TR_JINJA_NAMESPACE;
        for (size_t i = 0; i < value.as.dict->count; i++) {
            const tr_jinja_value *key = &value.as.dict->entry[i].key;
            if (key->kind == TR_JINJA_TEXT && key->as.text.count > 0 &&
                key->as.text.bytes[0] == '_') {
                tr__jinja_fail(run, "a namespace has no attributes that begin with "
                                    "'_'");
            }
        }
    }
    return value;
}

static tr_jinja_value range(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    (void)self;
    int64_t first = tr__jinja_integer_or(run, arguments, 0, 0);
    bool one = !arguments->given[1];
    int64_t from = one ? 0 : first;
    int64_t to = one ? first : tr__jinja_integer_or(run, arguments, 1, 0);
    int64_t step = tr__jinja_integer_or(run, arguments, 2, 1);
    __int128 distance = step > 0 ? (__int128)to - from : (__int128)from - to;
    __int128 stride = step > 0 ? step : -(__int128)step;
    __int128 count = step == 0 || distance <= 0 ? 0 : (distance + stride - 1) / stride;
    if (step == 0 || count > RANGE_MAX) {
        tr__jinja_fail(run, "range: a step of 0, or over %d items", RANGE_MAX);
        return tr__jinja_none();
    }
    tr_jinja_value *item = tr__jinja_take(run, (size_t)count + 1, sizeof *item);
    for (int64_t i = 0; item && i < count; i++) {
        item[i] = tr__jinja_integer(from + i * step);
    }
    return tr__jinja_make_list(run, TR_JINJA_LIST, item, (size_t)count);
}

static const tr_jinja_function globals[] = {
    {.name = "raise_exception",
     .call = raise_exception,
     .parameter = {"message"},
     .needed = 1},
    {.name = "strftime_now",
     .call = strftime_now,
     .parameter = {"format"},
     .needed = 1},
    {.name = "namespace", .any = namespace},
    {.name = "dict", .any = make_dict},
    {.name = "range",
     .call = range,
     .parameter = {"start", "stop", "step"},
     .needed = 1},
    // Those of jinja2 that no chat template uses:
    {.name = "lipsum"},
    {.name = "cycler"},
    {.name = "joiner"},
};

const tr_jinja_function *tr__jinja_global(tr_jinja_string name) {
    return tr__jinja_row(globals, sizeof globals / sizeof *globals, name);
}
