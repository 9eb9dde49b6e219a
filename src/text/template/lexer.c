#include "text/template/lexer.h"

#include "text/template/characters.h"
#include "text/template/literal.h"

#include <string.h>

enum { OPEN_MAX = 128 }; // brackets within brackets

typedef struct lexer {
    tr_jinja_arena *arena;
    const char *name;
    tr_jinja_string text; // line ends are LF
    size_t at;
    int line;
    bool line_begins; // what was read last ends a line
    tr_jinja_tokens tokens;
    size_t capacity;
    char open[OPEN_MAX];
    size_t open_count;
    tr_error *err;
} lexer;

static tr_status fail(const lexer *l, const char *what) {
    return tr_fail(l->err, TR_DATA, "%s:%d: %s", l->name, l->line, what);
}

static tr_status no_memory(const lexer *l) {
    return tr_fail(l->err, TR_MEMORY, "no memory for the template %s", l->name);
}

static bool starts(const lexer *l, const char *word) {
    size_t bytes = strlen(word);
    return l->text.count - l->at >= bytes &&
           memcmp(l->text.bytes + l->at, word, bytes) == 0;
}

static tr_status add(lexer *l, tr_jinja_token_kind kind, tr_jinja_string text,
                     tr_jinja_value number) {
    if (l->tokens.count == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 256;
        tr_jinja_token *token = tr__jinja_arena_take(l->arena, capacity, sizeof *token);
        if (!token) {
            return no_memory(l);
        }
        if (l->tokens.count > 0) {
            memcpy(token, l->tokens.token, l->tokens.count * sizeof *token);
        }
        l->tokens.token = token;
        l->capacity = capacity;
    }
    l->tokens.token[l->tokens.count++] = (tr_jinja_token){kind, l->line, text, number};
    return TR_OK;
}

static tr_status add_plain(lexer *l, tr_jinja_token_kind kind, tr_jinja_string text) {
    return add(l, kind, text, tr__jinja_none());
}

// Goes on to `end`.
static void pass(lexer *l, size_t end) {
    for (; l->at < end; l->at++) {
        l->line += l->text.bytes[l->at] == '\n';
    }
}

static void pass_blanks(lexer *l) {
    pass(l, l->at +
                tr__jinja_blanks_before(tr__jinja_part(l->text, l->at, l->text.count)));
}

static void pass_line_end(lexer *l) {
    if (l->at < l->text.count && l->text.bytes[l->at] == '\n') {
        pass(l, l->at + 1);
    }
}

// ---- between tags

// The next "{{", "{%" or "{#"; the end of the text where there is none.
static size_t find_tag(const lexer *l) {
    for (size_t at = l->at; at + 1 < l->text.count; at++) {
        char next = l->text.bytes[at + 1];
        if (l->text.bytes[at] == '{' && (next == '{' || next == '%' || next == '#')) {
            return at;
        }
    }
    return l->text.count;
}

static bool all_blank(tr_jinja_string text) {
    return tr__jinja_blanks_before(text) == text.count;
}

// What is left of the text [at, tag) before a tag with this sign behind its bracket.
static tr_jinja_string strip_before(const lexer *l, size_t tag, bool print, char sign) {
    tr_jinja_string text = tr__jinja_part(l->text, l->at, tag);
    if (sign == '-') {
        text.count = tr__jinja_blanks_after(text);
    } else if (sign != '+' && !print) {
        size_t line = text.count;
        while (line > 0 && text.bytes[line - 1] != '\n') {
            line--;
        }
        if ((line > 0 || l->line_begins) &&
            all_blank(tr__jinja_part(text, line, text.count))) {
            text.count = line;
        }
    }
    return text;
}

static tr_status add_data(lexer *l, tr_jinja_string text) {
    return text.count > 0 ? add_plain(l, TR_TOKEN_DATA, text) : TR_OK;
}

// Behind "#}", "%}" and their signs: what the tag takes of the text that follows.
static void end_tag(lexer *l, char sign, bool print) {
    size_t begin = l->at;
    if (sign == '-') {
        pass_blanks(l);
    } else if (sign != '+' && !print) {
        pass_line_end(l);
    }
    l->line_begins = l->at > begin && l->text.bytes[l->at - 1] == '\n';
}

static tr_status read_comment(lexer *l) {
    const char *end = memmem(l->text.bytes + l->at, l->text.count - l->at, "#}", 2);
    if (!end) {
        return fail(l, "a comment has no end \"#}\"");
    }
    size_t close = (size_t)(end - l->text.bytes);
    char sign = close > l->at ? l->text.bytes[close - 1] : ' ';
    pass(l, close + 2);
    end_tag(l, sign, false);
    return TR_OK;
}

// Is the tag at `at`, behind "{%" and its sign, {% word %}? Then *end is behind it,
// and *sign the sign of its end.
static bool is_tag(const lexer *l, size_t at, const char *word, size_t *end,
                   char *sign) {
    size_t bytes = strlen(word);
    tr_jinja_string rest = tr__jinja_part(l->text, at, l->text.count);
    size_t i = tr__jinja_blanks_before(rest);
    if (rest.count - i < bytes || memcmp(rest.bytes + i, word, bytes) != 0) {
        return false;
    }
    i += bytes;
    i += tr__jinja_blanks_before(tr__jinja_part(rest, i, rest.count));
    *sign = i < rest.count && (rest.bytes[i] == '-' || rest.bytes[i] == '+')
                ? rest.bytes[i++]
                : ' ';
    *end = at + i + 2;
    return rest.count - i >= 2 && rest.bytes[i] == '%' && rest.bytes[i + 1] == '}';
}

// {% raw %} has begun: all up to {% endraw %} is text.
static tr_status read_raw(lexer *l) {
    for (size_t at = l->at; at + 1 < l->text.count; at++) {
        char before = at + 2 < l->text.count ? l->text.bytes[at + 2] : ' ', after = ' ';
        size_t end = 0, inside = at + 2 + (before == '-' || before == '+');
        if (l->text.bytes[at] == '{' && l->text.bytes[at + 1] == '%' &&
            inside <= l->text.count && is_tag(l, inside, "endraw", &end, &after)) {
            tr_status status = add_data(l, strip_before(l, at, false, before));
            pass(l, end);
            end_tag(l, after, false);
            return status;
        }
    }
    return fail(l, "{% raw %} has no {% endraw %}");
}

// ---- inside of tags

static bool is_name(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static tr_status read_name(lexer *l) {
    size_t begin = l->at;
    while (l->at < l->text.count && is_name(l->text.bytes[l->at], false)) {
        l->at++;
    }
    return add_plain(l, TR_TOKEN_NAME, tr__jinja_part(l->text, begin, l->at));
}

static tr_status read_text(lexer *l) {
    char quote = l->text.bytes[l->at];
    size_t end = l->at + 1;
    while (end < l->text.count && l->text.bytes[end] != quote) {
        end += l->text.bytes[end] == '\\' ? 2 : 1;
    }
    if (end >= l->text.count) {
        return fail(l, "a text has no closing quote");
    }
    tr_jinja_string raw = tr__jinja_part(l->text, l->at + 1, end), text;
    const char *problem = NULL;
    if (!tr__jinja_unescape(l->arena, raw, &text, &problem)) {
        return problem ? fail(l, problem) : no_memory(l);
    }
    tr_status status = add_plain(l, TR_TOKEN_TEXT, text);
    pass(l, end + 1);
    return status;
}

static tr_status read_number(lexer *l) {
    tr_jinja_value number;
    size_t bytes =
        tr__jinja_number(tr__jinja_part(l->text, l->at, l->text.count), &number);
    if (bytes == 0) {
        return fail(l, "a number that is not supported");
    }
    tr_status status =
        add(l, TR_TOKEN_NUMBER, tr__jinja_part(l->text, l->at, l->at + bytes), number);
    l->at += bytes;
    return status;
}

static char closing(char open) {
    return open == '(' ? ')' : open == '[' ? ']' : '}';
}

static tr_status balance(lexer *l, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (l->open_count == OPEN_MAX) {
            return fail(l, "brackets are nested too deeply");
        }
        l->open[l->open_count++] = closing(c);
    } else if (c == ')' || c == ']' || c == '}') {
        if (l->open_count == 0 || l->open[--l->open_count] != c) {
            return fail(l, "a closing bracket has no opening one");
        }
    }
    return TR_OK;
}

static tr_status read_operator(lexer *l) {
    static const char *const operators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (starts(l, operators[i])) {
            size_t bytes = strlen(operators[i]);
            tr_status status = balance(l, operators[i][0]);
            if (status == TR_OK) {
                status = add_plain(l, TR_TOKEN_OPERATOR,
                                   tr__jinja_part(l->text, l->at, l->at + bytes));
            }
            l->at += bytes;
            return status;
        }
    }
    return fail(l, "a character that has no meaning in an expression");
}

static tr_status read_token(lexer *l) {
    char c = l->text.bytes[l->at];
    if (is_name(c, true)) {
        return read_name(l);
    }
    if (c >= '0' && c <= '9') {
        return read_number(l);
    }
    return c == '\'' || c == '"' ? read_text(l) : read_operator(l);
}

// The bytes of the tag's end at this place (with its sign), 0: it is none.
static size_t tag_end(const lexer *l, const char *end, bool print, char *sign) {
    if (l->open_count > 0) {
        return 0;
    }
    char c = l->text.bytes[l->at];
    bool signed_end = (c == '-' || (c == '+' && !print)) &&
                      l->text.count - l->at >= 3 &&
                      memcmp(l->text.bytes + l->at + 1, end, 2) == 0;
    *sign = signed_end ? c : ' ';
    return signed_end ? 3 : starts(l, end) ? 2 : 0;
}

// Behind the begin of a tag, up to its end.
static tr_status read_inside(lexer *l, bool print) {
    const char *end = print ? "}}" : "%}";
    l->open_count = 0;
    for (pass_blanks(l); l->at < l->text.count; pass_blanks(l)) {
        char sign;
        size_t bytes = tag_end(l, end, print, &sign);
        if (bytes > 0) {
            tr_status status =
                add_plain(l, print ? TR_TOKEN_PRINT_END : TR_TOKEN_BLOCK_END,
                          (tr_jinja_string){0});
            pass(l, l->at + bytes);
            end_tag(l, sign, print);
            return status;
        }
        tr_status status = read_token(l);
        if (status != TR_OK) {
            return status;
        }
    }
    return fail(l, print ? "an expression has no end \"}}\""
                         : "a block has no end \"%}\"");
}

static tr_status read_tag(lexer *l, size_t tag) {
    char kind = l->text.bytes[tag + 1];
    char sign = tag + 2 < l->text.count ? l->text.bytes[tag + 2] : ' ', after = ' ';
    bool has_sign = sign == '-' || sign == '+';
    size_t inside = tag + 2 + has_sign, end = 0;
    tr_status status = add_data(l, strip_before(l, tag, kind == '{', sign));
    pass(l, inside);
    if (status != TR_OK) {
        return status;
    }
    if (kind == '#') {
        return read_comment(l);
    }
    if (kind == '%' && is_tag(l, inside, "raw", &end, &after)) {
        pass(l, end);
        end_tag(l, after == '-' ? '-' : '+', false);
        return read_raw(l);
    }
    status = add_plain(l, kind == '{' ? TR_TOKEN_PRINT_BEGIN : TR_TOKEN_BLOCK_BEGIN,
                       (tr_jinja_string){0});
    return status == TR_OK ? read_inside(l, kind == '{') : status;
}

// ---- the whole

static tr_status lex_all(lexer *l) {
    tr_status status = TR_OK;
    while (status == TR_OK && l->at < l->text.count) {
        size_t tag = find_tag(l);
        if (tag == l->text.count) {
            status = add_data(l, tr__jinja_part(l->text, l->at, tag));
            pass(l, tag);
        } else {
            status = read_tag(l, tag);
        }
    }
    return status == TR_OK ? add_plain(l, TR_TOKEN_END, (tr_jinja_string){0}) : status;
}

// CR LF and CR become LF; one line end at the end of the template goes.
static tr_status normalize(lexer *l, tr_jinja_string text) {
    char *bytes = tr__jinja_arena_take(l->arena, text.count + 1, 1);
    if (!bytes) {
        return no_memory(l);
    }
    size_t count = 0;
    for (size_t i = 0; i < text.count; i++) {
        char c = text.bytes[i];
        if (c == '\r') {
            i += i + 1 < text.count && text.bytes[i + 1] == '\n';
            c = '\n';
        }
        bytes[count++] = c;
    }
    count -= count > 0 && bytes[count - 1] == '\n';
    l->text = (tr_jinja_string){bytes, count};
    return TR_OK;
}

tr_status tr__jinja_lex(tr_jinja_arena *arena, const char *name, tr_jinja_string text,
                        tr_jinja_tokens *out, tr_error *err) {
    lexer l = {
        .arena = arena, .name = name, .line = 1, .line_begins = true, .err = err};
    tr_status status = normalize(&l, text);
    if (status == TR_OK) {
        status = lex_all(&l);
    }
    *out = l.tokens;
    return status;
}
