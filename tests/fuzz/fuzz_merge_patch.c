/* SPDX-License-Identifier: MIT */
/* Merge patches: two JSON texts with a newline between them. Applied twice is applied once (RFC 7396, section
 * 2: nothing in the algorithm depends on what was there, but for what the patch does not name). */
#include "api/resources/merge_patch.h"
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <string.h>

/* What is patched is a spec of the store, where no name stands twice: such a target says nothing. */
static bool is_ambiguous(const cJSON *target)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *same = NULL;
        bool ambiguous = target && merge_patch(NULL, target, &same, &problems) < 0;

        cJSON_Delete(same);
        return ambiguous;
}

static void apply(const cJSON *target, const cJSON *patch)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *once = NULL, *twice = NULL;

        if (merge_patch(target, patch, &once, &problems) < 0) {
                FUZZ_CHECK(problems.count > 0);
                return;
        }
        FUZZ_CHECK(merge_patch(once, patch, &twice, &problems) == 0);
        FUZZ_CHECK(cJSON_Compare(once, twice, true));
        cJSON_Delete(once);
        cJSON_Delete(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = fuzz_text(data, size);
        char *middle = memchr(text, '\n', size);
        cJSON *target, *patch;

        if (!middle)
                return 0;
        *middle++ = '\0';
        target = fuzz_json(text, strlen(text));
        patch = fuzz_json(middle, size - (size_t)(middle - text));
        if (patch && !is_ambiguous(target))
                apply(target, patch);
        cJSON_Delete(target);
        cJSON_Delete(patch);
        return 0;
}
