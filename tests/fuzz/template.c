// A chat template, rendered with a conversation. What it makes is UTF-8 again, and the
// same when it is rendered a second time.
#include "fuzz.h"

#include "text/template/jinja.h"
#include "text/unicode/utf8.h"

#include <jansson.h>
#include <string.h>

static const char conversation[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"a <b> c\"},"
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"h\u00e9 \"}]},"
    "{\"role\":\"assistant\",\"content\":\"x\\ny\",\"tool_calls\":[{\"function\":"
    "{\"name\":\"f\",\"arguments\":{\"a\":1,\"b\":[true,null,1.5e22]}}}]}],"
    "\"tools\":null,\"n\":7,\"add_generation_prompt\":true,\"s\":\"a,b,,c\"}";

static json_t *variables(void) {
    static json_t *loaded;
    if (!loaded) {
        loaded = json_loads(conversation, 0, NULL);
        fuzz_check(loaded != NULL, "the conversation");
    }
    return loaded;
}

static void check_text(const tr_jinja_rendered *rendered) {
    fuzz_check(tr__utf8_valid((const unsigned char *)rendered->text, rendered->bytes) ==
                   rendered->bytes,
               "a rendered text that is no UTF-8");
    for (size_t i = 0; i < rendered->spans; i++) {
        fuzz_check(rendered->span[i].begin <= rendered->span[i].end,
                   "a span that ends before it begins");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tr_jinja *jinja = NULL;
    tr_jinja_rendered first = {0}, second = {0};
    tr_error err = {0};
    tr_status status =
        tr__jinja_parse("template", (const char *)data, size, &jinja, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        status = tr__jinja_render(jinja, variables(), NULL, &first, &err);
        fuzz_check_told(status, &err);
    }
    if (status == TR_OK) {
        check_text(&first);
        fuzz_check(tr__jinja_render(jinja, variables(), NULL, &second, &err) == TR_OK &&
                       first.bytes == second.bytes &&
                       memcmp(first.text, second.text, first.bytes) == 0,
                   "a second rendering that differs");
    }
    tr__jinja_rendered_release(&first);
    tr__jinja_rendered_release(&second);
    tr__jinja_destroy(jinja);
    return 0;
}
