/* SPDX-License-Identifier: MIT */
/* What the core does around a target's callback: checks, FUA, and answers that must not pass for success. */
#include "targets/worker/queue/perform.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"

enum { SIZE = 1 << 20, BLOCK = 4096 };

/* What the fake target was asked, and what it is to answer. */
struct fake {
        unsigned calls, flushes;
        int answer, flush_answer;
        bool full; /* answers with the length */
};

static int transfer(struct target_io *io)
{
        struct fake *fake = io->queue->device->state;

        fake->calls++;
        return fake->full ? (int)io->length : fake->answer;
}

static int flush(struct target_io *io)
{
        struct fake *fake = io->queue->device->state;

        fake->flushes++;
        return fake->flush_answer;
}

static const struct target_desc desc = {.name = "fake"},
                                fua_desc = {.name = "fake", .flags = TARGET_NATIVE_FUA};
static const struct target full = {
        .desc = &desc, .read = transfer, .write = transfer, .flush = flush, .write_zeroes = transfer};
static const struct target fua = {.desc = &fua_desc, .read = transfer, .write = transfer, .flush = flush};
static const struct target cacheless = {.desc = &desc, .read = transfer, .write = transfer};

static struct shared shared;
static struct durability durability;

/* As if no flush had failed yet. */
static void begin_again(void)
{
        shared = shared_region_new();
        durability = (struct durability){.shared = &shared};
}

static int perform(const struct target *target, struct fake *fake, bool read_only, struct target_io io)
{
        struct target_device device = {.target = target,
                .state = fake,
                .size = SIZE,
                .logical_block_size = BLOCK,
                .read_only = read_only};
        struct target_queue queue = {.device = &device};

        io.queue = &queue;
        return perform_co(&io, &durability);
}

static void test_checks(void)
{
        static const struct {
                struct target_io io;
                bool read_only;
                int result;
        } cases[] = {
                {{.op = IO_READ, .length = BLOCK},                                       false, BLOCK      },
                {{.op = IO_READ, .length = BLOCK},                                       true,  BLOCK      },
                {{.op = IO_READ, .offset = SIZE - BLOCK, .length = BLOCK},               false, BLOCK      },
                {{.op = IO_READ, .offset = SIZE, .length = BLOCK},                       false, -EIO       },
                {{.op = IO_READ, .offset = SIZE - BLOCK, .length = 2 * BLOCK},           false, -EIO       },
                {{.op = IO_READ, .offset = UINT64_MAX - BLOCK + 1, .length = 2 * BLOCK}, false, -EIO       },
                {{.op = IO_READ, .offset = 512, .length = BLOCK},                        false, -EINVAL    },
                {{.op = IO_READ, .length = 512},                                         false, -EINVAL    },
                {{.op = IO_READ, .length = 0},                                           false, -EINVAL    },
                {{.op = IO_WRITE, .length = BLOCK},                                      false, BLOCK      },
                {{.op = IO_WRITE, .length = BLOCK},                                      true,  -EROFS     },
                {{.op = IO_WRITE_ZEROES, .length = BLOCK},                               false, 0          },
                {{.op = IO_WRITE_ZEROES, .length = BLOCK},                               true,  -EROFS     },
                {{.op = IO_WRITE_ZEROES, .offset = 1, .length = BLOCK},                  false, -EINVAL    },
                {{.op = IO_DISCARD, .length = BLOCK},                                    false, -EOPNOTSUPP},
                {{.op = IO_FLUSH},                                                       false, 0          },
                {{.op = IO_FLUSH},                                                       true,  0          },
                {{.op = _IO_OP_MAX, .length = BLOCK},                                    false, -EOPNOTSUPP},
                {{.op = (enum io_op)4711, .length = BLOCK},                              false, -EOPNOTSUPP},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake fake = {.full = true};

                if (!CHECK_INT(perform(&full, &fake, cases[i].read_only, cases[i].io), cases[i].result))
                        fprintf(stderr, "  in case %zu\n", i);
                CHECK_INT(fake.calls + fake.flushes, cases[i].result >= 0 ? 1 : 0);
        }
}

/* FUA where the target has none is a flush behind the write, and its error is the write's. */
static void test_fua(void)
{
        struct target_io write = {.op = IO_WRITE, .length = BLOCK, .flags = IO_FUA};
        struct target_io zeroes = {.op = IO_WRITE_ZEROES, .length = BLOCK, .flags = IO_FUA};
        struct target_io read = {.op = IO_READ, .length = BLOCK, .flags = IO_FUA};
        struct fake fake = {.full = true};

        CHECK_INT(perform(&full, &fake, false, write), BLOCK);
        CHECK_INT(fake.flushes, 1);
        CHECK_INT(perform(&full, &fake, false, zeroes), 0);
        CHECK_INT(fake.flushes, 2);
        CHECK_INT(perform(&full, &fake, false, read), BLOCK);
        CHECK_INT(fake.flushes, 2);
        CHECK_INT(perform(&fua, &fake, false, write), BLOCK);
        CHECK_INT(fake.flushes, 2);
        CHECK_INT(perform(&cacheless, &fake, false, write), BLOCK);
        fake.flush_answer = -ENOSPC;
        CHECK_INT(perform(&full, &fake, false, write), -ENOSPC);
        begin_again();
        fake = (struct fake){.answer = -EDQUOT};
        CHECK_INT(perform(&full, &fake, false, write), -EDQUOT);
        CHECK_INT(fake.flushes, 0);
}

static void test_answers(void)
{
        static const struct {
                int answer, result;
        } cases[] = {
                {-EIO,       -EIO      },
                {-ENOSPC,    -ENOSPC   },
                {-EREMOTEIO, -EREMOTEIO},
                {BLOCK,      BLOCK     },
                {0,          -EIO      }, /* nothing was done */
                {512,        -EIO      }, /* not all was done */
                {2 * BLOCK,  -EIO      }, /* more than was asked for */
                {-5000,      -EIO      }, /* no errno */
                {INT32_MIN,  -EIO      },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake fake = {.answer = cases[i].answer};

                CHECK_INT(perform(&full, &fake, false, (struct target_io){.op = IO_READ, .length = BLOCK}),
                        cases[i].result);
        }
}

/* `latched`: what of the disk fails from then on. */
static void check_after(const struct target *target, struct target_io io, int answer, int flush_answer,
        int result, bool latched)
{
        struct target_io flush = {.op = IO_FLUSH}, read = {.op = IO_READ, .length = BLOCK};
        struct target_io write = {.op = IO_WRITE, .length = BLOCK}, durable = write;
        struct fake fake = {.answer = answer, .full = answer == 0, .flush_answer = flush_answer};

        durable.flags = IO_FUA;
        begin_again();
        CHECK_INT(perform(target, &fake, false, io), result);
        fake = (struct fake){.full = true}; /* the store is well again */
        CHECK_INT(perform(target, &fake, false, flush), latched ? -EIO : 0);
        CHECK_INT(perform(target, &fake, false, durable), latched ? -EIO : BLOCK);
        CHECK_INT(fake.calls, latched ? 0 : 1);
        CHECK_INT(perform(target, &fake, false, write), BLOCK);
        CHECK_INT(perform(target, &fake, false, read), BLOCK);
}

static void test_a_failed_flush_stays_failed(void)
{
        static const struct target_io flush = {.op = IO_FLUSH}, write = {.op = IO_WRITE, .length = BLOCK},
                                      durable = {.op = IO_WRITE, .length = BLOCK, .flags = IO_FUA},
                                      zeroes = {.op = IO_WRITE_ZEROES, .length = BLOCK, .flags = IO_FUA};
        static const int lossy[] = {-EIO, -ENOSPC, -EDQUOT, -EREMOTEIO, -ENOMEM};

        for (size_t i = 0; i < ARRAY_SIZE(lossy); i++) {
                check_after(&full, flush, 0, lossy[i], lossy[i], true);
                check_after(&full, durable, 0, lossy[i], lossy[i], true); /* the flush behind the write */
                check_after(&full, zeroes, 0, lossy[i], lossy[i], true);
                check_after(&full, write, lossy[i], 0, lossy[i], false); /* the opener got an error for it */
                check_after(&full, zeroes, lossy[i], 0, lossy[i], false);
        }
        check_after(&full, flush, 0, -EINTR, -EINTR, false);
        check_after(&full, flush, 0, -EAGAIN, -EAGAIN, false);
        check_after(&fua, durable, -EIO, 0, -EIO, true);
        check_after(&fua, durable, -EREMOTEIO, 0, -EREMOTEIO, true);
        check_after(&fua, durable, -ENOSPC, 0, -ENOSPC, false); /* it was not written at all */
        check_after(&fua, durable, -EDQUOT, 0, -EDQUOT, false);
        check_after(&fua, durable, -EROFS, 0, -EROFS, false);
}

/* A request that is refused before it is tried says nothing of the store. */
static void test_a_refused_flush_is_none(void)
{
        static const struct target_io beyond = {
                .op = IO_WRITE, .offset = SIZE, .length = BLOCK, .flags = IO_FUA};

        check_after(&full, beyond, 0, 0, -EIO, false);
        check_after(&fua, beyond, 0, 0, -EIO, false);
}

int main(void)
{
        begin_again();
        test_checks();
        test_fua();
        test_answers();
        test_a_failed_flush_stays_failed();
        test_a_refused_flush_is_none();
        return check_report();
}
