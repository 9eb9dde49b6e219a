#include "text/template/strings.h"

#include <string.h>

// ---- strip

static bool goes(const tr_jinja_value *chars, tr_jinja_string text, size_t at,
                 size_t *length) {
    uint32_t c = tr__jinja_character(text, at, length);
    if (chars->kind == TR_JINJA_NONE) {
        return tr__jinja_is_space(c);
    }
    tr_jinja_string set = chars->as.text;
    for (size_t i = 0, step = 0; i < set.count; i += step) {
        if (tr__jinja_character(set, i, &step) == c) {
            return true;
        }
    }
    return false;
}

static size_t step_back(tr_jinja_string text, size_t end) {
    do {
        end--;
    } while (((unsigned char)text.bytes[end] & 0xc0) == 0x80);
    return end;
}

tr_jinja_value tr__jinja_strip(tr_jinja_run *run, tr_jinja_string text,
                               const tr_jinja_value *chars, bool left, bool right) {
    size_t begin = 0, end = text.count, length = 0;
    if (chars->kind != TR_JINJA_NONE && chars->kind != TR_JINJA_TEXT) {
        tr__jinja_fail(run, "strip: the characters are no text");
        return tr__jinja_none();
    }
    while (left && begin < end && goes(chars, text, begin, &length)) {
        begin += length;
        tr__jinja_charge(run, 1);
    }
    while (right && end > begin && goes(chars, text, step_back(text, end), &length)) {
        end = step_back(text, end);
        tr__jinja_charge(run, 1);
    }
    return tr__jinja_of_string(tr__jinja_part(text, begin, end));
}

// ---- parts

// A list that grows.
typedef struct parts {
    tr_jinja_run *run;
    tr_jinja_value *item;
    size_t count, capacity;
} parts;

static void add_part(parts *p, tr_jinja_string part) {
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 8;
        tr_jinja_value *item = tr__jinja_take(p->run, capacity, sizeof *item);
        if (!item) {
            return;
        }
        if (p->count > 0) {
            memcpy(item, p->item, p->count * sizeof *item);
        }
        p->item = item;
        p->capacity = capacity;
    }
    p->item[p->count++] = tr__jinja_of_string(part);
}

static tr_jinja_value finish(const parts *p) {
    return tr__jinja_make_list(p->run, TR_JINJA_LIST, p->item, p->count);
}

static tr_jinja_value finish_reversed(const parts *p) {
    for (size_t i = 0; i < p->count / 2; i++) {
        tr_jinja_value other = p->item[i];
        p->item[i] = p->item[p->count - 1 - i];
        p->item[p->count - 1 - i] = other;
    }
    return finish(p);
}

bool tr__jinja_search(tr_jinja_run *run, tr_jinja_string text, tr_jinja_string part,
                      size_t from, size_t *at) {
    if (run->status != TR_OK || text.count - from < part.count) {
        return false;
    }
    const char *found = part.count == 0 ? text.bytes + from
                                        : memmem(text.bytes + from, text.count - from,
                                                 part.bytes, part.count);
    size_t end = found ? (size_t)(found - text.bytes) : text.count;
    tr__jinja_charge(run, 1 + (int64_t)(end - from) / 16);
    *at = end;
    return found != NULL;
}

bool tr__jinja_search_back(tr_jinja_run *run, tr_jinja_string text,
                           tr_jinja_string part, size_t end, size_t *at) {
    for (size_t i = end + 1; i-- > part.count && run->status == TR_OK;) {
        tr__jinja_charge(run, 1);
        if (part.count == 0 ||
            memcmp(text.bytes + i - part.count, part.bytes, part.count) == 0) {
            *at = i - part.count;
            return true;
        }
    }
    return false;
}

tr_jinja_value tr__jinja_split(tr_jinja_run *run, tr_jinja_string text,
                               tr_jinja_string separator, int64_t most,
                               bool from_right) {
    parts p = {.run = run};
    size_t begin = 0, end = text.count, at = 0;
    for (int64_t i = 0; most < 0 || i < most; i++) {
        if (from_right) {
            if (!tr__jinja_search_back(run, text, separator, end, &at)) {
                break;
            }
            add_part(&p, tr__jinja_part(text, at + separator.count, end));
            end = at;
        } else {
            if (!tr__jinja_search(run, text, separator, begin, &at)) {
                break;
            }
            add_part(&p, tr__jinja_part(text, begin, at));
            begin = at + separator.count;
        }
    }
    add_part(&p, tr__jinja_part(text, begin, end));
    return from_right ? finish_reversed(&p) : finish(&p);
}

// The end of the word that begins at `at`.
static size_t word_end(tr_jinja_string text, size_t at) {
    size_t length = 0;
    while (at < text.count &&
           !tr__jinja_is_space(tr__jinja_character(text, at, &length))) {
        at += length;
    }
    return at;
}

tr_jinja_value tr__jinja_split_blanks(tr_jinja_run *run, tr_jinja_string text,
                                      int64_t most, bool from_right) {
    parts p = {.run = run};
    size_t at = tr__jinja_blanks_before(text);
    if (from_right && most >= 0) {
        tr__jinja_fail(run, "rsplit at blanks with a limit is not supported");
        return tr__jinja_none();
    }
    tr__jinja_charge(run, (int64_t)text.count / 4);
    for (int64_t i = 0; at < text.count && run->status == TR_OK; i++) {
        bool rest = most >= 0 && i >= most;
        size_t end = rest ? text.count : word_end(text, at);
        add_part(&p, tr__jinja_part(text, at, end));
        at = end + tr__jinja_blanks_before(tr__jinja_part(text, end, text.count));
    }
    return finish(&p);
}

static bool ends_line(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
           c == 0x2028 || c == 0x2029;
}

tr_jinja_value tr__jinja_split_lines(tr_jinja_run *run, tr_jinja_string text) {
    parts p = {.run = run};
    size_t begin = 0, length = 0;
    tr__jinja_charge(run, (int64_t)text.count / 4);
    for (size_t at = 0; at < text.count; at += length) {
        uint32_t c = tr__jinja_character(text, at, &length);
        if (ends_line(c)) {
            add_part(&p, tr__jinja_part(text, begin, at));
            length += c == '\r' && at + 1 < text.count && text.bytes[at + 1] == '\n';
            begin = at + length;
        }
    }
    if (begin < text.count) {
        add_part(&p, tr__jinja_part(text, begin, text.count));
    }
    return finish(&p);
}

// ---- replace

// Of nothing: the new text stands before each character, and at the end.
static void spread(tr_jinja_run *run, tr_jinja_buffer *out, tr_jinja_string text,
                   tr_jinja_string to, int64_t most) {
    size_t at = 0, length = 0;
    int64_t done = 0;
    for (; at < text.count && run->status == TR_OK; at += length) {
        tr__jinja_character(text, at, &length);
        if (most < 0 || done++ < most) {
            tr__jinja_add(run, out, to);
        }
        tr__jinja_add(run, out, tr__jinja_part(text, at, at + length));
    }
    if (most < 0 || done < most) {
        tr__jinja_add(run, out, to);
    }
}

tr_jinja_value tr__jinja_replace(tr_jinja_run *run, tr_jinja_string text,
                                 tr_jinja_string from, tr_jinja_string to,
                                 int64_t most) {
    tr_jinja_buffer out = {0};
    size_t begin = 0, at = 0;
    if (from.count == 0) {
        spread(run, &out, text, to, most);
        return tr__jinja_text(out.bytes ? out.bytes : "", out.count);
    }
    for (int64_t i = 0;
         (most < 0 || i < most) && tr__jinja_search(run, text, from, begin, &at); i++) {
        tr__jinja_add(run, &out, tr__jinja_part(text, begin, at));
        tr__jinja_add(run, &out, to);
        begin = at + from.count;
    }
    tr__jinja_add(run, &out, tr__jinja_part(text, begin, text.count));
    return tr__jinja_text(out.bytes ? out.bytes : "", out.count);
}

// ---- filling up

tr_jinja_value tr__jinja_pad(tr_jinja_run *run, tr_jinja_string text, int64_t width,
                             tr_jinja_side side, tr_jinja_string with) {
    int64_t count = tr__jinja_length(text);
    int64_t missing = width > count ? width - count : 0;
    // Where the two sides differ by one, Python decides by the width.
    int64_t left = side == TR_PAD_LEFT    ? missing
                   : side == TR_PAD_RIGHT ? 0
                                          : missing / 2 + (missing & width & 1);
    tr_jinja_buffer to = {0};
    if (tr__jinja_length(with) != 1) {
        tr__jinja_fail(run, "the text is filled up with one character, not %lld",
                       (long long)tr__jinja_length(with));
    }
    tr__jinja_charge(run, missing);
    for (int64_t i = 0; i <= missing && run->status == TR_OK; i++) {
        tr__jinja_add(run, &to, i == left ? text : (tr_jinja_string){0});
        tr__jinja_add(run, &to, i < missing ? with : (tr_jinja_string){0});
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// ---- format

// Fields by their order and by their numbers; Python does not mix the two.
typedef struct counters {
    size_t next;
    bool numbered;
} counters;

// The value of what stands between braces.
static const tr_jinja_value *find_field(tr_jinja_run *run, tr_jinja_string field,
                                        const tr_jinja_arguments *arguments,
                                        counters *so_far) {
    bool number = field.count > 0;
    size_t place = 0;
    for (size_t i = 0; i < field.count; i++) {
        number = number && field.bytes[i] >= '0' && field.bytes[i] <= '9' && i < 6;
        place = number ? place * 10 + (size_t)(field.bytes[i] - '0') : place;
    }
    if (number || field.count == 0) {
        place = number ? place : so_far->next++;
        so_far->numbered = so_far->numbered || number;
        if (place < arguments->count && !(so_far->numbered && so_far->next > 0)) {
            return &arguments->value[place];
        }
    }
    for (size_t i = 0; i < arguments->named_count; i++) {
        if (tr__jinja_same_text(arguments->named[i].key.as.text, field)) {
            return &arguments->named[i].value;
        }
    }
    tr__jinja_fail(run, "format: the field {%.*s} has no value, or is not supported",
                   (int)(field.count < 40 ? field.count : 40), field.bytes);
    return NULL;
}

tr_jinja_value tr__jinja_format(tr_jinja_run *run, tr_jinja_string text,
                                const tr_jinja_arguments *arguments) {
    tr_jinja_buffer out = {0};
    counters so_far = {0};
    for (size_t at = 0; at < text.count && run->status == TR_OK; at++) {
        char c = text.bytes[at];
        bool brace = c == '{' || c == '}';
        if (!brace || (at + 1 < text.count && text.bytes[at + 1] == c)) {
            tr__jinja_add(run, &out, tr__jinja_part(text, at, at + 1));
            at += brace;
            continue;
        }
        const char *end = memchr(text.bytes + at, '}', text.count - at);
        if (c == '}' || !end) {
            tr__jinja_fail(run, "format: a brace that has no other");
            break;
        }
        size_t close = (size_t)(end - text.bytes);
        const tr_jinja_value *value =
            find_field(run, tr__jinja_part(text, at + 1, close), arguments, &so_far);
        if (value) {
            tr__jinja_print(run, &out, value);
        }
        at = close;
    }
    return tr__jinja_text(out.bytes ? out.bytes : "", out.count);
}
