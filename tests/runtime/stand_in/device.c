/* A device's memory, stood in for by a file: what torch asks of the host for tensors is counted
 * here in blocks of 512 bytes, as a CUDA device counts them, and is no part of the heap.
 *
 * torch takes the memory of tensors, and nothing else, from posix_memalign with 64 bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGN 64
#define BLOCK 512UL
#define REGION (8UL << 30)
#define EXACT 32768 /* blocks, up to which a size has a list of its own; above, each power of two */
#define SEGMENT (2UL << 20)

static char *region;
static uint32_t *sizes;              /* in blocks, by the number of the first block */
static void *freed[EXACT + 64];
static size_t top, allocated, peak;
static int on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*host_memalign)(void **, size_t, size_t);
static void (*host_free)(void *);

static void __attribute__((constructor)) start(void) {
  host_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  host_free = dlsym(RTLD_NEXT, "free");
  FILE *file = tmpfile(); /* of a file: resident anonymous memory is the host's */
  if (!file || ftruncate(fileno(file), REGION)) return;
  int shared = MAP_SHARED | MAP_NORESERVE, ours = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *at = mmap(0, REGION, PROT_READ | PROT_WRITE, shared, fileno(file), 0);
  void *table = mmap(0, REGION / BLOCK * sizeof *sizes, PROT_READ | PROT_WRITE, ours, -1, 0);
  if (at != MAP_FAILED && table != MAP_FAILED) region = at, sizes = table;
}

void device_begin(void) { on = region != NULL; }
int device_owns(size_t at) { return region && at - (size_t)region < REGION; }
size_t device_allocated(void) { return allocated; }
size_t device_peak(void) { return peak; }
size_t device_reserved(void) { return (top + SEGMENT - 1) / SEGMENT * SEGMENT; }

static size_t list_of(size_t blocks) {
  return blocks < EXACT ? blocks : EXACT + 64 - __builtin_clzl(blocks);
}

static size_t blocks_for(size_t bytes) {
  size_t blocks = bytes ? (bytes + BLOCK - 1) / BLOCK : 1;
  return blocks < EXACT ? blocks : 1UL << (64 - __builtin_clzl(blocks - 1));
}

int posix_memalign(void **out, size_t align, size_t bytes) {
  if (!on || align != ALIGN) return host_memalign(out, align, bytes);
  size_t blocks = blocks_for(bytes), list = list_of(blocks);
  pthread_mutex_lock(&lock);
  char *at = freed[list];
  if (at) freed[list] = *(void **)at;
  else if (top + blocks * BLOCK <= REGION) at = region + top, top += blocks * BLOCK;
  if (at) {
    sizes[(at - region) / BLOCK] = blocks;
    allocated += blocks * BLOCK;
    if (allocated > peak) peak = allocated;
  }
  pthread_mutex_unlock(&lock);
  *out = at;
  return at ? 0 : ENOMEM;
}

void free(void *at) {
  if (!device_owns((size_t)at)) {
    if (host_free) host_free(at);
    return;
  }
  pthread_mutex_lock(&lock);
  size_t blocks = sizes[((char *)at - region) / BLOCK];
  allocated -= blocks * BLOCK;
  *(void **)at = freed[list_of(blocks)];
  freed[list_of(blocks)] = at;
  pthread_mutex_unlock(&lock);
}
