/* SPDX-License-Identifier: MIT */
/* Runs of the crash judge: a disk that is served and noted, and the workers after its crashes. */
#include "tests/crash/crash.h"
#include "tests/target/scratch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { REQUESTS = 40, DEPTH = 8, SPEC_SIZE = 4096, PATH_SIZE = 512 };

/* The files of a disk. */
struct place {
        struct scratch scratch;
        char paths[RECORD_FILES_MAX][PATH_SIZE];
        int fds[RECORD_FILES_MAX];
        char spec[SPEC_SIZE];
};

struct run {
        const struct crash_case *crash;
        struct crash_effort effort; /* without zeroes */
        struct crash_result *result;
        uint64_t seed;
        struct place before, after; /* the disk that is noted; what a crash of it can have left */
        struct record record;
        struct model model;
        struct crash_image image; /* in the files of `after` */
        struct crash_kept kept;   /* and in the region of the worker after the crash */
        char *disk;               /* as the worker after the last crash has read it */
        bool looked;              /* there was such a worker */
};

static const char *const verdict_names[] = {
        [CRASH_PASSED] = "passed",
        [CRASH_LOST] = "lost",
        [CRASH_LIED] = "lied",
        [CRASH_UNOPENED] = "unopened",
        [CRASH_BLIND] = "blind",
};
_Static_assert(ARRAY_SIZE(verdict_names) == _CRASH_VERDICT_MAX, "each has a name");

static const char *const kind_names[] = {
        [CRASH_WORKER_DEATH] = "death of the worker",
        [CRASH_POWER_CUT] = "power cut",
};
_Static_assert(ARRAY_SIZE(kind_names) == _CRASH_KIND_MAX, "each has a name");

const char *crash_verdict_name(enum crash_verdict verdict)
{
        return verdict_names[verdict];
}

uint64_t crash_draw_seed(void)
{
        const char *text = getenv("UBLKD_TEST_SEED");
        uint64_t seed = 0;

        if (text && *text)
                return strtoull(text, NULL, 0);
        (void)!getrandom(&seed, 6, 0);
        return seed;
}

/* ---- findings ---- */

static bool conclude(struct run *run, enum crash_verdict verdict)
{
        run->result->verdict = verdict;
        if (run->effort.quiet)
                return false;
        fprintf(stderr, "%s: %s; again with UBLKD_TEST_SEED=%" PRIu64 "\n", run->crash->name,
                crash_verdict_name(verdict), run->seed);
        return true;
}

static void print_version(const struct run *run, const char *what, unsigned version)
{
        static const char *const names[_IO_OP_MAX] = {[IO_READ] = "read",
                [IO_WRITE] = "write",
                [IO_FLUSH] = "flush",
                [IO_DISCARD] = "discard",
                [IO_WRITE_ZEROES] = "write-zeroes"};
        const struct model_request *request;

        if (version == 0) {
                fprintf(stderr, "  %s: what was there at first\n", what);
                return;
        }
        request = &run->model.requests[version - 1];
        fprintf(stderr, "  %s: %s %u%s of sectors %" PRIu64 " to %" PRIu64 ", begun at %" PRIu64, what,
                names[request->op], version, request->flags & IO_FUA ? " with FUA" : "", request->first,
                request->first + request->count - 1, request->begun);
        if (request->done != RECORD_NEVER)
                fprintf(stderr, ", answered at %" PRIu64, request->done);
        if (request->durable != RECORD_NEVER)
                fprintf(stderr, ", durable at %" PRIu64, request->durable);
        fputc('\n', stderr);
}

static void print_sector(const struct run *run, const struct model_finding *finding)
{
        static const char *const contents[] = {[MODEL_VERSION] = "another version",
                [MODEL_ZEROES] = "zeroes",
                [MODEL_UNKNOWN] = "bytes that nothing has written"};

        fprintf(stderr, "  sector %" PRIu64 " of the disk has %s\n", finding->sector,
                contents[finding->contents]);
        if (finding->contents == MODEL_VERSION)
                print_version(run, "it has", finding->version);
        print_version(run, "there should be this, or a later one", finding->settled);
}

static void print_operations(const struct run *run, uint64_t moment)
{
        static const char *const names[] = {[RECORD_WRITE] = "write",
                [RECORD_ZERO] = "zero",
                [RECORD_FLUSH] = "flush",
                [RECORD_RESIZE] = "resize"};

        for (size_t i = 0; i < run->record.count; i++) {
                const struct record_op *op = &run->record.ops[i];

                if (op->begun > moment)
                        break;
                fprintf(stderr, "  file %u: %s%s %" PRIu64 "+%" PRIu64 ", begun at %" PRIu64, op->file,
                        names[op->kind], op->durable ? " (durable)" : "", op->offset, op->length, op->begun);
                if (op->done <= moment)
                        fprintf(stderr, ", done at %" PRIu64, op->done);
                fputc('\n', stderr);
        }
}

static void find_loss(
        struct run *run, const struct model_finding *finding, enum crash_kind kind, uint64_t moment)
{
        run->result->kind = kind;
        if (!conclude(run, CRASH_LOST))
                return;
        fprintf(stderr, "  after a %s at moment %" PRIu64 "\n", kind_names[kind], moment);
        print_sector(run, finding);
        print_operations(run, moment);
}

static void find_unopened(
        struct run *run, const struct problem_list *problems, int error, enum crash_kind kind)
{
        run->result->kind = kind;
        if (!conclude(run, CRASH_UNOPENED))
                return;
        fprintf(stderr, "  after a %s: %s\n", kind_names[kind], strerror(-error));
        for (size_t i = 0; i < problems->count; i++)
                fprintf(stderr, "  %s: %s\n", problems->items[i].pointer, problems->items[i].detail);
}

static void find_blind(struct run *run, const char *why)
{
        if (conclude(run, CRASH_BLIND))
                fprintf(stderr, "  nothing can be shown: %s\n", why);
}

/* ---- places ---- */

/* Write the spec with paths in place of @0, @1, … */
static void expand(struct place *place, const char *spec)
{
        size_t length = 0;

        for (; *spec && length + PATH_SIZE < SPEC_SIZE; spec++)
                if (spec[0] == '@' && spec[1] >= '0' && spec[1] < '0' + RECORD_FILES_MAX) {
                        const char *path = place->paths[spec[1] - '0'];

                        length += (size_t)snprintf(place->spec + length, SPEC_SIZE - length, "%s", path);
                        spec++;
                } else {
                        place->spec[length++] = *spec;
                }
        place->spec[length] = '\0';
}

static const char *memory_directory(void)
{
        const char *temporary = getenv("TMPDIR");

        if (access("/dev/shm", W_OK) == 0)
                return "/dev/shm";
        return temporary ? temporary : "/tmp";
}

static int place_open(
        struct place *place, const struct crash_case *crash, const char *parent, const char *spec)
{
        struct scratch scratch;
        int r = scratch_make(&scratch, parent);

        if (r < 0)
                return r;
        place->scratch = scratch;
        for (unsigned i = 0; i < crash->files; i++) {
                snprintf(place->paths[i], PATH_SIZE, "%s/%u", scratch.path, i);
                place->fds[i] = open(place->paths[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (place->fds[i] < 0 || ftruncate(place->fds[i], (off_t)crash->file_size) < 0)
                        return -errno;
        }
        expand(place, spec);
        return 0;
}

static void place_close(struct place *place)
{
        for (unsigned i = 0; i < RECORD_FILES_MAX; i++)
                place->fds[i] = close_fd(place->fds[i]);
        if (place->scratch.path[0])
                scratch_remove(&place->scratch);
}

/* ---- the disk before the crash ---- */

static void take_fingerprint(struct run *run)
{
        uint64_t mixed = run->result->fingerprint, last = 0;

        for (size_t i = 0; i < run->record.ordered; i++) {
                const struct record_op *op = &run->record.ops[run->record.order[i]];

                mixed = crash_mix(
                        mixed + op->offset + ((uint64_t)op->kind << 60) + ((uint64_t)op->file << 56));
                run->result->overtaken += op->begun < last;
                last = op->begun > last ? op->begun : last;
                mixed = crash_mix(mixed + op->length + (op->begun << 32) + (op->done << 48));
        }
        run->result->fingerprint = mixed;
}

static void check_record(struct run *run)
{
        const struct crash_fate none = {};

        if (run->kept.out_of_memory)
                record_fault(&run->record, "out of memory");
        if (run->record.fault[0]) {
                find_blind(run, run->record.fault);
                return;
        }
        (void)image_make(&run->image, &run->record, CRASH_WORKER_DEATH, run->record.now, &none);
        if (!image_is(&run->image, run->before.fds))
                find_blind(run,
                        "the files have changed without the record, as by other system calls than it sees");
}

static void check_answers(struct run *run, const struct client *client)
{
        char text[128];

        if (client->error < 0) {
                snprintf(text, sizeof(text), "a request has failed: %s", strerror(-client->error));
                find_blind(run, text);
        } else if (client->lied && conclude(run, CRASH_LIED)) {
                fprintf(stderr, "  in the answer to a read\n");
                print_sector(run, &client->finding);
                print_operations(run, run->record.now);
        }
}

/* Serve the disk with the record below it. */
static void serve(struct run *run, struct target_host *host)
{
        struct client client = {.host = host, .record = &run->record, .model = &run->model};
        const struct client_habits habits = {.requests = run->effort.requests,
                .depth = run->effort.depth,
                .seed = run->seed,
                .entry = run->crash->entry};
        struct io_loop *loops[RECORD_LOOPS_MAX];
        uint64_t capacity = run->image.capacity;

        for (unsigned i = 0; i < host->queues; i++) {
                loops[i] = target_host_loop(host, i);
                /* What began with the loop, such as the wait for an action, is about no file of the case. The filling has
                 * not submitted it where all went into a cache. */
                (void)io_loop_submit(loops[i], false);
        }
        record_begin(
                &run->record, loops, host->queues, run->before.fds, run->crash->files, capacity, run->seed);
        kept_begin(&run->kept);
        run->record.kept = &run->kept;
        client_run(&client, &habits);
        record_end(&run->record);
        run->result->plain += client.plain;
        model_settle(&run->model);
        check_record(run);
        if (run->result->verdict == CRASH_PASSED)
                check_answers(run, &client);
        take_fingerprint(run);
}

static int begin_disk(struct run *run, struct target_host *host)
{
        uint64_t size = host->disk.params.size;
        int r = model_init(&run->model, run->seed, size / CRASH_SECTOR);

        run->model.discard_is_undefined = run->crash->discard_is_undefined;
        run->model.announces_no_cache = !host->disk.params.volatile_cache;
        run->disk = malloc(size);
        if (r < 0 || !run->disk)
                return -ENOMEM;
        r = client_fill(host, &run->model, run->seed);
        return r < 0 ? r : image_take_base(&run->image, run->before.fds);
}

static int print_unusable(
        const struct run *run, const char *what, int error, const struct problem_list *problems)
{
        fprintf(stderr, "%s: %s: %s\n", run->crash->name, what, strerror(-error));
        for (size_t i = 0; i < problems->count; i++)
                fprintf(stderr, "  %s: %s\n", problems->items[i].pointer, problems->items[i].detail);
        return error;
}

static unsigned queues_of(const struct crash_case *crash)
{
        return crash->queues ? crash->queues : 1;
}

static int open_host(const struct run *run, struct target_host *host, const char *spec, int region,
        struct problem_list *problems)
{
        _Static_assert((int)HOST_QUEUES_MAX <= (int)RECORD_LOOPS_MAX, "the record sees all queues");
        return region < 0 ? target_host_open_queues(host, spec, queues_of(run->crash), problems)
                          : target_host_open_kept(host, spec, region, problems);
}

/* What the case asks for would not be judged. */
static int check_host(const struct crash_case *crash, const struct target_host *host)
{
        if (crash->queues > host->queues
                || (crash->entry != CLIENT_BY_CALLBACKS && !host_plain_is_there(host)))
                return -EOPNOTSUPP;
        return 0;
}

static int record_disk(struct run *run)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        int r = open_host(run, &host, run->before.spec, run->kept.before, &problems);
        const char *what = "the disk cannot be opened";

        if (r >= 0) {
                what = "the disk has not the queues or the plain way that the case asks for";
                r = check_host(run->crash, &host);
        }
        if (r >= 0) {
                what = "the disk cannot be filled";
                r = begin_disk(run, &host);
        }
        if (r < 0)
                (void)print_unusable(run, what, r, &problems);
        else
                serve(run, &host);
        target_host_close(&host);
        return r;
}

/* ---- the workers after it ---- */

/* Have the next worker open what is in the files, and read the disk. Return 0; 1: it cannot, which is a finding;
 * -errno. */
static int look(struct run *run, enum crash_kind kind)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        int r;

        kept_give(&run->kept);
        r = open_host(run, &host, run->after.spec, run->kept.after, &problems);

        if (r >= 0 && host.disk.params.size / CRASH_SECTOR != run->model.sectors)
                r = -ERANGE;
        if (r >= 0)
                r = client_read_disk(&host, run->disk);
        target_host_close(&host);
        run->result->images++;
        run->looked = true;
        if (r < 0) {
                find_unopened(run, &problems, r, kind);
                return 1;
        }
        return image_look(&run->image);
}

/* Return 0: go on; 1: there is a finding; -errno. What is in the files and in kept memory was made. */
static int judge_image(struct run *run, enum crash_kind kind, uint64_t moment)
{
        struct model_finding finding;
        int r = image_write(&run->image);

        if (r > 0 || (r == 0 && (!run->looked || kept_differs(&run->kept))))
                r = look(run, kind);
        if (r != 0)
                return r;
        run->result->judged++;
        if (model_accepts_disk(&run->model, run->disk, kind, moment, &finding))
                return 0;
        find_loss(run, &finding, kind, moment);
        return 1;
}

/* A worker that dies after a moment has stored nothing more into kept memory, or all that it has stored before the next
 * moment. Results of judge_image(). */
static int judge_moment(struct run *run, enum crash_kind kind, uint64_t moment, const struct crash_fate *fate)
{
        bool undecided = image_make(&run->image, &run->record, kind, moment, fate) > 0;
        int r;

        if (!undecided && fate->percent > 0)
                return 0; /* as the one of what is certain */
        if (kind == CRASH_POWER_CUT) {
                kept_make_fresh(&run->kept);
                return judge_image(run, kind, moment);
        }
        kept_make(&run->kept, moment);
        r = judge_image(run, kind, moment);
        if (r != 0 || run->kept.before < 0 || moment == run->record.now)
                return r;
        kept_make(&run->kept, moment + 1);
        return kept_differs(&run->kept) ? judge_image(run, kind, moment) : 0;
}

/* All moments of one kind: what is certain, then what chance adds. */
static int judge_kind(struct run *run, enum crash_kind kind)
{
        static const uint64_t grains[] = {0, CRASH_SECTOR, 4096};
        static const unsigned percents[] = {25, 50, 75, 90, 100};
        struct crash_random random = {crash_mix(run->seed + kind)};
        int r = 0;

        for (unsigned draw = 0; r == 0 && draw <= run->effort.draws; draw++)
                for (uint64_t moment = 0; r == 0 && moment <= run->record.now; moment++) {
                        struct crash_fate fate = {.seed = crash_random_below(&random, UINT64_MAX)};

                        if (draw > 0) {
                                fate.percent = percents[crash_random_below(&random, ARRAY_SIZE(percents))];
                                fate.grain = grains[crash_random_below(&random, ARRAY_SIZE(grains))];
                        }
                        r = judge_moment(run, kind, moment, &fate);
                }
        return r;
}

static int judge_disk(struct run *run)
{
        int r = image_look(&run->image);

        for (enum crash_kind kind = 0; r == 0 && kind < _CRASH_KIND_MAX; kind++)
                if (kind == CRASH_WORKER_DEATH || !run->crash->deaths_only)
                        r = judge_kind(run, kind);
        return r < 0 ? r : 0;
}

/* ---- runs ---- */

static int prepare(struct run *run)
{
        const struct crash_case *crash = run->crash;
        char *paths[RECORD_FILES_MAX];
        int copies[RECORD_FILES_MAX], r;

        r = place_open(&run->before, crash, crash->parent ? crash->parent : memory_directory(), crash->spec);
        if (r < 0)
                return r;
        r = kept_init(&run->kept, run->before.spec, queues_of(crash));
        if (r < 0)
                return r;
        r = place_open(
                &run->after, crash, memory_directory(), crash->spec_after ? crash->spec_after : crash->spec);
        for (unsigned i = 0; r >= 0 && i < crash->files; i++) {
                paths[i] = run->before.paths[i];
                copies[i] = TAKE_FD(run->after.fds[i]);
        }
        if (r < 0)
                return r;
        r = image_init(
                &run->image, copies, crash->files, crash->capacity ? crash->capacity : crash->file_size);
        return r >= 0 && crash->prepare ? crash->prepare(paths) : r;
}

static int run_once(struct run *run)
{
        int r = prepare(run);

        if (r < 0)
                fprintf(stderr, "%s: the files cannot be made: %s\n", run->crash->name, strerror(-r));
        else
                r = record_disk(run);
        if (r >= 0 && run->result->verdict == CRASH_PASSED)
                r = judge_disk(run);
        record_clear(&run->record);
        model_clear(&run->model);
        image_clear(&run->image);
        kept_clear(&run->kept);
        place_close(&run->before);
        place_close(&run->after);
        free(run->disk);
        return r;
}

int crash_judge(const struct crash_case *crash, const struct crash_effort *effort, struct crash_result *ret)
{
        struct crash_effort wanted = *effort;
        int r = 0;

        assert(crash->files <= RECORD_FILES_MAX && effort->depth <= HOST_DEPTH);
        wanted.seeds = wanted.seeds ? wanted.seeds : 1;
        wanted.requests = wanted.requests ? wanted.requests : REQUESTS;
        wanted.depth = wanted.depth ? wanted.depth : DEPTH;
        wanted.draws = wanted.draws ? wanted.draws : 1;
        *ret = (struct crash_result){};
        for (uint64_t i = 0; r >= 0 && ret->verdict == CRASH_PASSED && i < wanted.seeds; i++) {
                struct run run = {.crash = crash, .effort = wanted, .result = ret, .seed = wanted.seed + i};

                ret->seed = run.seed;
                ret->runs++;
                for (unsigned k = 0; k < RECORD_FILES_MAX; k++)
                        run.before.fds[k] = run.after.fds[k] = -1;
                run.kept.before = run.kept.after = -1;
                r = run_once(&run);
        }
        return r < 0 ? r : 0;
}
