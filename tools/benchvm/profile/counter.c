// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts how often each translated block of the guest's code is executed.
 * Each line that arrives in the FIFO names a file, into which the counts so far are written: a
 * line of "address instructions" for every block.
 *
 * -plugin FILE,fifo=PATH
 *
 * Debian packages no header of this interface; these are its declarations (QEMU's documentation,
 * "QEMU TCG Plugins", version 1 of the interface).
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE_ADD_U64 0
#define FIFO_ARGUMENT "fifo="
#define BUCKETS 65536

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
typedef void (*translated)(plugin_id id, struct qemu_plugin_tb *block);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation,
					      void *counter, uint64_t amount);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);

EXPORT int qemu_plugin_version = 1;

/* Blocks are never forgotten: the same one may be translated often. */
struct block {
	uint64_t address;
	uint64_t instructions;
	struct block *next;
};

static struct block *blocks[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *fifo;

static struct block *find(uint64_t address)
{
	struct block **bucket = &blocks[(address ^ address >> 16) % BUCKETS];
	struct block *block;

	for (block = *bucket; block; block = block->next)
		if (block->address == address)
			return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->address = address;
	block->next = *bucket;
	*bucket = block;
	return block;
}

static void count(plugin_id id, struct qemu_plugin_tb *block)
{
	struct block *counted;

	(void)id;
	pthread_mutex_lock(&lock);
	counted = find(qemu_plugin_tb_vaddr(block));
	pthread_mutex_unlock(&lock);
	qemu_plugin_register_vcpu_tb_exec_inline(block, INLINE_ADD_U64, &counted->instructions,
						 qemu_plugin_tb_n_insns(block));
}

static void write_counts(const char *path)
{
	FILE *file = fopen(path, "w");
	struct block *block;
	int i;

	if (!file) {
		perror(path);
		return;
	}
	pthread_mutex_lock(&lock);
	for (i = 0; i < BUCKETS; i++)
		for (block = blocks[i]; block; block = block->next)
			if (block->instructions)
				fprintf(file, "%" PRIx64 " %" PRIu64 "\n", block->address,
					block->instructions);
	pthread_mutex_unlock(&lock);
	/* Whoever waits for the file finds it complete. */
	fputs("end\n", file);
	fclose(file);
}

static void *serve(void *unused)
{
	FILE *requests = fopen(fifo, "r");
	char line[4096];

	(void)unused;
	while (requests && fgets(line, sizeof(line), requests)) {
		line[strcspn(line, "\n")] = 0;
		write_counts(line);
	}
	return NULL;
}

EXPORT int qemu_plugin_install(plugin_id id, const void *machine, int argc, char **argv)
{
	pthread_t thread;

	(void)machine;
	if (argc != 1 || strncmp(argv[0], FIFO_ARGUMENT, strlen(FIFO_ARGUMENT)) != 0) {
		fputs("counter: give it fifo=PATH\n", stderr);
		return -1;
	}
	fifo = strdup(argv[0] + strlen(FIFO_ARGUMENT));
	qemu_plugin_register_vcpu_tb_trans_cb(id, count);
	return pthread_create(&thread, NULL, serve, NULL);
}
