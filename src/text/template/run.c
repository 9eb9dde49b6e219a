// Statements.
#include "text/template/run.h"

#include "text/template/function.h"

#include "base/memory.h"

#include <jansson.h>
#include <string.h>

// ---- text

static void run_print(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value value = tr__jinja_evaluate(run, node->first);
    tr__jinja_print(run, run->out, &value);
}

static void run_data(tr_jinja_run *run, const tr_jinja_node *node) {
    tr__jinja_add(run, run->out, node->value.as.text);
}

tr_jinja_string tr__jinja_capture(tr_jinja_run *run, const tr_jinja_nodes *body) {
    tr_jinja_buffer text = {0}, *out = run->out;
    tr_jinja_scope *around = run->scope;
    run->out = &text;
    run->scope = tr__jinja_scope_open(run, around);
    tr__jinja_run_body(run, body);
    run->scope = around;
    run->out = out;
    return (tr_jinja_string){text.bytes ? text.bytes : "", text.count};
}

// ---- if

static void run_if(tr_jinja_run *run, const tr_jinja_node *node) {
    const tr_jinja_node *branch = node;
    while (branch && branch->kind == TR_NODE_IF) {
        run->line = branch->line;
        tr_jinja_value condition = tr__jinja_evaluate(run, branch->first);
        if (run->status != TR_OK || tr__jinja_is_true(&condition)) {
            break;
        }
        branch = branch->second;
    }
    if (branch) {
        tr__jinja_run_body(run, &branch->list);
    }
}

// ---- for

// Those items of the list for which the loop's condition holds.
static const tr_jinja_list *choose(tr_jinja_run *run, const tr_jinja_node *node,
                                   const tr_jinja_list *list) {
    tr_jinja_list *chosen = tr__jinja_take(run, 1, sizeof *chosen);
    tr_jinja_value *item = tr__jinja_take(run, list->count + 1, sizeof *item);
    if (!chosen || !item) {
        return list;
    }
    chosen->item = item;
    tr_jinja_scope *around = run->scope;
    for (size_t i = 0; i < list->count && run->status == TR_OK; i++) {
        run->scope = tr__jinja_scope_open(run, around);
        tr__jinja_assign_to(run, node->first, &list->item[i]);
        tr_jinja_value condition = tr__jinja_evaluate(run, node->third);
        if (tr__jinja_is_true(&condition)) {
            item[chosen->count++] = list->item[i];
        }
    }
    run->scope = around;
    return chosen;
}

static void run_iterations(tr_jinja_run *run, const tr_jinja_node *node,
                           const tr_jinja_list *list) {
    tr_jinja_scope *around = run->scope;
    tr_jinja_loop *loop = tr__jinja_take(run, 1, sizeof *loop);
    if (!loop) {
        return;
    }
    *loop = (tr_jinja_loop){list, 0};
    tr_jinja_value variable = {.kind = TR_JINJA_LOOP, .as.loop = loop};
    for (size_t i = 0;
         i < list->count && run->status == TR_OK && run->jump != TR_JUMP_BREAK; i++) {
        run->scope = tr__jinja_scope_open(run, around);
        loop->index = i;
        run->jump = TR_JUMP_NONE;
        tr__jinja_assign(run, (tr_jinja_string){"loop", 4}, variable);
        tr__jinja_assign_to(run, node->first, &list->item[i]);
        tr__jinja_run_body(run, &node->list);
    }
    run->jump = TR_JUMP_NONE;
    run->scope = around;
}

static void run_for(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value of = tr__jinja_evaluate(run, node->second);
    const tr_jinja_list *list = tr__jinja_iterate(run, &of);
    if (list && node->third && run->status == TR_OK) {
        list = choose(run, node, list);
    }
    if (!list || run->status != TR_OK) {
        return;
    }
    run_iterations(run, node, list);
    if (list->count == 0 && node->fourth) {
        tr_jinja_scope *around = run->scope;
        run->scope = tr__jinja_scope_open(run, around);
        tr__jinja_run_body(run, &node->fourth->list);
        run->scope = around;
    }
}

static void run_break(tr_jinja_run *run, const tr_jinja_node *node) {
    run->jump = node->kind == TR_NODE_BREAK ? TR_JUMP_BREAK : TR_JUMP_CONTINUE;
}

// ---- set, macro, filter

static void run_set(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value value = tr__jinja_evaluate(run, node->second);
    tr__jinja_assign_to(run, node->first, &value);
}

// The value of a chain of filters at whose begin stands no expression but `text`.
static tr_jinja_value filtered(tr_jinja_run *run, const tr_jinja_node *filter,
                               tr_jinja_value text) {
    if (!filter) {
        return text;
    }
    tr_jinja_value inner = filtered(run, filter->first, text);
    const tr_jinja_function *function = tr__jinja_filter(filter->name);
    if (!function) {
        tr__jinja_fail(run, "the filter %.*s is not supported", (int)filter->name.count,
                       filter->name.bytes);
        return inner;
    }
    tr_jinja_arguments arguments = tr__jinja_arguments(run, &filter->list);
    return tr__jinja_call(run, function, &inner, &arguments);
}

// A name that the body assigns and reads itself is undefined to jinja2, or not, by what
// the template has read before.
static void run_set_block(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_string own = run->own;
    run->own = node->first->kind == TR_NODE_NAME &&
                       !tr__jinja_is_assigned(run, node->first->name)
                   ? node->first->name
                   : (tr_jinja_string){0};
    tr_jinja_value text = tr__jinja_of_string(tr__jinja_capture(run, &node->list));
    run->own = own;
    tr_jinja_value value = filtered(run, node->second, text);
    tr__jinja_assign_to(run, node->first, &value);
}

static void run_filtered(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value text = tr__jinja_of_string(tr__jinja_capture(run, &node->list));
    tr_jinja_value value = filtered(run, node->second, text);
    if (value.kind != TR_JINJA_TEXT) {
        tr__jinja_fail(run, "the filters of a block make a %s, not a text",
                       tr__jinja_kind_name(value.kind));
    }
    tr__jinja_print(run, run->out, &value);
}

static void run_macro(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_macro *macro = tr__jinja_take(run, 1, sizeof *macro);
    if (macro) {
        *macro = (tr_jinja_macro){node, run->scope};
        tr_jinja_value value = {.kind = TR_JINJA_MACRO, .as.macro = macro};
        tr__jinja_assign(run, node->name, value);
    }
}

// ---- generation

static void add_span(tr_jinja_run *run, size_t begin, size_t end) {
    if (run->span_count == run->span_capacity) {
        size_t capacity = run->span_capacity ? 2 * run->span_capacity : 16;
        tr_jinja_span *span = tr__jinja_take(run, capacity, sizeof *span);
        if (!span) {
            return;
        }
        if (run->span_count > 0) {
            memcpy(span, run->span, run->span_count * sizeof *span);
        }
        run->span = span;
        run->span_capacity = capacity;
    }
    run->span[run->span_count++] = (tr_jinja_span){begin, end};
}

// transformers counts from what the whole template has printed so far, also where the
// block stands in a macro whose text is printed later.
static void run_generation(tr_jinja_run *run, const tr_jinja_node *node) {
    size_t begin = run->whole.count;
    tr_jinja_string text = tr__jinja_capture(run, &node->list);
    add_span(run, begin, begin + text.count);
    tr__jinja_add(run, run->out, text);
}

// ---- bodies

typedef void run_statement(tr_jinja_run *run, const tr_jinja_node *node);

static run_statement *const statements[TR_NODE_KINDS] = {
    [TR_NODE_DATA] = run_data,
    [TR_NODE_PRINT] = run_print,
    [TR_NODE_IF] = run_if,
    [TR_NODE_FOR] = run_for,
    [TR_NODE_SET] = run_set,
    [TR_NODE_SET_BLOCK] = run_set_block,
    [TR_NODE_MACRO] = run_macro,
    [TR_NODE_FILTERED] = run_filtered,
    [TR_NODE_GENERATION] = run_generation,
    [TR_NODE_BREAK] = run_break,
    [TR_NODE_CONTINUE] = run_break,
};

void tr__jinja_run_body(tr_jinja_run *run, const tr_jinja_nodes *body) {
    for (const tr_jinja_node *node = body->first;
         node && run->jump == TR_JUMP_NONE && run->status == TR_OK; node = node->next) {
        if (tr__jinja_enter(run, node->line)) {
            statements[node->kind](run, node);
        }
        run->depth--;
    }
}

// ---- the whole

static tr_status hand_over(const tr_jinja_run *run, tr_jinja_rendered *out,
                           tr_error *err) {
    size_t bytes = run->whole.count;
    out->text = tr__calloc(bytes + 1, 1);
    out->span = tr__calloc(run->span_count + 1, sizeof *out->span);
    if (!out->text || !out->span) {
        tr__jinja_rendered_release(out);
        return tr_fail(err, TR_MEMORY, "no memory for the text of %s", run->name);
    }
    if (bytes > 0) {
        memcpy(out->text, run->whole.bytes, bytes);
    }
    if (run->span_count > 0) {
        memcpy(out->span, run->span, run->span_count * sizeof *out->span);
    }
    out->bytes = bytes;
    out->spans = run->span_count;
    return TR_OK;
}

tr_status tr__jinja_render(const tr_jinja *jinja, const json_t *variables,
                           const struct tm *now, tr_jinja_rendered *out,
                           tr_error *err) {
    tr_jinja_run run = {.arena = {.limit = TR_JINJA_MEMORY_MAX},
                        .name = jinja->name,
                        .now = now,
                        .line = 1,
                        .steps = TR_JINJA_STEPS_MAX,
                        .err = err,
                        .run_body = tr__jinja_run_body,
                        .filter = tr__jinja_filter};
    *out = (tr_jinja_rendered){0};
    run.out = &run.whole;
    run.scope = tr__jinja_scope_open(&run, NULL);
    tr_jinja_value given = tr__jinja_from_json(&run, variables);
    run.given = given.kind == TR_JINJA_DICT ? given.as.dict : NULL;
    if (run.status == TR_OK) {
        tr__jinja_run_body(&run, &jinja->body);
    }
    tr_status status = run.status == TR_OK ? hand_over(&run, out, err) : run.status;
    tr__jinja_arena_release(&run.arena);
    tr__unicode_release(&run.unicode);
    return status;
}

void tr__jinja_rendered_release(tr_jinja_rendered *rendered) {
    tr__free(rendered->text);
    tr__free(rendered->span);
    *rendered = (tr_jinja_rendered){0};
}
