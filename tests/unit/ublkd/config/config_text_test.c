/* SPDX-License-Identifier: MIT */
/* Lines of a file, good and bad. */
#include "ublkd/config/config_text.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

/* What was read, one line for each: NUMBER[SECTION]KEY=VALUE or NUMBER!KEY!FAULT. */
static char seen[64 * 1024];

static void note(void *userdata, const struct config_line *line)
{
        size_t length = strlen(seen);
        char *end = seen + length;
        size_t room = sizeof(seen) - length;

        (void)userdata;
        if (line->fault)
                snprintf(end, room, "%u!%s!%.30s\n", line->number, line->key, line->fault);
        else if (!line->key)
                snprintf(end, room, "%u[%s]\n", line->number, line->section);
        else
                snprintf(end, room, "%u[%s]%s=%s\n", line->number, line->section ? line->section : "-",
                        line->key, line->value);
}

static const char *parsed_bytes(const char *bytes, size_t size)
{
        _cleanup_free_ char *copy = malloc(size + 1);

        memcpy(copy, bytes, size);
        copy[size] = '\0';
        seen[0] = '\0';
        config_text_read(copy, size, note, NULL);
        return seen;
}

static const char *parsed(const char *text)
{
        return parsed_bytes(text, strlen(text));
}

static void test_good_lines(void)
{
        CHECK_STR(parsed(""), "");
        CHECK_STR(parsed("\n\n \t\n# a=b\n ; [c]\n"), "");
        CHECK_STR(parsed("[M]\na=b\n"), "1[M]\n2[M]a=b\n");
        CHECK_STR(parsed("[M]\n\n\t a \t=\t b  c \t\r\n"), "1[M]\n3[M]a=b  c\n");
        CHECK_STR(parsed("a=b"), "1[-]a=b\n"); /* no final line break */
        CHECK_STR(parsed("[M]\na="), "1[M]\n2[M]a=\n");
        CHECK_STR(parsed("a=b=c # no comment"), "1[-]a=b=c # no comment\n");
        CHECK_STR(parsed("a=\"b\""), "1[-]a=\"b\"\n");
        CHECK_STR(parsed("a=ä"), "1[-]a=ä\n");
        CHECK_STR(parsed("[M]\na=1\n[N]\na=2\na=3\n"), "1[M]\n2[M]a=1\n3[N]\n4[N]a=2\n5[N]a=3\n");
        CHECK_STR(parsed("\xef\xbb\xbf[M]\na=1\n"), "1[M]\n2[M]a=1\n");
        CHECK_STR(parsed("#\\\na=1"), "2[-]a=1\n"); /* a comment does not go on */
}

static void test_bad_lines(void)
{
        CHECK_STR(parsed("abc def"), "1!abc!there is no '=' in the line; w\n");
        CHECK_STR(parsed("=x"), "1!!there is nothing before '='; w\n");
        CHECK_STR(parsed("[M"), "1!!the line begins a section and \n");
        CHECK_STR(parsed("["), "1!!the line begins a section and \n");
        CHECK_STR(parsed("[M] # x"), "1!!the line begins a section and \n");
        CHECK_STR(parsed("[M[]"), "1!!the line begins a section and \n");
        CHECK_STR(parsed("[]"), "1[]\n");
        CHECK_STR(parsed("a=b\\"), "1!a!the line goes on in the next o\n");
        CHECK_STR(parsed("a=\xff"), "1!a!the line is not UTF-8; write i\n");
        CHECK_STR(parsed("a=\x1b[0m"), "1!a!the line has a control charact\n");
        CHECK_STR(parsed("a=1\rb=2"), "1!a!the line has a control charact\n");
        CHECK_STR(parsed_bytes("a=b\0c\nd=e", 9), "1!a!the line has a NUL byte; write\n2[-]d=e\n");
        CHECK_STR(parsed_bytes("\0", 1), "1!!the line has a NUL byte; write\n");
}

static void test_a_fault_is_one_line(void)
{
        CHECK_STR(parsed("x\n[M]\ny\na=b\n"),
                "1!x!there is no '=' in the line; w\n2[M]\n3!y!there is no '=' in the line; w\n4[M]a=b\n");
}

static void test_long_lines(void)
{
        static char text[CONFIG_LINE_MAX + 16];

        memset(text, 'x', CONFIG_LINE_MAX + 1);
        memcpy(text, "key=", 4);
        CHECK_STR(parsed(text), "1!key!the line is longer than 8192 b\n");
        text[CONFIG_LINE_MAX] = '\0';
        CHECK_INT(strlen(parsed(text)), CONFIG_LINE_MAX + strlen("1[-]\n"));
        text[0] = '#';
        text[CONFIG_LINE_MAX] = 'x'; /* a comment may be as long as it likes */
        CHECK_STR(parsed(text), "");
}

int main(void)
{
        test_good_lines();
        test_bad_lines();
        test_a_fault_is_one_line();
        test_long_lines();
        return check_report();
}
