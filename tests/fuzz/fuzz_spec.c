/* SPDX-License-Identifier: MIT */
/* Device specs: one that is taken can be written down and read again as the same wish, and one that is
 * refused says why. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/model/device_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = NULL, *again = NULL;
        _cleanup_free_ char *text = fuzz_text(data, size), *written = NULL;
        cJSON *document = fuzz_json(text, size), *copy;

        if (!document)
                return 0;
        if (device_spec_parse(document, NULL, &spec, &problems) < 0) {
                FUZZ_CHECK(problems.count > 0);
                cJSON_Delete(document);
                return 0;
        }
        cJSON_Delete(document);
        written = cJSON_PrintUnformatted(spec->document);
        FUZZ_CHECK(written);
        copy = cJSON_Parse(written);
        FUZZ_CHECK(copy && device_spec_parse(copy, NULL, &again, &problems) == 0);
        cJSON_Delete(copy);
        FUZZ_CHECK(device_spec_equal(spec, again));
        FUZZ_CHECK(!device_spec_needs_new_disk(spec, again, NULL, NULL));
        return 0;
}
