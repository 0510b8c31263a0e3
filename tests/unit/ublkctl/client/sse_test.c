/* SPDX-License-Identifier: MIT */
/* Tests of Server-Sent Events, in pieces of every size. */
#include "tests/unit/check.h"
#include "ublkctl/client/sse.h"
#include "ublkd/base/cleanup.h"

struct sink {
        char text[256];
        unsigned left; /* events until the callback returns false */
};

static bool note(void *userdata, const char *data)
{
        struct sink *sink = userdata;

        sprintf(sink->text + strlen(sink->text), "[%s]", data);
        return --sink->left > 0;
}

static void check_stream(const char *stream, const char *wanted, const char *id, unsigned retry)
{
        for (size_t piece = 1; piece <= strlen(stream); piece++) {
                struct sink sink = {.left = 100};
                struct sse *sse = sse_new(note, &sink);

                for (size_t at = 0; at < strlen(stream); at += piece) {
                        size_t left = strlen(stream) - at;

                        CHECK(sse_feed(sse, stream + at, left < piece ? left : piece));
                }
                CHECK_STR(sink.text, wanted);
                CHECK_STR(sse_last_id(sse), id);
                CHECK_INT(sse_retry_ms(sse, 7), retry);
                sse_free(sse);
        }
}

static void test_restart(void)
{
        struct sink sink = {.left = 2};
        struct sse *sse = sse_new(note, &sink);

        CHECK(sse_feed(sse, "id: 5\ndata: a\n\nid: 6\ndata: lost", 32));
        sse_restart(sse);
        CHECK_STR(sse_last_id(sse), "5");
        CHECK(!sse_feed(sse, "data: b\n\ndata: c\n\n", 18));
        CHECK_STR(sink.text, "[a][b]");
        sse_free(sse);
        sse_free(NULL);
}

static void test_endless_line(void)
{
        struct sink sink = {.left = 1};
        struct sse *sse = sse_new(note, &sink);
        char piece[4096];
        unsigned taken = 0;

        memset(piece, 'x', sizeof(piece));
        while (taken < 1000 && sse_feed(sse, piece, sizeof(piece)))
                taken++;
        CHECK(taken < 1000);
        sse_free(sse);
}

int main(void)
{
        check_stream("retry: 2000\nid: 3\n\n", "", "3", 2000);
        check_stream("id: 4\ndata: {\"a\":1}\n\n", "[{\"a\":1}]", "4", 7);
        check_stream("data: a\ndata:b\ndata\n\ndata: c\n\n", "[a\nb\n][c]", "", 7);
        check_stream("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "[a][b][c]", "", 7);
        check_stream(": keep-alive\nid: 9\n\nevent: x\ndata:  y\n\n", "[ y]", "9", 7);
        check_stream("id: 1\ndata: a\n\nid: 2\ndata: not complete\n", "[a]", "1", 7);
        check_stream("retry: x\nretry: 99999999\nbogus: 1\n\n", "", "", 60000);
        test_restart();
        test_endless_line();
        return check_report();
}
