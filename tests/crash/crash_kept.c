/* SPDX-License-Identifier: MIT */
/* The kept memory of a target under judgement. */
#include "tests/crash/crash_kept.h"
#include "tests/target/target_host.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = DEVICE_REGION_ALIGNMENT };

struct kept_page {
        uint64_t moment, offset;
        char bytes[PAGE];
};

static bool is_there(const struct crash_kept *kept)
{
        return kept->before >= 0;
}

/* Have the second region as the first one, whose header has the seed of the memory. */
static int copy_region(int from, int *ret)
{
        static char buffer[PAGE];
        _cleanup_close_ int to = memfd_create("region", MFD_CLOEXEC);
        off_t offset = 0;
        ssize_t n;

        if (to < 0)
                return -errno;
        while ((n = pread(from, buffer, sizeof(buffer), offset)) > 0) {
                int r = device_region_write(to, (uint64_t)offset, buffer, (size_t)n);

                if (r < 0)
                        return r;
                offset += n;
        }
        if (n < 0)
                return -errno;
        *ret = TAKE_FD(to);
        return 0;
}

static int map_kept(struct crash_kept *kept)
{
        struct device_region_header header;
        int r = device_region_read_header(kept->before, &header);
        size_t end;
        char *live, *there;

        if (r < 0)
                return r;
        kept->offset = header.size;
        end = kept->offset + kept->size;
        live = mmap(NULL, end, PROT_READ, MAP_SHARED, kept->before, 0);
        there = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, kept->after, 0);
        kept->live = live == MAP_FAILED ? NULL : live + kept->offset;
        kept->there = there == MAP_FAILED ? NULL : there + kept->offset;
        return kept->live && kept->there ? 0 : -ENOMEM;
}

int kept_init(struct crash_kept *kept, const char *spec, unsigned queues)
{
        int r;

        *kept = (struct crash_kept){.before = -1, .after = -1};
        r = target_host_new_region(spec, queues, &kept->before, &kept->size);
        if (r < 0 || !is_there(kept))
                return r;
        r = copy_region(kept->before, &kept->after);
        if (r >= 0)
                r = map_kept(kept);
        if (r < 0)
                return r;
        kept->base = calloc(1, kept->size);
        kept->last = calloc(1, kept->size);
        kept->made = calloc(1, kept->size);
        kept->made_number = kept->given_number = KEPT_FRESH;
        return kept->base && kept->last && kept->made ? 0 : -ENOMEM;
}

void kept_clear(struct crash_kept *kept)
{
        size_t end = kept->offset + kept->size;

        if (kept->live)
                (void)munmap((void *)((uintptr_t)kept->live - kept->offset), end);
        if (kept->there)
                (void)munmap(kept->there - kept->offset, end);
        free(kept->base);
        free(kept->last);
        free(kept->made);
        free(kept->pages);
        close_fd(kept->before);
        close_fd(kept->after);
        *kept = (struct crash_kept){.before = -1, .after = -1};
}

/* ---- what there was ---- */

void kept_begin(struct crash_kept *kept)
{
        if (!is_there(kept))
                return;
        memcpy(kept->base, kept->live, kept->size);
        memcpy(kept->last, kept->live, kept->size);
}

static void note_page(struct crash_kept *kept, uint64_t moment, uint64_t offset)
{
        struct kept_page *page;

        if (kept->count == kept->room) {
                int room = kept->room ? 2 * kept->room : 64;
                struct kept_page *pages = realloc(kept->pages, (size_t)room * sizeof(*pages));

                if (!pages) {
                        kept->out_of_memory = true;
                        return;
                }
                kept->pages = pages;
                kept->room = room;
        }
        page = &kept->pages[kept->count++];
        page->moment = moment;
        page->offset = offset;
        memcpy(page->bytes, kept->live + offset, PAGE);
        memcpy(kept->last + offset, kept->live + offset, PAGE);
}

void kept_note(struct crash_kept *kept, uint64_t moment)
{
        if (!is_there(kept))
                return;
        for (uint64_t offset = 0; offset < kept->size; offset += PAGE)
                if (memcmp(kept->last + offset, kept->live + offset, PAGE) != 0)
                        note_page(kept, moment, offset);
}

/* ---- what a crash leaves ---- */

void kept_make(struct crash_kept *kept, uint64_t moment)
{
        if (!is_there(kept))
                return;
        if (kept->made_number == KEPT_FRESH
                || (kept->made_number > 0 && kept->pages[kept->made_number - 1].moment > moment)) {
                memcpy(kept->made, kept->base, kept->size);
                kept->made_number = 0;
        }
        for (; kept->made_number < kept->count && kept->pages[kept->made_number].moment <= moment;
                kept->made_number++) {
                const struct kept_page *page = &kept->pages[kept->made_number];

                memcpy(kept->made + page->offset, page->bytes, PAGE);
        }
}

void kept_make_fresh(struct crash_kept *kept)
{
        if (!is_there(kept) || kept->made_number == KEPT_FRESH)
                return;
        memset(kept->made, 0, kept->size);
        kept->made_number = KEPT_FRESH;
}

bool kept_differs(const struct crash_kept *kept)
{
        return is_there(kept) && kept->made_number != kept->given_number;
}

void kept_give(struct crash_kept *kept)
{
        if (!is_there(kept))
                return;
        for (uint64_t offset = 0; offset < kept->size; offset += PAGE)
                if (memcmp(kept->there + offset, kept->made + offset, PAGE) != 0)
                        memcpy(kept->there + offset, kept->made + offset, PAGE);
        kept->given_number = kept->made_number;
}
