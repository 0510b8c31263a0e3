/* SPDX-License-Identifier: MIT */
/* Lists of mounts, which a container can have as it likes: a path that is found is an absolute one. Each text is a path, the
 * list of the container, and that of the host, with an empty line between them. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/peers/mount_translation.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

/* Cut the text after the next empty line, which may be missing. */
static char *cut(char *text)
{
        char *end = strstr(text, "\n\n");

        if (!end)
                return text + strlen(text);
        *end = '\0';
        return end + 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = fuzz_text(data, size), *found = NULL;
        char *theirs = cut(text), *ours = cut(theirs);

        if (*text == '/' && mount_translate(theirs, ours, text, size % 2, &found) >= 0)
                FUZZ_CHECK(found && *found == '/');
        return 0;
}
