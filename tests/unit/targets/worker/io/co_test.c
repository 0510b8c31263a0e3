/* SPDX-License-Identifier: MIT */
/* Coroutines: order, depth, reuse, exhaustion, and what lies below a stack. */
#include "targets/worker/io/co.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 1000 };

static struct co_pool pool;

/* ---- the order of things ---- */

struct steps {
        struct co *co;
        const char *name;
        char *trace; /* of 16 bytes */
};

static void three_steps(void *argument)
{
        struct steps *steps = argument;

        steps->co = co_current(&pool);
        for (unsigned i = 0; i < 3; i++) {
                strcat(steps->trace, steps->name);
                if (i < 2)
                        co_suspend(steps->co);
        }
}

static void test_order(void)
{
        char trace[16] = "";
        struct steps a = {.name = "a", .trace = trace}, b = {.name = "b", .trace = trace};

        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, 2), 0);
        CHECK(!co_current(&pool));
        CHECK_INT(co_start(&pool, three_steps, &a), 0);
        CHECK(!co_current(&pool));
        CHECK_INT(co_start(&pool, three_steps, &b), 0);
        CHECK_INT(pool.busy, 2);
        co_resume(b.co);
        co_resume(b.co);
        CHECK_INT(pool.busy, 1);
        co_resume(a.co);
        co_resume(a.co);
        CHECK_STR(trace, "abbbaa");
        co_pool_destroy(&pool);
}

/* ---- coroutines that know themselves ---- */

struct task {
        struct co *co;
        unsigned steps, done;
        uint64_t sum;
        bool aligned;
};

static void count_steps(void *argument)
{
        struct task *task = argument;
        /* Values that the compiler would keep in registers over the switch. */
        uint64_t a = (uintptr_t)task, b = a * 3, c = a ^ b, d = a + 7, e = b - c, f = d * e;
        double g = (double)task->steps / 3;

        task->co = co_current(&pool);
        task->aligned = (uintptr_t)__builtin_frame_address(0) % 16 == 0;
        while (task->done < task->steps) {
                task->done++;
                co_suspend(task->co);
                task->sum += a + b + c + d + e + f + (uint64_t)g;
        }
        CHECK(a == (uintptr_t)task && b == a * 3 && c == (a ^ b) && d == a + 7 && e == b - c && f == d * e);
        CHECK(g == (double)task->steps / 3);
}

static void test_many(void)
{
        static struct task tasks[MANY];
        unsigned left = MANY;

        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, MANY), 0);
        for (unsigned i = 0; i < MANY; i++) {
                tasks[i] = (struct task){.steps = 1 + i % 7};
                CHECK_INT(co_start(&pool, count_steps, &tasks[i]), 0);
                CHECK(tasks[i].aligned);
        }
        CHECK_INT(pool.busy, MANY);
        CHECK_INT(co_start(&pool, count_steps, &tasks[0]), -EAGAIN);
        while (left > 0)
                for (unsigned i = 0; i < MANY; i++)
                        if (tasks[i].co) {
                                bool last = tasks[i].done == tasks[i].steps;

                                co_resume(tasks[i].co);
                                if (last) {
                                        tasks[i].co = NULL;
                                        left--;
                                }
                        }
        CHECK_INT(pool.busy, 0);
        co_pool_destroy(&pool);
}

/* ---- only as many stacks as were busy at one time ---- */

static void nothing(void *argument)
{
        (*(unsigned *)argument)++;
}

static void test_reuse(void)
{
        unsigned runs = 0;
        struct task two[2] = {{.steps = 1}, {.steps = 1}};
        struct co *last;

        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, 100), 0);
        for (unsigned i = 0; i < 50; i++)
                CHECK_INT(co_start(&pool, nothing, &runs), 0);
        CHECK_INT(runs, 50);
        CHECK_INT(pool.opened, 1);
        CHECK_INT(co_start(&pool, count_steps, &two[0]), 0);
        CHECK_INT(co_start(&pool, count_steps, &two[1]), 0);
        CHECK_INT(pool.opened, 2);
        last = two[1].co;
        co_resume(two[0].co);
        co_resume(two[1].co);
        CHECK_INT(pool.busy, 0);
        two[0] = (struct task){.steps = 1};
        CHECK_INT(co_start(&pool, count_steps, &two[0]), 0);
        CHECK(two[0].co == last); /* last in, first out: its lines are the warmest */
        co_resume(two[0].co);
        co_pool_destroy(&pool);
}

/* ---- suspending in the middle of nested calls ---- */

struct descent {
        struct co *co;
        unsigned depth;
};

static unsigned descend(struct descent *descent, unsigned level)
{
        unsigned below;

        co_suspend(descent->co);
        below = level < descent->depth ? descend(descent, level + 1) : 0;
        co_suspend(descent->co);
        return below + level;
}

static void descend_co(void *argument)
{
        struct descent *descent = argument;

        descent->co = co_current(&pool);
        CHECK_INT(descend(descent, 1), 100 * 101 / 2);
        descent->depth = 0;
}

static void test_nesting(void)
{
        struct descent descent = {.depth = 100};

        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, 1), 0);
        CHECK_INT(co_start(&pool, descend_co, &descent), 0);
        for (unsigned i = 0; i < 200; i++) {
                CHECK(descent.depth > 0);
                co_resume(descent.co);
        }
        CHECK_INT(descent.depth, 0);
        co_pool_destroy(&pool);
}

/* ---- the page below a stack ---- */

__attribute__((noinline)) static unsigned overflow(unsigned level)
{
        volatile char block[1024];

        block[level % sizeof(block)] = (char)level;
        return level > 1U << 20 ? 0 : overflow(level + 1) + (unsigned)block[level % sizeof(block)];
}

static void overflow_co(void *argument)
{
        *(unsigned *)argument = overflow(0);
}

/* Below a stack that was opened when the memory was locked already, as that of a worker is; and below one of many. */
static void test_guard(unsigned stacks, bool locked)
{
        struct rlimit no_core = {};
        unsigned result;
        int status = 0;
        pid_t child = fork();

        if (child == 0) {
                (void)setrlimit(RLIMIT_CORE, &no_core);
                CHECK(freopen("/dev/null", "w", stderr)); /* what a sanitizer has to say of it */
                CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, stacks), 0);
                if (locked) /* a user may lock little */
                        (void)mlockall(MCL_CURRENT | MCL_ONFAULT);
                (void)co_start(&pool, overflow_co, &result);
                _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
        if (WIFSIGNALED(status))
                CHECK_INT(WTERMSIG(status), SIGSEGV);
}

/* ---- a coroutine that is watched ---- */

struct watched {
        struct co *co;
        char *trace;
        struct task inner;
        const struct co_watcher *watcher;
        int result;
};

static void note(void *argument, bool resumed)
{
        strcat(argument, resumed ? ">" : "<");
        CHECK(co_current(&pool) != NULL);
}

static void watched_part(void *argument)
{
        struct watched *watched = argument;

        count_steps(&watched->inner); /* suspends by co_current(), which is the watched coroutine */
        CHECK(watched->inner.co == watched->co);
        strcat(watched->trace, "e");
}

static void watched_co(void *argument)
{
        struct watched *watched = argument;

        watched->co = co_current(&pool);
        co_suspend(watched->co); /* not seen, and neither is the last one */
        watched->result = co_watch(&pool, watched_part, watched, watched->watcher);
        co_suspend(watched->co);
}

/* Others suspend in between, and the stack is free again afterwards. */
static void test_watch(void)
{
        for (unsigned round = 0; round < 2; round++) {
                char traces[2][16] = {"", ""};
                struct co_watcher watchers[2] = {
                        {note, traces[0]},
                        {note, traces[1]}
                };
                struct watched both[2] = {
                        {.trace = traces[0], .watcher = &watchers[0], .inner.steps = 2, .result = 1},
                        {.trace = traces[1], .watcher = &watchers[1], .inner.steps = 3, .result = 1}
                };
                struct task other = {.steps = 5};

                if (round == 0)
                        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, 5), 0);
                CHECK_INT(co_start(&pool, watched_co, &both[0]), 0);
                CHECK_INT(co_start(&pool, watched_co, &both[1]), 0);
                CHECK_INT(co_start(&pool, count_steps, &other), 0);
                for (unsigned i = 0; i < 5; i++) {
                        if (i < 4)
                                co_resume(both[0].co);
                        co_resume(other.co);
                        co_resume(both[1].co);
                }
                CHECK_STR(traces[0], "<><>e");
                CHECK_STR(traces[1], "<><><>e");
                CHECK(both[0].result == 0 && both[1].result == 0);
                CHECK_INT(pool.busy, 0);
                CHECK_INT(pool.opened, 5);
        }
        co_pool_destroy(&pool);
}

static void test_watch_without_a_stack(void)
{
        char trace[16] = "";
        const struct co_watcher watcher = {note, trace};
        struct watched watched = {.trace = trace, .watcher = &watcher, .inner.steps = 2};

        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, 1), 0);
        CHECK_INT(co_start(&pool, watched_co, &watched), 0);
        co_resume(watched.co);
        CHECK_INT(watched.result, -EAGAIN);
        CHECK_STR(trace, "");
        co_resume(watched.co);
        CHECK_INT(pool.busy, 0);
        co_pool_destroy(&pool);
}

static void test_arguments(void)
{
        struct co_pool none = {};

        CHECK_INT(co_pool_init(&pool, 100, 1), -EINVAL);
        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE + 1, 1), -EINVAL);
        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, 0), -EINVAL);
        CHECK_INT(co_pool_init(&pool, CO_STACK_SIZE, CO_COUNT_MAX + 1), -EINVAL);
        co_pool_destroy(&none);
}

static void test_list(void)
{
        struct co a = {}, b = {}, c = {};
        struct co_list list = {}, more = {};

        CHECK(!co_list_take(&list));
        co_list_append(&list, &a);
        co_list_append(&more, &b);
        co_list_append(&more, &c);
        co_list_splice(&list, &more);
        CHECK(!more.first && !more.last);
        CHECK(co_list_take(&list) == &a);
        CHECK(co_list_take(&list) == &b);
        co_list_append(&list, &a);
        CHECK(co_list_take(&list) == &c);
        CHECK(co_list_take(&list) == &a);
        CHECK(!co_list_take(&list));
        co_list_splice(&list, &more);
        CHECK(!co_list_take(&list));
}

int main(void)
{
        test_arguments();
        test_list();
        test_order();
        test_many();
        test_reuse();
        test_nesting();
        test_watch();
        test_watch_without_a_stack();
        test_guard(2, false);
        test_guard(2, true);
        test_guard(MANY, false);
        test_guard(MANY, true);
        return check_report();
}
