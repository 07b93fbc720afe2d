/* Move the clock of a process and its children by $READERSHIP_TEST_CLOCK_DAYS days: LD_PRELOAD=moved_clock.so COMMAND

   The times of files move, too: the kernel has the real ones. Monotonic clocks, and therefore all pauses, are real. The
   library libfaketime does not work here: with it, pauses of Python 3.11 fail or never end. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static time_t moved_s(void) {
    static time_t seconds = -1;
    if (seconds == -1) {
        const char *days = getenv("READERSHIP_TEST_CLOCK_DAYS");
        seconds = days ? (time_t)(atof(days) * 86400) : 0;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += moved_s();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    NEXT(gettimeofday);
    int status = next(now, zone);
    if (status == 0) now->tv_sec += moved_s();
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) { return clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0; }

/* Waits until a time of the clock. */

static struct timespec real(const struct timespec *end) {
    struct timespec moved = *end;
    if (moved.tv_sec > 1000000000) moved.tv_sec -= moved_s(); /* else it is a time of the monotonic clock */
    return moved;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end) {
    NEXT(sem_timedwait);
    struct timespec moved = real(end);
    return next(semaphore, &moved);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
    NEXT(pthread_mutex_timedlock);
    struct timespec moved = real(end);
    return next(mutex, &moved);
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict end) {
    int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
        dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    struct timespec moved = real(end);
    return next(cond, mutex, &moved);
}

/* Times of files. */

#define MOVE(file)                                                                                                      \
    if (status == 0) file->st_atim.tv_sec += moved_s(), file->st_mtim.tv_sec += moved_s(), file->st_ctim.tv_sec += moved_s(); \
    return status

#define STAT(name, type)                                                                                                \
    int name(const char *restrict path, struct type *restrict file) {                                                   \
        NEXT(name);                                                                                                     \
        int status = next(path, file);                                                                                  \
        MOVE(file);                                                                                                     \
    }

STAT(stat, stat)
STAT(lstat, stat)
STAT(stat64, stat64)
STAT(lstat64, stat64)

#define FSTAT(name, type)                                                                                               \
    int name(int descriptor, struct type *file) {                                                                       \
        NEXT(name);                                                                                                     \
        int status = next(descriptor, file);                                                                            \
        MOVE(file);                                                                                                     \
    }

FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATAT(name, type)                                                                                             \
    int name(int folder, const char *restrict path, struct type *restrict file, int flags) {                            \
        NEXT(name);                                                                                                     \
        int status = next(folder, path, file, flags);                                                                   \
        MOVE(file);                                                                                                     \
    }

FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict file) {
    NEXT(statx);
    int status = next(folder, path, flags, mask, file);
    if (status == 0) {
        file->stx_atime.tv_sec += moved_s(), file->stx_mtime.tv_sec += moved_s();
        file->stx_ctime.tv_sec += moved_s(), file->stx_btime.tv_sec += moved_s();
    }
    return status;
}

static const struct timespec *real_times(const struct timespec times[2], struct timespec moved[2]) {
    for (int each = 0; times && each < 2; each++) {
        moved[each] = times[each];
        if (moved[each].tv_nsec < 1000000000) moved[each].tv_sec -= moved_s(); /* else UTIME_NOW or UTIME_OMIT */
    }
    return times ? moved : NULL;
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    NEXT(utimensat);
    struct timespec moved[2];
    return next(folder, path, real_times(times, moved), flags);
}

int futimens(int descriptor, const struct timespec times[2]) {
    NEXT(futimens);
    struct timespec moved[2];
    return next(descriptor, real_times(times, moved));
}
