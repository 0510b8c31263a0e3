/* SPDX-License-Identifier: MIT */
/* reading: texts of any length come whole, and no longer than is allowed. */
#include "ublkd/base/reading.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* A file of `size` bytes that differ. */
static int make_file(size_t size)
{
        int fd = memfd_create("reading", MFD_CLOEXEC);

        CHECK(fd >= 0);
        for (size_t i = 0; i < size; i++)
                CHECK_INT(write(fd, &(char){(char)('a' + i % 23)}, 1), 1);
        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

static void check_text(const char *text, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (text[i] != (char)('a' + i % 23))
                        CHECK_INT(i, -1);
        CHECK_INT(text[size], '\0');
}

static void check_size(size_t size)
{
        _cleanup_close_ int fd = make_file(size);
        _cleanup_free_ char *text = NULL;
        size_t found = 7;

        CHECK_INT(read_to_end(fd, size, &text, &found), 0);
        CHECK_INT(found, size);
        check_text(text, size);
}

static void test_texts_of_any_length(void)
{
        static const size_t sizes[] = {0, 1, 4095, 16383, 16384, 16385, 32767, 32768, 100000};

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                check_size(sizes[i]);
}

static void test_a_text_that_is_too_long(void)
{
        _cleanup_close_ int fd = make_file(101);
        char *text = NULL;
        size_t size = 7;

        CHECK_INT(read_to_end(fd, 100, &text, &size), -EFBIG);
        CHECK(!text);
        CHECK_INT(size, 7);
}

static void test_what_cannot_be_read(void)
{
        _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char *text = NULL;
        size_t size = 7;

        CHECK_INT(read_to_end(fd, 100, &text, &size), -EISDIR);
        CHECK(!text);
}

static void test_a_pipe_that_does_not_block(void)
{
        _cleanup_(reading_clear) struct reading reading = {};
        int ends[2];

        CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        CHECK_INT(reading_step(&reading, ends[0], 9), -EAGAIN);
        CHECK_INT(write(ends[1], "one", 3), 3);
        CHECK_INT(reading_step(&reading, ends[0], 9), 1);
        CHECK_INT(reading_step(&reading, ends[0], 9), -EAGAIN);
        CHECK_STR(reading.text, "one");
        CHECK_INT(write(ends[1], "four", 4), 4);
        CHECK_INT(reading_step(&reading, ends[0], 9), 1);
        close(ends[1]);
        CHECK_INT(reading_step(&reading, ends[0], 9), 0);
        CHECK_STR(reading.text, "onefour");
        CHECK_INT(reading.size, 7);
        close(ends[0]);
}

int main(void)
{
        test_texts_of_any_length();
        test_a_text_that_is_too_long();
        test_what_cannot_be_read();
        test_a_pipe_that_does_not_block();
        return check_report();
}
