/* SPDX-License-Identifier: MIT */
/* Faults of a backing store that lose acknowledged data, kept in the region of a device. */
#include "ublkd/proto/region_faults.h"
#include "ublkd/base/clock.h"

enum { NUMBER_SHIFT = 32, OP_SHIFT = 16, ERRNO_MASK = 0xffff };

static uint64_t word_of(uint32_t number, enum stats_op op, int error)
{
        return (uint64_t)(number ? number : 1) << NUMBER_SHIFT | (uint64_t)op << OP_SHIFT
               | ((unsigned)error & ERRNO_MASK);
}

/* The word alone makes the fault: a worker that dies after that store has lost its time and detail only. */
bool region_fault_latch(
        struct region_control *control, enum region_fault fault, enum stats_op op, int error, uint64_t detail)
{
        struct region_fault_state *state = &control->faults[fault];
        uint64_t none = 0, word;
        uint32_t number;

        if (region_fault_is_latched(control, fault))
                return false;
        number = __atomic_add_fetch(&state->count, 1, __ATOMIC_RELAXED);
        word = word_of(number, op, error);
        if (!__atomic_compare_exchange_n(
                    &state->word, &none, word, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return false;
        __atomic_store_n(&state->detail, detail, __ATOMIC_RELAXED);
        __atomic_store_n(&state->at, clock_usec(CLOCK_REALTIME), __ATOMIC_RELEASE);
        return true;
}

static struct fault_report report_of(const struct region_fault_state *state)
{
        unsigned op = (state->word >> OP_SHIFT) & 0xffff;

        return (struct fault_report){
                .number = (uint32_t)(state->word >> NUMBER_SHIFT),
                .accepted = state->accepted,
                .reported = state->reported,
                .op = op < _STATS_OP_MAX ? (enum stats_op)op : STATS_OTHER,
                .error = (int)(state->word & ERRNO_MASK),
                .at = state->at,
                .detail = state->detail,
        };
}

static int read_states(int fd, struct region_fault_state ret[_REGION_FAULT_MAX], uint32_t *ret_epoch)
{
        return device_region_read_control_of(fd, offsetof(struct region_control, faults), ret,
                _REGION_FAULT_MAX * sizeof(*ret), ret_epoch);
}

int region_faults_read(int fd, struct fault_report ret[_REGION_FAULT_MAX])
{
        uint32_t epoch;

        return region_faults_read_of(fd, ret, &epoch);
}

int region_faults_read_of(int fd, struct fault_report ret[_REGION_FAULT_MAX], uint32_t *ret_epoch)
{
        struct region_fault_state states[_REGION_FAULT_MAX];
        int r = read_states(fd, states, ret_epoch);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < _REGION_FAULT_MAX; i++)
                ret[i] = report_of(&states[i]);
        return 0;
}

static int write_field(int fd, enum region_fault fault, size_t offset, const void *value, size_t size)
{
        const size_t state = fault * sizeof(struct region_fault_state);

        return device_region_write_control(
                fd, offsetof(struct region_control, faults) + state + offset, value, size);
}

/* `word` last: it alone makes the fault, or ends it. A supervisor that dies before that has done neither. */
static int write_state(int fd, enum region_fault fault, const struct region_fault_state *state)
{
        const size_t rest = offsetof(struct region_fault_state, at);
        int r = write_field(fd, fault, rest, &state->at, sizeof(*state) - rest);

        return r < 0 ? r
                     : write_field(fd, fault, offsetof(struct region_fault_state, word), &state->word,
                               sizeof(state->word));
}

/* A worker that latches the fault meanwhile gives it the same number. */
int region_fault_copy(int fd, enum region_fault fault, const struct fault_report *report)
{
        struct region_fault_state states[_REGION_FAULT_MAX], *state = &states[fault];
        uint32_t epoch;
        int r = read_states(fd, states, &epoch);

        if (r < 0 || state->word != 0)
                return r;
        state->count = state->count == UINT32_MAX ? 1 : state->count + 1;
        state->word = word_of(state->count, report->op, report->error);
        state->at = report->at;
        state->detail = report->detail;
        return write_state(fd, fault, state);
}

int region_fault_accept(int fd, enum region_fault fault, uint32_t number)
{
        return write_field(fd, fault, offsetof(struct region_fault_state, accepted), &number, sizeof(number));
}

int region_fault_mark_reported(int fd, enum region_fault fault, uint32_t number)
{
        return write_field(fd, fault, offsetof(struct region_fault_state, reported), &number, sizeof(number));
}

/* The numbers go on behind the last one, so that a fault of before is not taken for one to come. */
int region_fault_clear(int fd, enum region_fault fault)
{
        struct region_fault_state states[_REGION_FAULT_MAX], *state = &states[fault];
        uint32_t epoch;
        int r = read_states(fd, states, &epoch);

        if (r < 0)
                return r;
        *state = (struct region_fault_state){.count = state->count, .reported = state->reported};
        return write_state(fd, fault, state);
}

int region_fault_restore(int fd, enum region_fault fault, const struct fault_report *report)
{
        const struct region_fault_state state = {
                .word = word_of(report->number, report->op, report->error),
                .at = report->at,
                .detail = report->detail,
                .count = report->number,
                .accepted = report->accepted,
                .reported = report->reported,
        };

        return write_state(fd, fault, &state);
}
