/* SPDX-License-Identifier: MIT */
/* Files that describe devices: each spec is valid or has a fault with a line of the file, and a file with a fault is
 * never taken for one that describes no device. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/declared/declared_set.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = fuzz_text(data, size);
        struct device_dir dir = {.path = (char *)"/etc/d", .state = DIR_READ};
        struct device_file file = {.path = (char *)"/etc/d/a.json", .state = FILE_READ, .text = text};
        struct device_files files = {.dirs = &dir, .dir_count = 1, .items = &file, .count = 1};
        _cleanup_declared_set_ struct declared_set set = {};
        size_t lines = 1, invalid = 0;

        file.size = strlen(text);
        for (const char *at = text; *at; at++)
                lines += *at == '\n';
        FUZZ_CHECK(declared_set_make(&files, NULL, NULL, &set) == 0);
        FUZZ_CHECK(set.count <= DECLARATIONS_MAX);
        for (size_t i = 0; i < set.count; i++) {
                FUZZ_CHECK(set.items[i].line >= 1 && set.items[i].line <= lines);
                FUZZ_CHECK((set.items[i].spec == NULL) == (set.items[i].fault != NULL));
                FUZZ_CHECK(declared_set_find(&set, set.items[i].name) == &set.items[i]);
                invalid += !set.items[i].spec;
        }
        for (size_t i = 0; i < set.problems.count; i++) {
                size_t line = 0;

                FUZZ_CHECK(sscanf(set.problems.items[i].detail, "/etc/d/a.json:%zu: ", &line) == 1);
                FUZZ_CHECK(line >= 1 && line <= lines);
        }
        if (invalid > 0 || (set.count == 0 && !declared_set_unknown(&set, file.path)))
                FUZZ_CHECK(set.problems.count > 0 || strchr(text, '[')); /* an empty list is fine */
        if (invalid > 0)
                FUZZ_CHECK(declared_set_unknown(&set, file.path) != NULL);
        return 0;
}
