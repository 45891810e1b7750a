// Preloaded into the processes of tests: sets their time of day and slows their disk while they run. system_faults.py compiles it.
// STRATA_SYSTEM_FAULTS names the file with the settings. System calls are not changed, so other processes are not affected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct faults {
  _Atomic int64_t shift;      // ns that the time of day is ahead
  _Atomic int64_t slow;       // ms that an fsync takes
  _Atomic int64_t slow_left;  // calls of fsync that will be slow
  _Atomic int64_t slowed;     // those that were
} none, *faults = &none;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
enum { MS = 1000000, SECOND = 1000000000, SLICE = 50 * MS };

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("STRATA_SYSTEM_FAULTS");
  const int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
  void* at = file < 0 ? MAP_FAILED : mmap(0, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) faults = at;
  if (file >= 0) close(file);
}

static int64_t number_of(struct timespec t) { return t.tv_sec * (int64_t)SECOND + t.tv_nsec; }
static struct timespec time_of(int64_t n) { return (struct timespec){n / SECOND, n % SECOND}; }

static int64_t machine_time(void) {
  struct timespec t;
  REAL(clock_gettime)(CLOCK_REALTIME, &t);
  return number_of(t);
}

int clock_gettime(clockid_t clock, struct timespec* t) {
  const int result = REAL(clock_gettime)(clock, t);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *t = time_of(number_of(*t) + faults->shift);
  return result;
}

int gettimeofday(struct timeval* restrict t, void* restrict zone) {
  const int64_t now = machine_time() + faults->shift;
  (void)zone;
  *t = (struct timeval){now / SECOND, now % SECOND / 1000};
  return 0;
}

time_t time(time_t* t) {
  const time_t now = (machine_time() + faults->shift) / SECOND;
  if (t) *t = now;
  return now;
}

// Who waits until a time of day waits for longer or less when it is set. So no call of the kernel lasts longer than a slice.
// Times of the steady clock have few seconds.
static int is_time_of_day(const struct timespec* t) { return t->tv_sec > 900000000; }
static struct timespec end_of_slice(const struct timespec* until) {
  const int64_t end = number_of(*until) - faults->shift, slice = machine_time() + SLICE;
  return time_of(end < slice ? end < 0 ? 0 : end : slice);
}
static int has_come(const struct timespec* until) { return machine_time() + faults->shift >= number_of(*until); }

/// A wait that ends too early without a reason is allowed.
int pthread_cond_timedwait(pthread_cond_t* restrict c, pthread_mutex_t* restrict m, const struct timespec* restrict until) {
  static __typeof__(&pthread_cond_timedwait) real;
  if (!real) real = (__typeof__(real))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!real) real = REAL(pthread_cond_timedwait);
  if (!is_time_of_day(until)) return real(c, m, until);
  const struct timespec end = end_of_slice(until);
  const int result = real(c, m, &end);
  return result == ETIMEDOUT && !has_come(until) ? 0 : result;
}

int sem_timedwait(sem_t* restrict s, const struct timespec* restrict until) {
  for (;;) {
    const struct timespec end = end_of_slice(until);
    const int result = REAL(sem_timedwait)(s, &end);
    if (result == 0 || errno != ETIMEDOUT || has_come(until)) return result;
  }
}

long syscall(long number, ...) {
  static __typeof__(&syscall) real;
  if (!real) real = REAL(syscall);
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const struct timespec* until = (const struct timespec*)a[3];
  if (number != SYS_futex || !(a[1] & FUTEX_CLOCK_REALTIME) || !until) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const struct timespec end = end_of_slice(until);
  const long result = real(number, a[0], a[1], a[2], &end, a[4], a[5]);
  if (result < 0 && errno == ETIMEDOUT && !has_come(until)) errno = EINTR;
  return result;
}

static void be_slow(void) {
  if (faults->slow_left <= 0 || faults->slow_left-- <= 0) return;
  const struct timespec t = time_of(faults->slow * MS);
  ++faults->slowed;
  nanosleep(&t, 0);
}

int fsync(int file) {
  be_slow();
  return REAL(fsync)(file);
}

int fdatasync(int file) {
  be_slow();
  return REAL(fdatasync)(file);
}
