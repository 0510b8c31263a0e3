/* SPDX-License-Identifier: MIT */
/* What is read up to its end, whatever its length. */
#include "ublkd/base/reading.h"

enum { ROOM_FIRST = 16 * 1024 };

void reading_clear(struct reading *reading)
{
        free(reading->text);
        *reading = (struct reading){};
}

/* Doubled each time, so that a long text is copied only a few times. */
static int make_room(struct reading *reading)
{
        size_t room = reading->room ? 2 * reading->room : ROOM_FIRST;
        char *grown;

        if (reading->room > reading->size + 1) /* one more is for the NUL */
                return 0;
        grown = realloc(reading->text, room);
        if (!grown)
                return -ENOMEM;
        reading->text = grown;
        reading->room = room;
        return 0;
}

int reading_step(struct reading *reading, int fd, size_t size_max)
{
        int r = make_room(reading);
        ssize_t n;

        if (r < 0)
                return r;
        n = read(fd, reading->text + reading->size, reading->room - reading->size - 1);
        if (n < 0)
                r = errno == EINTR ? 1 : -errno;
        else
                reading->size += (size_t)n;
        reading->text[reading->size] = '\0';
        if (r < 0)
                return r;
        return reading->size > size_max ? -EFBIG : n != 0;
}

int read_to_end(int fd, size_t size_max, char **ret, size_t *ret_size)
{
        _cleanup_(reading_clear) struct reading reading = {};
        char *exact;
        int r;

        do
                r = reading_step(&reading, fd, size_max);
        while (r > 0);
        if (r < 0)
                return r;
        exact = realloc(reading.text, reading.size + 1);
        if (exact)
                reading.text = exact;
        *ret = TAKE_PTR(reading.text);
        *ret_size = reading.size;
        return 0;
}
