/* SPDX-License-Identifier: MIT */
/* A plugin of QEMU: counts the instructions that the emulation runs while a file exists.
 *
 * usage: -plugin profile_plugin.so,folder=DIR
 *
 * While DIR/on exists, the plugin counts every block of instructions by (address space, address). When DIR/on
 * is removed, it writes DIR/counts with a line for each block: CR3, address, instructions, in hex, hex and
 * decimal.
 *
 * Debian has no header for plugins. So this file declares the parts that it uses of QEMU's API (version 4,
 * QEMU 9.2 and later) and of GLib, which QEMU has loaded. For one emulated CPU: the counters have no lock. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- QEMU ---- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_register;

typedef struct {
        uint8_t *data;
        unsigned len;
} GByteArray;
typedef struct {
        char *data;
        unsigned len;
} GArray;
typedef struct {
        struct qemu_plugin_register *handle;
        const char *name;
        const char *feature;
} qemu_plugin_reg_descriptor;

enum { QEMU_PLUGIN_CB_R_REGS = 1 };

extern GByteArray *g_byte_array_new(void);
extern GByteArray *g_byte_array_set_size(GByteArray *array, unsigned size);
extern GArray *qemu_plugin_get_registers(void);
extern int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *bytes);
extern void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*)(qemu_plugin_id_t, unsigned));
extern void qemu_plugin_register_vcpu_tb_trans_cb(
        qemu_plugin_id_t id, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(
        struct qemu_plugin_tb *tb, void (*)(unsigned, void *), int flags, void *userdata);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);

__attribute__((visibility("default"))) int qemu_plugin_version = 4;
__attribute__((visibility("default"))) int qemu_plugin_install(
        qemu_plugin_id_t id, const void *info, int argc, char **argv);

/* ---- counters ---- */

enum { SLOT_BITS = 22, SLOTS = 1 << SLOT_BITS, POLL_US = 5000, SETTLE_US = 1000, PATH_SIZE = 4096 };

struct slot {
        uint64_t address, space, instructions; /* free while instructions is 0 */
};

struct block {
        uint64_t address, instructions;
};

static struct {
        const char *folder;
        volatile bool on;
        struct slot *slots; /* a hash table; when it is full, it drops new entries */
        unsigned used;
        struct qemu_plugin_register *cr3;
        GByteArray *bytes;
} profile;

static uint64_t address_space(void)
{
        uint64_t space = 0;

        g_byte_array_set_size(profile.bytes, 0);
        if (profile.cr3 && qemu_plugin_read_register(profile.cr3, profile.bytes) > 0)
                memcpy(&space, profile.bytes->data,
                        profile.bytes->len < sizeof(space) ? profile.bytes->len : sizeof(space));
        return space;
}

static void count(const struct block *block, uint64_t space)
{
        uint64_t hash = block->address * UINT64_C(0x9E3779B97F4A7C15) ^ space * UINT64_C(0xC2B2AE3D27D4EB4F);

        for (uint64_t at = hash >> (64 - SLOT_BITS);; at = (at + 1) % SLOTS) {
                struct slot *slot = &profile.slots[at];

                if (slot->instructions == 0) {
                        if (profile.used == SLOTS / 2)
                                return;
                        profile.used++;
                        *slot = (struct slot){.address = block->address, .space = space};
                }
                if (slot->address == block->address && slot->space == space) {
                        slot->instructions += block->instructions;
                        return;
                }
        }
}

static void on_block(unsigned cpu, void *userdata)
{
        (void)cpu;
        if (profile.on)
                count(userdata, address_space());
}

/* The block lives as long as QEMU, which does not report when it drops a translation. */
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
        struct block *block = malloc(sizeof(*block));

        (void)id;
        if (!block)
                return;
        *block = (struct block){
                .address = qemu_plugin_tb_vaddr(tb), .instructions = qemu_plugin_tb_n_insns(tb)};
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_R_REGS, block);
}

static void on_cpu(qemu_plugin_id_t id, unsigned cpu)
{
        GArray *registers = qemu_plugin_get_registers();
        const qemu_plugin_reg_descriptor *every = (const void *)registers->data;

        (void)id;
        (void)cpu;
        profile.bytes = g_byte_array_new();
        for (unsigned i = 0; i < registers->len; i++)
                if (strcmp(every[i].name, "cr3") == 0)
                        profile.cr3 = every[i].handle;
}

/* ---- on and off ---- */

static void write_counts(void)
{
        char path[PATH_SIZE], done[PATH_SIZE];
        FILE *output;

        snprintf(path, sizeof(path), "%s/counts.new", profile.folder);
        snprintf(done, sizeof(done), "%s/counts", profile.folder);
        output = fopen(path, "w");
        if (!output) {
                perror(path);
                return;
        }
        for (unsigned i = 0; i < SLOTS; i++)
                if (profile.slots[i].instructions > 0)
                        fprintf(output, "%lx %lx %lu\n", profile.slots[i].space, profile.slots[i].address,
                                profile.slots[i].instructions);
        if (fclose(output) != 0 || rename(path, done) != 0)
                perror(done);
}

static void *watch(void *userdata)
{
        char path[PATH_SIZE];

        (void)userdata;
        snprintf(path, sizeof(path), "%s/on", profile.folder);
        for (;; usleep(POLL_US)) {
                bool wanted = access(path, F_OK) == 0;

                if (wanted == profile.on)
                        continue;
                if (wanted) {
                        memset(profile.slots, 0, SLOTS * sizeof(*profile.slots));
                        profile.used = 0;
                }
                profile.on = wanted;
                if (!wanted) {
                        usleep(SETTLE_US); /* a block may be counting */
                        write_counts();
                }
        }
        return NULL;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
        static const char option[] = "folder=";
        pthread_t thread;

        (void)info;
        if (argc != 1 || strncmp(argv[0], option, strlen(option)) != 0) {
                fputs("profile_plugin: folder=DIR is missing\n", stderr);
                return -1;
        }
        profile.folder = strdup(argv[0] + strlen(option));
        profile.slots = calloc(SLOTS, sizeof(*profile.slots));
        if (!profile.folder || !profile.slots || pthread_create(&thread, NULL, watch, NULL) != 0)
                return -1;
        pthread_detach(thread);
        qemu_plugin_register_vcpu_init_cb(id, on_cpu);
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        return 0;
}
