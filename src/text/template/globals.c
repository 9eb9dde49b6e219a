// Functions that templates find without defining them.
#include "text/template/function.h"

#include <string.h>
#include <time.h>

enum { DATE_MAX = 64 };

static tr_jinja_value raise_exception(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)self;
    tr_jinja_string text = tr__jinja_to_text(run, &arguments->value[0]);
    tr__jinja_fail(run, "the template refuses the conversation: %.*s",
                   (int)(text.count < 500 ? text.count : 500), text.bytes);
    return tr__jinja_none();
}

// Shows the part of a format that begins at `text`, a percent sign: a letter, or a
// minus sign (no zeros in front) and the letter of a number. Returns its bytes; 0: it
// is not supported.
static size_t show_part(tr_jinja_string text, const struct tm *now,
                        char shown[DATE_MAX], size_t *count) {
    static const char letters[] = "aAbBcCdDeFGhHIjklmMpRSTuUVwWxXyY%",
                      numbers[] = "dHIjmMSUVWy";
    size_t plain = text.count > 2 && text.bytes[1] == '-';
    char letter = text.count > 1 + plain ? text.bytes[1 + plain] : '\0';
    char format[] = {'%', plain ? '-' : letter, plain ? letter : '\0', '\0'};
    if (!letter || !strchr(plain ? numbers : letters, letter)) {
        return 0;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    *count = strftime(shown, DATE_MAX, format, now);
#pragma GCC diagnostic pop
    return 2 + plain;
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
    for (size_t i = 0, count = 0, used = 1; i < format.count && run->status == TR_OK;
         i += used) {
        tr_jinja_string rest = tr__jinja_part(format, i, format.count);
        bool part = rest.bytes[0] == '%';
        used = part ? show_part(rest, run->now, text, &count) : 1;
        if (used == 0) {
            tr__jinja_fail(run, "strftime_now: %.*s is not supported",
                           (int)(rest.count < 3 ? rest.count : 3), rest.bytes);
        }
        tr__jinja_add(run, &to,
                      part ? (tr_jinja_string){text, used ? count : 0}
                           : tr__jinja_part(rest, 0, 1));
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
    return tr__jinja_make_range(run, from, to, step);
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
