/* SPDX-License-Identifier: MIT */
/* The claims of a disk on its backing store, kept in the runtime directory. Each claim has two lines: its
 * range, whether the disk writes, and " 1" if it is mapped; then its key. A disk without a store has the line "none". */
#include "ublkd/runtime/claim_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char none[] = "none\n";

enum {
        CLAIM_SIZE_MAX = BACKING_KEY_MAX + 64, /* as text */
        TEXT_SIZE = BACKING_CLAIMS_MAX * CLAIM_SIZE_MAX,
};

static int make_text(const struct backing_claims *claims, char text[static TEXT_SIZE])
{
        size_t size = 0;

        for (size_t i = 0; i < claims->count; i++) {
                const struct backing_claim *claim = &claims->items[i];
                int n = snprintf(text + size, TEXT_SIZE - size, "%" PRIu64 " %" PRIu64 " %d%s\n%s\n",
                        claim->start, claim->end, claim->writes, claim->mapped ? " 1" : "", claim->key);

                if (n < 0 || (size_t)n >= TEXT_SIZE - size)
                        return -ENAMETOOLONG;
                size += (size_t)n;
        }
        return 0;
}

int claim_file_write(struct runtime_dir *dir, const char *uid, const struct backing_claims *claims)
{
        char text[TEXT_SIZE] = "";
        int r = make_text(claims, text);

        return r < 0 ? r : runtime_dir_write(dir, uid, RUNTIME_CLAIM, claims->count > 0 ? text : none);
}

/* Cut the next line out of `*text`. Return NULL if no line is left that ends with a newline. */
static char *take_line(char **text)
{
        char *line = *text, *end = strchr(line, '\n');

        if (!end)
                return NULL;
        *end = '\0';
        *text = end + 1;
        return line;
}

static int take_claim(char **text, struct backing_claims *claims)
{
        struct backing_claim claim = {};
        char *range = take_line(text);
        int writes, mapped = 0, offset = 0, n;

        claim.key = range ? take_line(text) : NULL;
        if (!claim.key)
                return -EBADMSG;
        n = sscanf(range, "%" SCNu64 " %" SCNu64 " %d%n %d%n", &claim.start, &claim.end, &writes, &offset,
                &mapped, &offset);
        if (n < 3 || range[offset] != '\0')
                return -EBADMSG;
        claim.writes = writes != 0;
        claim.mapped = mapped != 0;
        n = backing_claims_add(claims, &claim);
        return n == -ENOMEM ? n : n < 0 ? -EBADMSG : 0;
}

static int parse(char *text, struct backing_claims *ret)
{
        _cleanup_claims_ struct backing_claims claims = {};
        int r;

        if (strcmp(text, none) == 0) {
                *ret = (struct backing_claims){};
                return 0;
        }
        do
                r = take_claim(&text, &claims);
        while (r >= 0 && *text);
        if (r < 0)
                return r;
        *ret = claims;
        claims = (struct backing_claims){};
        return 0;
}

int claim_file_read(struct runtime_dir *dir, const char *uid, struct backing_claims *ret)
{
        _cleanup_free_ char *text = NULL;
        int r = runtime_dir_read(dir, uid, RUNTIME_CLAIM, &text);

        return r < 0 ? r : parse(text, ret);
}

int claim_file_remove(struct runtime_dir *dir, const char *uid)
{
        return runtime_dir_remove(dir, uid, RUNTIME_CLAIM);
}
