/* SPDX-License-Identifier: MIT */
/* Every allocation of device_spec_parse() fails once, the n-th in the n-th round: the answer must be -ENOMEM,
 * and nothing may stay behind. The allocator is glibc's with a counter in front, so a sanitizer, which brings
 * its own, has to skip this. */
#include "tests/unit/check.h"
#include "ublkd/model/device_spec.h"

#include <regex.h>

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
int main(void)
{
        return CHECK_SKIP;
}
#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *pointer);

enum { NEVER = -1 };

static long until_failure = NEVER;
static long live;

static bool fails(void)
{
        if (until_failure == NEVER || until_failure == 0)
                return until_failure == 0;
        until_failure--;
        return until_failure == 0;
}

static void *counted(void *pointer)
{
        live += pointer != NULL;
        return pointer;
}

void *malloc(size_t size)
{
        return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
        return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
        void *pointer = fails() ? NULL : __libc_realloc(old, size);

        live += pointer && !old;
        return pointer;
}

void free(void *pointer)
{
        live -= pointer != NULL;
        __libc_free(pointer);
}

/* glibc's regcomp() leaks, and frees twice, when an allocation in it fails (seen with 2.36): all that can be
 * tested is that the failure of the whole call is handled. */
int __real_regcomp(regex_t *regex, const char *pattern, int flags);
int __wrap_regcomp(regex_t *regex, const char *pattern, int flags);
int __real_regexec(const regex_t *regex, const char *text, size_t count, regmatch_t *matches, int flags);
int __wrap_regexec(const regex_t *regex, const char *text, size_t count, regmatch_t *matches, int flags);

int __wrap_regcomp(regex_t *regex, const char *pattern, int flags)
{
        long saved;
        int r;

        if (fails())
                return REG_ESPACE;
        saved = until_failure;
        until_failure = NEVER;
        r = __real_regcomp(regex, pattern, flags);
        until_failure = saved;
        return r;
}

int __wrap_regexec(const regex_t *regex, const char *text, size_t count, regmatch_t *matches, int flags)
{
        long saved;
        int r;

        if (fails())
                return REG_ESPACE;
        saved = until_failure;
        until_failure = NEVER;
        r = __real_regexec(regex, text, count, matches, flags);
        until_failure = saved;
        return r;
}

/* One round. Returns true when nothing failed any more. */
static bool round_ends(const cJSON *document, long nth, int wanted)
{
        struct problem_list problems = {};
        struct device_spec *spec = NULL;
        long before = live;
        bool reached;
        int r;

        /* Once one has failed all do, as when memory is really gone. */
        until_failure = nth;
        r = device_spec_parse(document, "data", &spec, &problems);
        reached = until_failure == 0;
        until_failure = NEVER;
        if (!CHECK_INT(r, reached ? -ENOMEM : wanted))
                fprintf(stderr, "    when allocation %ld failed\n", nth);
        CHECK((r == 0) == (spec != NULL));
        device_spec_free(spec);
        problem_list_clear(&problems);
        if (!CHECK_INT(live, before))
                fprintf(stderr, "    when allocation %ld failed\n", nth);
        return !reached;
}

static void check_document(const char *text, int wanted)
{
        cJSON *document = cJSON_Parse(text);
        long nth = 1;

        CHECK(document);
        /* Buffers that libc makes once and keeps are not leaks. */
        round_ends(document, NEVER, wanted);
        while (!round_ends(document, nth, wanted) && nth < 100000)
                nth++;
        CHECK(nth > 20);
        cJSON_Delete(document);
}

int main(void)
{
        check_document(
                "{\"target\":{\"type\":\"loop\",\"path\":\"/disk\",\"directIo\":\"on\"},\"size\":\"1GiB\","
                "\"owner\":{\"mode\":\"0600\"},\"labels\":{\"a\":\"b\",\"c\":\"d\"},\"cpus\":\"0-3\"}",
                0);
        check_document("{\"name\":\"other\",\"target\":{\"type\":\"null\",\"path\":7},\"queueDepht\":1,"
                       "\"cpus\":\"3-1\","
                       "\"labels\":{\"-\":\"\",\"a\":\"1\",\"a\":\"2\"},\"owner\":[]}",
                -EINVAL);
        check_document("{\"name\":\"data\",\"target\":{\"type\":\"nonsense\"}}", -EINVAL);
        return check_report();
}
#endif
