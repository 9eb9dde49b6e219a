// Methods of texts.
#include "text/template/strings.h"
#include "text/template/text_case.h"
#include "text/template/text_kinds.h"

#include <string.h>

static tr_jinja_value of_bool(bool truth) {
    return tr__jinja_bool(truth);
}

// ---- texts: blanks and parts

static tr_jinja_value strip(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments, bool left, bool right) {
    tr_jinja_value chars = tr__jinja_or(arguments, 0, tr__jinja_none());
    return tr__jinja_strip(run, self->as.text, &chars, left, right);
}

static tr_jinja_value text_strip(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return strip(run, self, arguments, true, true);
}

static tr_jinja_value text_lstrip(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return strip(run, self, arguments, true, false);
}

static tr_jinja_value text_rstrip(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return strip(run, self, arguments, false, true);
}

static tr_jinja_value split(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments, bool from_right) {
    tr_jinja_value separator = tr__jinja_or(arguments, 0, tr__jinja_none());
    int64_t most = tr__jinja_integer_or(run, arguments, 1, -1);
    if (separator.kind == TR_JINJA_NONE) {
        return tr__jinja_split_blanks(run, self->as.text, most, from_right);
    }
    if (separator.kind != TR_JINJA_TEXT || separator.as.text.count == 0) {
        tr__jinja_fail(run, "split: a separator that is no text, or empty");
        return tr__jinja_none();
    }
    return tr__jinja_split(run, self->as.text, separator.as.text, most, from_right);
}

static tr_jinja_value text_split(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return split(run, self, arguments, false);
}

static tr_jinja_value text_rsplit(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return split(run, self, arguments, true);
}

static tr_jinja_value text_splitlines(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_split_lines(run, self->as.text);
}

// ---- texts: what is in them

static bool begins(tr_jinja_string text, tr_jinja_string with, bool at_end) {
    size_t from = at_end ? text.count - with.count : 0;
    return with.count <= text.count &&
           (with.count == 0 || memcmp(text.bytes + from, with.bytes, with.count) == 0);
}

// A text, or a tuple of texts.
static tr_jinja_value begins_with(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_value *with, bool at_end) {
    if (with->kind == TR_JINJA_TEXT) {
        return of_bool(begins(self->as.text, with->as.text, at_end));
    }
    bool any = false;
    if (with->kind != TR_JINJA_TUPLE) {
        tr__jinja_fail(run, "startswith and endswith need a text or a tuple of texts");
        return of_bool(false);
    }
    for (size_t i = 0; i < with->as.list->count && !any; i++) {
        const tr_jinja_value *one = &with->as.list->item[i];
        any = one->kind == TR_JINJA_TEXT && begins(self->as.text, one->as.text, at_end);
    }
    return of_bool(any);
}

static tr_jinja_value text_startswith(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    return begins_with(run, self, &arguments->value[0], false);
}

static tr_jinja_value text_endswith(tr_jinja_run *run, const tr_jinja_value *self,
                                    const tr_jinja_bound *arguments) {
    return begins_with(run, self, &arguments->value[0], true);
}

static tr_jinja_value cut(tr_jinja_run *run, const tr_jinja_value *self,
                          const tr_jinja_bound *arguments, bool at_end) {
    tr_jinja_string text = self->as.text,
                    part = tr__jinja_text_or(run, arguments, 0, "");
    if (!begins(text, part, at_end)) {
        return *self;
    }
    return tr__jinja_of_string(at_end ? tr__jinja_part(text, 0, text.count - part.count)
                                      : tr__jinja_part(text, part.count, text.count));
}

static tr_jinja_value text_removeprefix(tr_jinja_run *run, const tr_jinja_value *self,
                                        const tr_jinja_bound *arguments) {
    return cut(run, self, arguments, false);
}

static tr_jinja_value text_removesuffix(tr_jinja_run *run, const tr_jinja_value *self,
                                        const tr_jinja_bound *arguments) {
    return cut(run, self, arguments, true);
}

// The bytes of text[from:to], characters being counted by the arguments behind the
// first; false: `from` is behind the end, where Python finds not even nothing.
static bool find_window(tr_jinja_run *run, tr_jinja_string text,
                        const tr_jinja_bound *arguments, size_t *begin, size_t *end) {
    *begin = 0;
    *end = text.count;
    tr_jinja_value from = tr__jinja_or(arguments, 1, tr__jinja_none());
    tr_jinja_value to = tr__jinja_or(arguments, 2, tr__jinja_none());
    if (from.kind == TR_JINJA_NONE && to.kind == TR_JINJA_NONE) {
        return true;
    }
    int64_t count = tr__jinja_length(text), bound[] = {0, count};
    const tr_jinja_value *given[] = {&from, &to};
    for (int i = 0; i < 2; i++) {
        if (given[i]->kind != TR_JINJA_NONE) {
            int64_t value = tr__jinja_integer_or(run, arguments, (size_t)i + 1, 0);
            value = value < 0 && value > -count ? value + count : value;
            bound[i] = value < 0 ? 0 : value;
        }
    }
    if (bound[0] > count || bound[1] < bound[0]) {
        return false;
    }
    *begin = tr__jinja_byte_of(text, bound[0]);
    *end = tr__jinja_byte_of(text, bound[1]);
    return true;
}

// The first place of a part, or the last one, in characters; -1: there is none.
static int64_t find(tr_jinja_run *run, const tr_jinja_value *self,
                    const tr_jinja_bound *arguments, bool from_right) {
    tr_jinja_string text = self->as.text;
    tr_jinja_string part = tr__jinja_text_or(run, arguments, 0, "");
    size_t begin = 0, end = 0, at = 0;
    if (!find_window(run, text, arguments, &begin, &end)) {
        return -1;
    }
    tr_jinja_string window = tr__jinja_part(text, begin, end);
    bool found = from_right
                     ? tr__jinja_search_back(run, window, part, window.count, &at)
                     : tr__jinja_search(run, window, part, 0, &at);
    return found ? tr__jinja_length(tr__jinja_part(text, 0, begin + at)) : -1;
}

static tr_jinja_value text_find(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    return tr__jinja_integer(find(run, self, arguments, false));
}

static tr_jinja_value text_rfind(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return tr__jinja_integer(find(run, self, arguments, true));
}

static tr_jinja_value place_of(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments, bool from_right) {
    int64_t at = find(run, self, arguments, from_right);
    if (at < 0) {
        tr__jinja_fail(run, "index: the text has no such part");
    }
    return tr__jinja_integer(at);
}

static tr_jinja_value text_index(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return place_of(run, self, arguments, false);
}

static tr_jinja_value text_rindex(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return place_of(run, self, arguments, true);
}

static tr_jinja_value text_count(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    tr_jinja_string part = tr__jinja_text_or(run, arguments, 0, "");
    size_t begin = 0, end = 0;
    int64_t count = 0;
    if (!find_window(run, self->as.text, arguments, &begin, &end)) {
        return tr__jinja_integer(0);
    }
    tr_jinja_string text = tr__jinja_part(self->as.text, begin, end);
    if (part.count == 0) {
        return tr__jinja_integer(tr__jinja_length(text) + 1);
    }
    for (size_t at = 0; tr__jinja_search(run, text, part, at, &at); at += part.count) {
        count++;
    }
    return tr__jinja_integer(count);
}

// What stands before a separator, the separator, and what stands behind.
static tr_jinja_value partition(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments, bool from_right) {
    tr_jinja_string text = self->as.text, nothing = {"", 0};
    tr_jinja_string separator = tr__jinja_text_or(run, arguments, 0, "");
    tr_jinja_value *item = tr__jinja_take(run, 3, sizeof *item);
    size_t at = 0;
    if (separator.count == 0) {
        tr__jinja_fail(run, "partition: the separator is empty");
    }
    bool found = from_right
                     ? tr__jinja_search_back(run, text, separator, text.count, &at)
                     : tr__jinja_search(run, text, separator, 0, &at);
    if (!item || run->status != TR_OK) {
        return tr__jinja_none();
    }
    size_t behind = found ? at + separator.count : from_right ? 0 : text.count;
    item[0] = tr__jinja_of_string(tr__jinja_part(text, 0,
                                                 found        ? at
                                                 : from_right ? 0
                                                              : text.count));
    item[1] = tr__jinja_of_string(found ? separator : nothing);
    item[2] = tr__jinja_of_string(tr__jinja_part(text, behind, text.count));
    return tr__jinja_make_list(run, TR_JINJA_TUPLE, item, 3);
}

static tr_jinja_value text_partition(tr_jinja_run *run, const tr_jinja_value *self,
                                     const tr_jinja_bound *arguments) {
    return partition(run, self, arguments, false);
}

static tr_jinja_value text_rpartition(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    return partition(run, self, arguments, true);
}

// ---- texts: others

static tr_jinja_value text_replace(tr_jinja_run *run, const tr_jinja_value *self,
                                   const tr_jinja_bound *arguments) {
    tr_jinja_string from = tr__jinja_text_or(run, arguments, 0, "");
    tr_jinja_string to = tr__jinja_text_or(run, arguments, 1, "");
    int64_t most = tr__jinja_integer_or(run, arguments, 2, -1);
    return tr__jinja_replace(run, self->as.text, from, to, most);
}

static tr_jinja_value text_join(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    const tr_jinja_list *list = tr__jinja_iterate(run, &arguments->value[0]);
    tr_jinja_buffer to = {0};
    for (size_t i = 0; list && i < list->count && run->status == TR_OK; i++) {
        if (list->item[i].kind != TR_JINJA_TEXT) {
            tr__jinja_fail(run, "join: a value of type %s",
                           tr__jinja_kind_name(list->item[i].kind));
        }
        tr__jinja_add(run, &to, i > 0 ? self->as.text : (tr_jinja_string){0});
        tr__jinja_print(run, &to, &list->item[i]);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

static tr_jinja_value text_lower(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_LOWER);
}

static tr_jinja_value text_upper(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_UPPER);
}

static tr_jinja_value text_title(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_TITLE);
}

static tr_jinja_value text_capitalize(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_CAPITAL);
}

static tr_jinja_value text_swapcase(tr_jinja_run *run, const tr_jinja_value *self,
                                    const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_SWAP);
}

static tr_jinja_value pad(tr_jinja_run *run, const tr_jinja_value *self,
                          const tr_jinja_bound *arguments, tr_jinja_side side) {
    int64_t width = tr__jinja_integer_or(run, arguments, 0, 0);
    return tr__jinja_pad(run, self->as.text, width, side,
                         tr__jinja_text_or(run, arguments, 1, " "));
}

static tr_jinja_value text_center(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return pad(run, self, arguments, TR_PAD_CENTER);
}

static tr_jinja_value text_ljust(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return pad(run, self, arguments, TR_PAD_RIGHT);
}

static tr_jinja_value text_rjust(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return pad(run, self, arguments, TR_PAD_LEFT);
}

static tr_jinja_value text_zfill(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    tr_jinja_string text = self->as.text;
    int64_t width = tr__jinja_integer_or(run, arguments, 0, 0);
    bool sign = text.count > 0 && (text.bytes[0] == '-' || text.bytes[0] == '+');
    tr_jinja_value zeros =
        tr__jinja_pad(run, tr__jinja_part(text, sign, text.count), width - sign,
                      TR_PAD_LEFT, (tr_jinja_string){"0", 1});
    tr_jinja_buffer to = {0};
    tr__jinja_add(run, &to, tr__jinja_part(text, 0, sign));
    tr__jinja_add(run, &to, zeros.as.text);
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

static tr_jinja_value text_format(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_arguments *arguments) {
    return tr__jinja_format(run, self->as.text, arguments);
}

// Rows without a function are methods that Python has. A parameter in parentheses has
// no name for callers.
static const tr_jinja_function of_text[] = {
    {.name = "strip", .call = text_strip, .parameter = {"(chars)"}},
    {.name = "lstrip", .call = text_lstrip, .parameter = {"(chars)"}},
    {.name = "rstrip", .call = text_rstrip, .parameter = {"(chars)"}},
    {.name = "split", .call = text_split, .parameter = {"sep", "maxsplit"}},
    {.name = "rsplit", .call = text_rsplit, .parameter = {"sep", "maxsplit"}},
    {.name = "splitlines", .call = text_splitlines},
    {.name = "startswith", .call = text_startswith, .parameter = {"(a)"}, .needed = 1},
    {.name = "endswith", .call = text_endswith, .parameter = {"(a)"}, .needed = 1},
    {.name = "removeprefix",
     .call = text_removeprefix,
     .parameter = {"(a)"},
     .needed = 1},
    {.name = "removesuffix",
     .call = text_removesuffix,
     .parameter = {"(a)"},
     .needed = 1},
    {.name = "find",
     .call = text_find,
     .parameter = {"(a)", "(b)", "(c)"},
     .needed = 1},
    {.name = "rfind",
     .call = text_rfind,
     .parameter = {"(a)", "(b)", "(c)"},
     .needed = 1},
    {.name = "index",
     .call = text_index,
     .parameter = {"(a)", "(b)", "(c)"},
     .needed = 1},
    {.name = "rindex",
     .call = text_rindex,
     .parameter = {"(a)", "(b)", "(c)"},
     .needed = 1},
    {.name = "count",
     .call = text_count,
     .parameter = {"(a)", "(b)", "(c)"},
     .needed = 1},
    {.name = "partition", .call = text_partition, .parameter = {"(a)"}, .needed = 1},
    {.name = "rpartition", .call = text_rpartition, .parameter = {"(a)"}, .needed = 1},
    {.name = "zfill", .call = text_zfill, .parameter = {"(a)"}, .needed = 1},
    {.name = "center", .call = text_center, .parameter = {"(a)", "(b)"}, .needed = 1},
    {.name = "ljust", .call = text_ljust, .parameter = {"(a)", "(b)"}, .needed = 1},
    {.name = "rjust", .call = text_rjust, .parameter = {"(a)", "(b)"}, .needed = 1},
    {.name = "swapcase", .call = text_swapcase},
    {.name = "isalnum", .call = tr__jinja_text_isalnum},
    {.name = "isalpha", .call = tr__jinja_text_isalpha},
    {.name = "isascii", .call = tr__jinja_text_isascii},
    {.name = "isdecimal", .call = tr__jinja_text_isdigit},
    {.name = "isdigit", .call = tr__jinja_text_isdigit},
    {.name = "islower", .call = tr__jinja_text_islower},
    {.name = "isnumeric", .call = tr__jinja_text_isnumeric},
    {.name = "isspace", .call = tr__jinja_text_isspace},
    {.name = "istitle", .call = tr__jinja_text_istitle},
    {.name = "isupper", .call = tr__jinja_text_isupper},
    {.name = "replace",
     .call = text_replace,
     .parameter = {"(old)", "(new)", "count"},
     .needed = 2},
    {.name = "join", .call = text_join, .parameter = {"(a)"}, .needed = 1},
    {.name = "lower", .call = text_lower},
    {.name = "upper", .call = text_upper},
    {.name = "title", .call = text_title},
    {.name = "capitalize", .call = text_capitalize},
    {.name = "format", .any = text_format},
    {.name = "casefold"},
    {.name = "encode"},
    {.name = "expandtabs"},
    {.name = "format_map"},
    {.name = "isidentifier"},
    {.name = "isprintable"},
    {.name = "maketrans"},
    {.name = "translate"},
};

const tr_jinja_function *tr__jinja_text_method(tr_jinja_string name) {
    return tr__jinja_row(of_text, sizeof of_text / sizeof *of_text, name);
}
