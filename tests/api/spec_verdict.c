/* SPDX-License-Identifier: MIT */
/* Print the daemon's verdict on specs: one JSON text for each line of input, one JSON object for each line of
 * output: {"good":true} or {"good":false,"errors":[{"pointer":…,"reason":…,"detail":…}],"dropped":0}. For a
 * line that is not JSON: {"good":false,"malformed":true}. With --patch a line is [spec,patch], the verdict is
 * on the patched spec, and "result" contains it. For schema_differential_test.py. */
#include "api/resources/merge_patch.h"
#include "ublkd/model/device_spec.h"

#include <stdio.h>
#include <string.h>

/* Return the patched spec; NULL with problems if the patch is refused. */
static cJSON *patched(const cJSON *pair, struct problem_list *problems)
{
        cJSON *result = NULL;
        int r = merge_patch(cJSON_GetArrayItem(pair, 0), cJSON_GetArrayItem(pair, 1), &result, problems);

        return r < 0 ? NULL : result;
}

static cJSON *verdict(const char *line, bool patch)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        cJSON *text = cJSON_ParseWithOpts(line, NULL, true), *answer = cJSON_CreateObject(), *errors;
        cJSON *document = patch ? patched(text, &problems) : text;
        int r = document ? device_spec_parse(document, NULL, &spec, &problems) : -EINVAL;

        cJSON_AddBoolToObject(answer, "good", r == 0);
        if (!text)
                cJSON_AddTrueToObject(answer, "malformed");
        errors = cJSON_AddArrayToObject(answer, "errors");
        for (size_t i = 0; i < problems.count; i++) {
                cJSON *error = cJSON_CreateObject();

                cJSON_AddStringToObject(error, "pointer", problems.items[i].pointer);
                cJSON_AddStringToObject(error, "reason", problems.items[i].reason);
                cJSON_AddStringToObject(error, "detail", problems.items[i].detail);
                cJSON_AddItemToArray(errors, error);
        }
        cJSON_AddNumberToObject(answer, "dropped", (double)problems.dropped);
        if (patch && document)
                cJSON_AddItemToObject(answer, "result", document);
        cJSON_Delete(text);
        return answer;
}

int main(int argc, char *argv[])
{
        bool patch = argc > 1 && strcmp(argv[1], "--patch") == 0;
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t length;

        while ((length = getline(&line, &size, stdin)) >= 0) {
                cJSON *answer;
                char *text;

                line[strcspn(line, "\n")] = '\0';
                answer = verdict(line, patch);
                text = cJSON_PrintUnformatted(answer);
                puts(text ? text : "null");
                fflush(stdout);
                cJSON_free(text);
                cJSON_Delete(answer);
        }
        return ferror(stdin) ? EXIT_FAILURE : EXIT_SUCCESS;
}
