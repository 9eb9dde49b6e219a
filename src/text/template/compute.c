// Arithmetic and comparisons of Python.
#include "text/template/percent.h"

#include <math.h>
#include <string.h>

bool tr__jinja_same(tr_jinja_run *run, const tr_jinja_value *a,
                    const tr_jinja_value *b) {
    int64_t x = tr__jinja_extent(a).weight, y = tr__jinja_extent(b).weight;
    tr__jinja_charge(run, x < y ? x : y);
    bool unknown = a->kind == TR_JINJA_VIEW || a->kind == TR_JINJA_GENERATOR ||
                   a->kind == TR_JINJA_LOOP || a->kind == TR_JINJA_METHOD;
    if (unknown && a->kind == b->kind) {
        tr__jinja_fail(run, "whether a %s is equal to another is not supported",
                       tr__jinja_kind_name(a->kind));
    }
    return run->status == TR_OK && tr__jinja_equal(a, b);
}

int tr__jinja_compare(tr_jinja_run *run, const tr_jinja_value *a,
                      const tr_jinja_value *b) {
    int order = 0;
    int64_t x = tr__jinja_extent(a).weight, y = tr__jinja_extent(b).weight;
    tr__jinja_charge(run, x < y ? x : y);
    if (run->status == TR_OK && !tr__jinja_order(a, b, &order)) {
        tr__jinja_fail(run, "a %s and a %s have no order", tr__jinja_kind_name(a->kind),
                       tr__jinja_kind_name(b->kind));
    }
    return order;
}

// ---- numbers

static tr_jinja_value fail_overflow(tr_jinja_run *run) {
    tr__jinja_fail(run, "integers of over 64 bits are not supported");
    return tr__jinja_none();
}

static tr_jinja_value divide(tr_jinja_run *run, bool remainder, int64_t a, int64_t b) {
    if (b == 0) {
        tr__jinja_fail(run, "a division by zero");
        return tr__jinja_none();
    }
    if (b == -1) {
        return remainder        ? tr__jinja_integer(0)
               : a == INT64_MIN ? fail_overflow(run)
                                : tr__jinja_integer(-a);
    }
    int64_t left = a % b;
    bool down = left != 0 && (left < 0) != (b < 0); // Python rounds down
    return tr__jinja_integer(remainder ? left + (down ? b : 0) : a / b - down);
}

static tr_jinja_value power(tr_jinja_run *run, int64_t a, int64_t b) {
    if (b < 0) {
        if (a == 0) {
            tr__jinja_fail(run, "a division by zero");
        }
        return tr__jinja_real(pow((double)a, (double)b));
    }
    int64_t value = 1;
    bool over = false;
    bool trivial = a == 0 || a == 1 || a == -1;
    for (int64_t i = 0, n = trivial ? (b > 0 ? 2 - b % 2 : 0) : b; i < n && !over;
         i++) {
        over = __builtin_mul_overflow(value, a, &value);
    }
    return over ? fail_overflow(run) : tr__jinja_integer(value);
}

static tr_jinja_value compute_integers(tr_jinja_run *run, tr_jinja_string operator,
                                       int64_t a, int64_t b) {
    int64_t value = 0;
    bool over = false;
    switch (operator.bytes[0]) {
    case '+':
        over = __builtin_add_overflow(a, b, &value);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &value);
        break;
    case '%':
        return divide(run, true, a, b);
    case '/':
        return divide(run, false, a, b);
    default:
        if (operator.count == 2) {
            return power(run, a, b);
        }
        over = __builtin_mul_overflow(a, b, &value);
    }
    return over ? fail_overflow(run) : tr__jinja_integer(value);
}

// Python's a // b and a % b: the remainder has the sign of b.
static double divide_down(bool remainder, double a, double b) {
    double left = fmod(a, b), times = (a - left) / b;
    if (left == 0) {
        left = copysign(0, b);
    } else if ((left < 0) != (b < 0)) {
        left += b;
        times -= 1;
    }
    double whole = times == 0 ? copysign(0, a / b) : floor(times);
    return remainder ? left : times - whole > 0.5 ? whole + 1 : whole;
}

// Of integers Python finds the nearest real; doubles do where both are exact.
static tr_jinja_value divide_integers(tr_jinja_run *run, int64_t a, int64_t b) {
    const int64_t exact = INT64_C(1) << 53;
    if (b == 0) {
        tr__jinja_fail(run, "a division by zero");
    } else if (a > exact || a < -exact || b > exact || b < -exact) {
        tr__jinja_fail(run, "a division of integers of over 53 bits is not supported");
    }
    return tr__jinja_real((double)a / (double)(b ? b : 1));
}

static tr_jinja_value compute_reals(tr_jinja_run *run, tr_jinja_string operator,
                                    double a, double b) {
    char op = operator.bytes[0];
    if ((op == '/' || op == '%') && b == 0) {
        tr__jinja_fail(run, "a division by zero");
        return tr__jinja_none();
    }
    if (op == '%' || (op == '/' && operator.count == 2)) {
        return tr__jinja_real(divide_down(op == '%', a, b));
    }
    if (op == '*' && operator.count == 2) {
        double value = pow(a, b);
        if (!isfinite(value)) {
            tr__jinja_fail(run, "a power that is not finite");
        }
        return tr__jinja_real(value);
    }
    return tr__jinja_real(op == '/'   ? a / b
                          : op == '+' ? a + b
                          : op == '-' ? a - b
                                      : a * b);
}

// ---- texts and lists

static tr_jinja_value add_texts(tr_jinja_run *run, const tr_jinja_value *a,
                                const tr_jinja_value *b) {
    bool safe = a->safe || b->safe;
    tr_jinja_string x =
        safe && !a->safe ? tr__jinja_escape(run, a->as.text) : a->as.text;
    tr_jinja_string y =
        safe && !b->safe ? tr__jinja_escape(run, b->as.text) : b->as.text;
    char *both = tr__jinja_take(run, x.count + y.count + 1, 1);
    if (!both) {
        return tr__jinja_none();
    }
    tr__jinja_charge(run, (int64_t)(x.count + y.count) / 16);
    memcpy(both, x.count > 0 ? x.bytes : "", x.count);
    memcpy(both + x.count, y.count > 0 ? y.bytes : "", y.count);
    tr_jinja_value value = tr__jinja_text(both, x.count + y.count);
    value.safe = safe;
    return value;
}

static tr_jinja_value add_lists(tr_jinja_run *run, const tr_jinja_value *a,
                                const tr_jinja_value *b) {
    size_t first = a->as.list->count, count = first + b->as.list->count;
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    for (size_t i = 0; item && i < count; i++) {
        item[i] = i < first ? a->as.list->item[i] : b->as.list->item[i - first];
    }
    return tr__jinja_make_list(run, a->kind, item, count);
}

static tr_jinja_value repeat_list(tr_jinja_run *run, const tr_jinja_value *of,
                                  int64_t times) {
    const tr_jinja_list *list = of->as.list;
    size_t part = list->count, count = 0;
    if (part == 0 || times <= 0) {
        return tr__jinja_make_list(run, of->kind, list->item, 0);
    }
    if (__builtin_mul_overflow(part, (uint64_t)times, &count) ||
        count > SIZE_MAX / 2 / sizeof *list->item) {
        count = SIZE_MAX / 2 / sizeof *list->item; // surely too much memory
    }
    tr_jinja_value *item = tr__jinja_take(run, count, sizeof *item);
    for (size_t i = 0; item && i < count; i++) {
        item[i] = list->item[i % part];
    }
    return tr__jinja_make_list(run, of->kind, item, item ? count : 0);
}

static bool repeats(const tr_jinja_value *value) {
    return (value->kind == TR_JINJA_TEXT && !value->safe) ||
           value->kind == TR_JINJA_LIST || value->kind == TR_JINJA_TUPLE;
}

static tr_jinja_value repeat(tr_jinja_run *run, const tr_jinja_value *of,
                             int64_t times) {
    if (of->kind != TR_JINJA_TEXT) {
        return repeat_list(run, of, times);
    }
    tr_jinja_string text = of->as.text;
    tr_jinja_buffer to = {0};
    for (int64_t i = 0; i < times && text.count > 0 && run->status == TR_OK; i++) {
        tr__jinja_charge(run, 1);
        tr__jinja_add(run, &to, text);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

static tr_jinja_value compute_numbers(tr_jinja_run *run, tr_jinja_string operator,
                                      const tr_jinja_value * a,
                                      const tr_jinja_value *b) {
    bool quotient = operator.bytes[0] == '/' && operator.count == 1;
    if (!tr__jinja_is_integer(a) || !tr__jinja_is_integer(b)) {
        return compute_reals(run, operator, tr__jinja_to_real(a), tr__jinja_to_real(b));
    }
    int64_t x = tr__jinja_to_integer(a), y = tr__jinja_to_integer(b);
    return quotient ? divide_integers(run, x, y)
                    : compute_integers(run, operator, x, y);
}

tr_jinja_value tr__jinja_compute(tr_jinja_run *run, tr_jinja_string operator,
                                 const tr_jinja_value * a, const tr_jinja_value *b) {
    char op = operator.bytes[0];
    if (run->status != TR_OK) {
        return tr__jinja_none();
    }
    if (tr__jinja_is_number(a) && tr__jinja_is_number(b)) {
        return compute_numbers(run, operator, a, b);
    }
    if (op == '%' && a->kind == TR_JINJA_TEXT && !a->safe) {
        return tr__jinja_percent(run, a->as.text, b);
    }
    bool same = a->kind == b->kind;
    if (op == '+' && same && a->kind == TR_JINJA_TEXT) {
        return add_texts(run, a, b);
    }
    if (op == '+' && same && (a->kind == TR_JINJA_LIST || a->kind == TR_JINJA_TUPLE)) {
        return add_lists(run, a, b);
    }
    bool product = op == '*' && operator.count == 1;
    if (product && tr__jinja_is_integer(b) && repeats(a)) {
        return repeat(run, a, tr__jinja_to_integer(b));
    }
    if (product && tr__jinja_is_integer(a) && repeats(b)) {
        return repeat(run, b, tr__jinja_to_integer(a));
    }
    const tr_jinja_value *undefined = a->kind == TR_JINJA_UNDEFINED   ? a
                                      : b->kind == TR_JINJA_UNDEFINED ? b
                                                                      : NULL;
    if (undefined && undefined->as.text.count > 0) {
        tr__jinja_fail(run, "'%.*s' is undefined", (int)undefined->as.text.count,
                       undefined->as.text.bytes);
    } else {
        tr__jinja_fail(run, "a %s %.*s a %s is not possible, or not supported",
                       tr__jinja_kind_name(a->kind),
                       (int)operator.count, operator.bytes,
                       tr__jinja_kind_name(b->kind));
    }
    return tr__jinja_none();
}
