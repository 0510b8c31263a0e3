/* What the daemon thinks of specs: one JSON text a line in, one JSON object a line out:
 * {"good":true} or {"good":false,"errors":[{"pointer":…,"reason":…,"detail":…}],"dropped":0}. A line that is
 * no JSON is {"good":false,"malformed":true}. For schema_differential_test.py. */
#include "ublkd/device_spec.h"

#include <stdio.h>
#include <string.h>

static cJSON *verdict(const char *line)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        cJSON *document = cJSON_ParseWithOpts(line, NULL, true), *answer = cJSON_CreateObject(), *errors;
        int r = document ? device_spec_parse(document, NULL, &spec, &problems) : -EINVAL;

        cJSON_AddBoolToObject(answer, "good", r == 0);
        if (!document)
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
        cJSON_Delete(document);
        return answer;
}

int main(void)
{
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t length;

        while ((length = getline(&line, &size, stdin)) >= 0) {
                cJSON *answer;
                char *text;

                line[strcspn(line, "\n")] = '\0';
                answer = verdict(line);
                text = cJSON_PrintUnformatted(answer);
                puts(text ? text : "null");
                fflush(stdout);
                cJSON_free(text);
                cJSON_Delete(answer);
        }
        return ferror(stdin) ? EXIT_FAILURE : EXIT_SUCCESS;
}
