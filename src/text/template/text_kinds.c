#include "text/template/text_kinds.h"

#include "text/template/text_case.h"

typedef bool is_kind(tr_jinja_run *run, uint32_t c);

static void fail_unknown(tr_jinja_run *run, uint32_t c) {
    tr__jinja_fail(run, "the kind of a character beyond ASCII is not known (U+%04X)",
                   c);
}

// All of the text, and it is not empty.
static tr_jinja_value all(tr_jinja_run *run, tr_jinja_string text, is_kind *kind) {
    bool all = text.count > 0;
    tr__jinja_charge(run, (int64_t)text.count / 4);
    for (size_t at = 0, length = 0; all && at < text.count; at += length) {
        all = kind(run, tr__jinja_character(text, at, &length));
    }
    return tr__jinja_bool(all);
}

// ---- letters and numbers

static bool is_ascii_digit(uint32_t c) {
    return c >= '0' && c <= '9';
}

// Not all that are numbers are digits.
static bool digit(tr_jinja_run *run, uint32_t c) {
    if (c >= 0x80 && tr__jinja_is_numeric(run, c)) {
        fail_unknown(run, c);
    }
    return is_ascii_digit(c);
}

// Some characters of Chinese are numbers, too.
static bool numeric(tr_jinja_run *run, uint32_t c) {
    bool chinese = (c >= 0x3400 && c < 0xa000) || (c >= 0xf900 && c < 0xfb00) ||
                   (c >= 0x20000 && c < 0x40000);
    if (chinese) {
        fail_unknown(run, c);
    }
    return is_ascii_digit(c) || (c >= 0x80 && tr__jinja_is_numeric(run, c));
}

static bool letter(tr_jinja_run *run, uint32_t c) {
    return tr__jinja_is_letter(run, c);
}

static bool letter_or_number(tr_jinja_run *run, uint32_t c) {
    return tr__jinja_is_letter(run, c) || tr__jinja_is_numeric(run, c);
}

static bool space(tr_jinja_run *run, uint32_t c) {
    (void)run;
    return tr__jinja_is_space(c);
}

tr_jinja_value tr__jinja_text_isalnum(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return all(run, self->as.text, letter_or_number);
}

tr_jinja_value tr__jinja_text_isalpha(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return all(run, self->as.text, letter);
}

tr_jinja_value tr__jinja_text_isdigit(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return all(run, self->as.text, digit);
}

tr_jinja_value tr__jinja_text_isnumeric(tr_jinja_run *run, const tr_jinja_value *self,
                                        const tr_jinja_bound *arguments) {
    (void)arguments;
    return all(run, self->as.text, numeric);
}

tr_jinja_value tr__jinja_text_isspace(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return all(run, self->as.text, space);
}

tr_jinja_value tr__jinja_text_isascii(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)run;
    (void)arguments;
    bool ascii = true;
    for (size_t i = 0; i < self->as.text.count; i++) {
        ascii = ascii && (unsigned char)self->as.text.bytes[i] < 0x80;
    }
    return tr__jinja_bool(ascii);
}

// ---- case

typedef enum wanted { WANTED_LOWER, WANTED_UPPER, WANTED_TITLE } wanted;

// Of the letters that have a case: is each of the case that is wanted, and is there
// one?
static tr_jinja_value of_case(tr_jinja_run *run, tr_jinja_string text, wanted what) {
    bool right = true, any = false, begins = true;
    tr__jinja_charge(run, (int64_t)text.count / 4);
    for (size_t at = 0, length = 0; at < text.count && run->status == TR_OK;
         at += length) {
        uint32_t c = tr__jinja_character(text, at, &length);
        bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
        if (!tr__jinja_case_known(c)) {
            fail_unknown(run, c);
        }
        if (upper || lower) {
            bool wants_upper = what == WANTED_UPPER || (what == WANTED_TITLE && begins);
            right = right && upper == wants_upper;
            any = true;
        }
        begins = !upper && !lower;
    }
    return tr__jinja_bool(right && any);
}

tr_jinja_value tr__jinja_text_islower(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return of_case(run, self->as.text, WANTED_LOWER);
}

tr_jinja_value tr__jinja_text_isupper(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return of_case(run, self->as.text, WANTED_UPPER);
}

tr_jinja_value tr__jinja_text_istitle(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return of_case(run, self->as.text, WANTED_TITLE);
}
