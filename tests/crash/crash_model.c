/* SPDX-License-Identifier: MIT */
/* What a disk may hold. */
#include "tests/crash/crash_model.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = CRASH_SECTOR / sizeof(uint64_t) };

/* Which versions count, and since when. */
struct view {
        enum { BY_ANSWER, BY_DURABILITY } settles;
        uint64_t settled_by; /* a version that settled later does not displace others */
        uint64_t begun_by;
};

int model_init(struct model *model, uint64_t seed, uint64_t sectors)
{
        *model = (struct model){.seed = crash_mix(seed), .sectors = sectors};
        model->filled = calloc(sectors, sizeof(*model->filled));
        model->sector = calloc(sectors, sizeof(*model->sector));
        return model->filled && model->sector ? 0 : -ENOMEM;
}

void model_clear(struct model *model)
{
        for (uint64_t i = 0; model->sector && i < model->sectors; i++)
                free(model->sector[i].versions);
        free(model->sector);
        free(model->filled);
        free(model->requests);
        *model = (struct model){};
}

/* ---- contents ---- */

/* The first word names version and sector, so that what is found can be named. */
static uint64_t word_of(const struct model *model, unsigned version, uint64_t sector, unsigned index)
{
        uint64_t name = (uint64_t)version << 32 | (sector + 1);

        return index == 0 ? name ^ model->seed : crash_mix(model->seed + name + ((uint64_t)index << 24));
}

static void fill_sector(const struct model *model, unsigned version, uint64_t sector, uint64_t *words)
{
        for (unsigned i = 0; i < WORDS; i++)
                words[i] = word_of(model, version, sector, i);
}

void model_contents(const struct model *model, unsigned version, uint64_t first, uint64_t count, char *data)
{
        uint64_t words[WORDS];

        for (uint64_t i = 0; i < count; i++) {
                fill_sector(model, version, first + i, words);
                memcpy(data + i * CRASH_SECTOR, words, CRASH_SECTOR);
        }
}

static bool is_zero(const uint64_t *words)
{
        uint64_t any = 0;

        for (unsigned i = 0; i < WORDS; i++)
                any |= words[i];
        return any == 0;
}

static void identify(const struct model *model, const char *data, struct model_finding *ret, bool *ret_own)
{
        uint64_t words[WORDS], expected[WORDS], name, sector;

        memcpy(words, data, CRASH_SECTOR);
        name = words[0] ^ model->seed;
        sector = (name & UINT32_MAX) - 1;
        ret->version = (unsigned)(name >> 32);
        *ret_own = sector == ret->sector;
        if (is_zero(words)) {
                ret->contents = MODEL_ZEROES;
                return;
        }
        ret->contents = MODEL_UNKNOWN;
        if (sector >= model->sectors || ret->version > model->count)
                return;
        fill_sector(model, ret->version, sector, expected);
        if (memcmp(words, expected, CRASH_SECTOR) == 0)
                ret->contents = MODEL_VERSION;
}

/* ---- requests ---- */

static bool changes(enum io_op op)
{
        return op == IO_WRITE || op == IO_DISCARD || op == IO_WRITE_ZEROES;
}

static int append_version(struct model_sector *sector, unsigned version)
{
        if (sector->count == sector->room) {
                unsigned room = sector->room ? 2 * sector->room : 8;
                unsigned *versions = realloc(sector->versions, room * sizeof(*versions));

                if (!versions)
                        return -ENOMEM;
                sector->versions = versions;
                sector->room = room;
        }
        sector->versions[sector->count++] = version;
        return 0;
}

unsigned model_begin(struct model *model, const struct model_request *request)
{
        if (model->count == model->room) {
                unsigned room = model->room ? 2 * model->room : 64;
                struct model_request *requests = realloc(model->requests, room * sizeof(*requests));

                if (!requests)
                        return 0;
                model->requests = requests;
                model->room = room;
        }
        model->requests[model->count] = *request;
        model->requests[model->count].done = model->requests[model->count].durable = RECORD_NEVER;
        model->count++;
        for (uint64_t i = 0; changes(request->op) && i < request->count; i++)
                if (append_version(&model->sector[request->first + i], model->count) < 0)
                        return 0;
        return model->count;
}

void model_end(struct model *model, unsigned version, int result, uint64_t moment)
{
        struct model_request *request = &model->requests[version - 1];

        request->result = result;
        request->done = moment;
}

/* Openers take what a disk without a cache answers as durable. FUA makes durable what the request itself wrote; a flush what was
 * answered before it was begun. */
static uint64_t durable_at(const struct model *model, const struct model_request *request)
{
        bool at_once = model->announces_no_cache || (request->flags & IO_FUA);
        uint64_t best = at_once ? request->done : RECORD_NEVER;

        for (unsigned i = 0; i < model->count; i++) {
                const struct model_request *flush = &model->requests[i];

                if (flush->op == IO_FLUSH && flush->result >= 0 && flush->begun >= request->done
                        && flush->done < best)
                        best = flush->done;
        }
        return best;
}

void model_settle(struct model *model)
{
        for (unsigned i = 0; i < model->count; i++)
                if (model->requests[i].done != RECORD_NEVER)
                        model->requests[i].durable = durable_at(model, &model->requests[i]);
}

/* ---- judging ---- */

static uint64_t settled_at(const struct model_request *request, const struct view *view)
{
        return view->settles == BY_ANSWER ? request->done : request->durable;
}

/* Return the version that was begun last of those that are settled; 0: none, what was there at first counts. */
static unsigned last_settled(
        const struct model *model, const struct model_sector *sector, const struct view *view)
{
        for (unsigned i = sector->count; i > 0; i--)
                if (settled_at(&model->requests[sector->versions[i - 1] - 1], view) <= view->settled_by)
                        return sector->versions[i - 1];
        return 0;
}

static bool is_admissible(
        const struct model *model, unsigned version, unsigned settled, const struct view *view)
{
        uint64_t begun = version > 0 ? model->requests[version - 1].begun : 0;
        uint64_t done = version > 0 ? model->requests[version - 1].done : 0;

        return begun <= view->begun_by && (settled == 0 || done >= model->requests[settled - 1].begun);
}

static bool is_written(const struct model *model, unsigned version)
{
        return model->requests[version - 1].op == IO_WRITE;
}

/* Whether some admissible version of the sector is zeroes. */
static bool accepts_zeroes(
        const struct model *model, uint64_t number, unsigned settled, const struct view *view)
{
        const struct model_sector *sector = &model->sector[number];

        for (unsigned i = 0; i < sector->count; i++)
                if (!is_written(model, sector->versions[i])
                        && is_admissible(model, sector->versions[i], settled, view))
                        return true;
        return !model->filled[number] && is_admissible(model, 0, settled, view);
}

/* Whether a discard that came after the version may have left its contents. */
static bool accepts_discarded(const struct model *model, uint64_t number, unsigned version, unsigned settled,
        const struct view *view)
{
        const struct model_sector *sector = &model->sector[number];

        for (unsigned i = 0; i < sector->count; i++)
                if (sector->versions[i] > version && model->requests[sector->versions[i] - 1].op == IO_DISCARD
                        && is_admissible(model, sector->versions[i], settled, view))
                        return true;
        return false;
}

static bool has_version(const struct model *model, uint64_t number, unsigned version)
{
        const struct model_sector *sector = &model->sector[number];

        if (version == 0)
                return model->filled[number];
        for (unsigned i = 0; i < sector->count; i++)
                if (sector->versions[i] == version)
                        return is_written(model, version);
        return false;
}

static bool accepts_sector(const struct model *model, uint64_t number, const char *data,
        const struct view *view, struct model_finding *ret)
{
        bool own;

        *ret = (struct model_finding){.sector = number};
        identify(model, data, ret, &own);
        ret->settled = last_settled(model, &model->sector[number], view);
        if (ret->contents == MODEL_ZEROES)
                return accepts_zeroes(model, number, ret->settled, view);
        if (ret->contents == MODEL_UNKNOWN || !own || !has_version(model, number, ret->version))
                return false;
        return is_admissible(model, ret->version, ret->settled, view)
               || (model->discard_is_undefined
                       && accepts_discarded(model, number, ret->version, ret->settled, view));
}

static bool accepts(const struct model *model, uint64_t first, uint64_t count, const char *data,
        const struct view *view, struct model_finding *ret)
{
        for (uint64_t i = 0; i < count; i++)
                if (!accepts_sector(model, first + i, data + i * CRASH_SECTOR, view, ret))
                        return false;
        return true;
}

bool model_accepts_read(const struct model *model, uint64_t first, uint64_t count, const char *data,
        uint64_t begun, uint64_t done, struct model_finding *ret)
{
        return accepts(model, first, count, data,
                &(struct view){.settles = BY_ANSWER, .settled_by = begun, .begun_by = done}, ret);
}

bool model_accepts_disk(const struct model *model, const char *data, enum crash_kind kind, uint64_t moment,
        struct model_finding *ret)
{
        const struct view view = {
                .settles = kind == CRASH_WORKER_DEATH ? BY_ANSWER : BY_DURABILITY,
                .settled_by = moment,
                .begun_by = moment,
        };

        return accepts(model, 0, model->sectors, data, &view, ret);
}
