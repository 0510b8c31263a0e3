/* SPDX-License-Identifier: MIT */
/* A process that appends and erases records can be killed at any instruction. This steps through one, and after each
 * instruction opens a copy of the memory, as the next worker would: it must find the records from before the operation or
 * those from after it, and reject nothing.
 *
 * Each store that the process makes is then torn as well, between all of its bytes, from either end: a record may be
 * rejected then, and is still whole or absent.
 *
 * The same program is built on logs with a planted fault (planted_log.c). The argument "planted" says so: the kills, or
 * the torn stores, must find it. */
#include "targets/kept/record_log.h"
#include "tests/unit/check.h"
#include "tests/unit/step_count.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RECORDS = 3, SIZE = 300, MEMORY = 1024, OPERATIONS_MAX = 16 };

#define SEED UINT64_C(0x5eed0000fade)

/* A length of 0 erases the record in `slot`; else a record of `length` bytes is appended, and must come into `slot`. */
static const struct operation {
        uint32_t length;
        unsigned slot;
} operations[] = {
        {300, 0},
        {1,   1},
        {257, 2}, /* full now */
        {0,   1},
        {8,   1}, /* beside two others */
        {0,   0},
        {300, 0}, /* over a record of the same length */
        {0,   2},
        {31,  2}, /* over a longer one */
        {0,   2},
        {256, 2}, /* the lower byte of its length is 0 */
        {0,   0},
        {0,   1},
        {0,   2}, /* empty again */
};
_Static_assert(sizeof(operations) / sizeof(operations[0]) <= OPERATIONS_MAX, "found[] has room");

enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

struct shared_state {
        _Alignas(64) unsigned char memory[MEMORY];
};

/* The records of a log, one after the other. */
struct records {
        unsigned count;
        unsigned number[RECORDS]; /* of the operation that appended it */
};

struct judge {
        struct shared_state *shared;
        struct records expected[OPERATIONS_MAX + 1]; /* before each operation, and after the last */
        unsigned char before[MEMORY];                /* after the instruction before */
        unsigned operation;
        uint64_t instructions, stores, torn, found_killed, found_torn;
};

static unsigned char byte_of(unsigned number, unsigned i)
{
        return (unsigned char)(number * 37 + i * 11 + 1);
}

static void fill(unsigned number, unsigned char record[static SIZE])
{
        for (unsigned i = 0; i < SIZE; i++)
                record[i] = byte_of(number, i);
}

static struct record_log *open_log(unsigned char *memory)
{
        struct record_log *log = NULL;

        if (record_log_open(memory, record_log_memory(RECORDS, SIZE), SEED, SIZE, &log) < 0)
                abort();
        return log;
}

/* In the child. */
static void operate(void *userdata)
{
        struct judge *judge = userdata;
        struct record_log *log = open_log(judge->shared->memory);
        unsigned char record[SIZE];

        for (unsigned i = 0; i < OPERATIONS; i++) {
                int slot = (int)operations[i].slot;

                fill(i, record);
                step_count_begin();
                if (operations[i].length > 0)
                        slot = record_log_append(log, record, operations[i].length);
                else
                        record_log_erase(log, operations[i].slot);
                step_count_end();
                if (slot != (int)operations[i].slot)
                        _exit(1);
        }
}

/* What a log that works as its header says has, from what the operations are alone. */
static void foretell(struct judge *judge)
{
        unsigned holder[RECORDS];
        struct records now = {};

        for (unsigned i = 0; i < OPERATIONS; i++) {
                struct records next = {};

                judge->expected[i] = now;
                for (unsigned k = 0; k < now.count; k++)
                        if (operations[i].length > 0 || now.number[k] != holder[operations[i].slot])
                                next.number[next.count++] = now.number[k];
                if (operations[i].length > 0) {
                        next.number[next.count++] = i;
                        holder[operations[i].slot] = i;
                }
                now = next;
        }
        judge->expected[OPERATIONS] = now;
}

struct compared {
        const struct records *expected;
        unsigned at;
        bool same;
};

static int compare(void *userdata, unsigned slot, const void *record, uint32_t length)
{
        struct compared *compared = userdata;
        const unsigned char *bytes = record;
        unsigned number;

        (void)slot;
        if (compared->at >= compared->expected->count) {
                compared->same = false;
                return 0;
        }
        number = compared->expected->number[compared->at++];
        if (length != operations[number].length)
                compared->same = false;
        for (unsigned i = 0; compared->same && i < length; i++)
                compared->same = bytes[i] == byte_of(number, i);
        return 0;
}

static bool has(struct record_log *log, const struct records *expected)
{
        struct compared compared = {.expected = expected, .same = true};

        if (record_log_replay(log, compare, &compared) < 0)
                abort();
        return compared.same && compared.at == expected->count;
}

/* What the next worker finds in that memory. */
static bool is_good(const struct judge *judge, const unsigned char *memory, bool torn)
{
        _Alignas(64) unsigned char copy[MEMORY];
        struct record_log *log;
        bool good;

        memcpy(copy, memory, MEMORY);
        log = open_log(copy);
        good = (torn || record_log_rejected(log) == 0)
               && (has(log, &judge->expected[judge->operation])
                       || has(log, &judge->expected[judge->operation + 1]));
        record_log_free(log);
        return good;
}

/* The store has changed the bytes from `first` to `last`: the first `count` of them arrive, then the last `count`. */
static void tear(struct judge *judge, const unsigned char *after, size_t first, size_t last)
{
        unsigned char memory[MEMORY];

        for (size_t count = 1; count < last - first + 1; count++) {
                memcpy(memory, judge->before, MEMORY);
                memcpy(memory + first, after + first, count);
                judge->found_torn += !is_good(judge, memory, true);
                memcpy(memory, judge->before, MEMORY);
                memcpy(memory + last + 1 - count, after + last + 1 - count, count);
                judge->found_torn += !is_good(judge, memory, true);
                judge->torn += 2;
        }
}

static void stepped(void *userdata)
{
        struct judge *judge = userdata;
        const unsigned char *after = judge->shared->memory;
        size_t first = 0, last = MEMORY - 1;

        judge->instructions++;
        judge->found_killed += !is_good(judge, after, false);
        if (memcmp(judge->before, after, MEMORY) == 0)
                return;
        judge->stores++;
        while (judge->before[first] == after[first])
                first++;
        while (judge->before[last] == after[last])
                last--;
        tear(judge, after, first, last);
        memcpy(judge->before, after, MEMORY);
}

static void counted(void *userdata, unsigned piece, uint64_t instructions)
{
        struct judge *judge = userdata;

        (void)instructions;
        CHECK_INT(piece, judge->operation);
        judge->operation++;
        /* What is done is there. */
        if (judge->operation <= OPERATIONS) {
                _Alignas(64) unsigned char copy[MEMORY];
                struct record_log *log;

                memcpy(copy, judge->shared->memory, MEMORY);
                log = open_log(copy);
                judge->found_killed += !has(log, &judge->expected[judge->operation]);
                record_log_free(log);
        }
}

int main(int argc, char **argv)
{
        bool planted = argc > 1 && strcmp(argv[1], "planted") == 0;
        struct judge judge = {};
        int r;

        judge.shared =
                mmap(NULL, sizeof(*judge.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (!CHECK(judge.shared != MAP_FAILED))
                return check_report();
        foretell(&judge);
        r = step_watch(operate, stepped, counted, &judge);
        if (r == CHECK_SKIP
                || r == -EIO) /* ptrace(2) is not permitted here, or the kernel cannot step on this CPU */
                return CHECK_SKIP;
        CHECK_INT(r, 0);
        CHECK_INT(judge.operation, OPERATIONS);
        /* An erasure is one store, and each other operation is three at least. How many of them are wide enough to be torn
         * is for the compiler to say: with -Os it copies byte by byte. */
        CHECK(judge.stores >= 6 + 3 * 8 && judge.torn >= OPERATIONS && judge.instructions > judge.stores);
        if (planted)
                CHECK(judge.found_killed + judge.found_torn > 0);
        else {
                CHECK_INT(judge.found_killed, 0);
                CHECK_INT(judge.found_torn, 0);
        }
        printf("%ju instructions, %ju stores, %ju torn stores; wrong after %ju kills and %ju torn stores\n",
                (uintmax_t)judge.instructions, (uintmax_t)judge.stores, (uintmax_t)judge.torn,
                (uintmax_t)judge.found_killed, (uintmax_t)judge.found_torn);
        return check_report();
}
