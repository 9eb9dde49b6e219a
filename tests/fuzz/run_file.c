// Run files: text is read against the tables of keys. What was read and written again
// as run.json must be a run file too.
#include "fuzz.h"

#include "base/memory.h"
#include "config/config.h"
#include "run/keys/keys.h"

#include <string.h>

static tr_status parse(const char *text, size_t bytes, tr_config **out, tr_error *err) {
    return tr__config_parse(&(tr_config_text){"run.json", text, bytes}, tr__key_tables,
                            TR_KEY_TABLES, NULL, 0, out, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tr_config *config = NULL, *again = NULL;
    tr_error err = {0};
    char *text = NULL;
    tr_status status = parse((const char *)data, size, &config, &err);
    fuzz_check_told(status, &err);
    if (status != TR_OK) {
        return 0;
    }
    status = tr__config_write_resolved(config, &text, &err);
    fuzz_check(status == TR_OK, "a run file that cannot be written as run.json");
    status = parse(text, strlen(text), &again, &err);
    fuzz_check(status == TR_OK, err.message);
    tr__config_destroy(again);
    tr__free(text);
    tr__config_destroy(config);
    return 0;
}
