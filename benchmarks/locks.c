/* Threads that take one lock again and again, each thread on a processor of its own.

   locks LOCK N THINK HOLD SECONDS prints a table with one row. LOCK is mutex, spin (both of POSIX),
   ticket or mcs. A thread computes for THINK steps outside of the lock and for HOLD steps under it;
   both are means of exponential distributions, and a step is one multiplication and one addition. Under
   the lock a thread also adds one to a counter, which would lose steps if two threads were inside.

   locks line and locks wake print how long one line takes from one processor to another, and how
   long a thread takes to wake another one: both by two threads that pass a number to and fro.
*/
#define _GNU_SOURCE
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DRAWS 1024
#define MOST 64
#define LINE __attribute__((aligned(128)))

struct node { _Atomic(struct node *) next; atomic_int waits; } LINE;
struct thread { int id; long uses; unsigned seed; double calls; struct node node; } LINE;

static LINE pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static LINE pthread_spinlock_t spin;
static LINE struct { atomic_uint next, serving; } tickets;
static LINE _Atomic(struct node *) tail;
static LINE volatile long guarded;
static LINE atomic_int stop;
static LINE atomic_int passed;
static pthread_barrier_t ready;
static int N, think[DRAWS], hold[DRAWS];
static double seconds;

static void lock_mutex(struct thread *t) { (void)t; pthread_mutex_lock(&mutex); }
static void free_mutex(struct thread *t) { (void)t; pthread_mutex_unlock(&mutex); }
static void lock_spin(struct thread *t) { (void)t; pthread_spin_lock(&spin); }
static void free_spin(struct thread *t) { (void)t; pthread_spin_unlock(&spin); }

static void lock_ticket(struct thread *t) {
    (void)t;
    unsigned mine = atomic_fetch_add(&tickets.next, 1);
    while (atomic_load_explicit(&tickets.serving, memory_order_acquire) != mine) {}
}
static void free_ticket(struct thread *t) {
    (void)t;
    unsigned mine = atomic_load_explicit(&tickets.serving, memory_order_relaxed);
    atomic_store_explicit(&tickets.serving, mine + 1, memory_order_release);
}

static void lock_mcs(struct thread *t) {
    atomic_store(&t->node.next, NULL);
    struct node *before = atomic_exchange(&tail, &t->node);
    if (!before) return;
    atomic_store(&t->node.waits, 1);
    atomic_store(&before->next, &t->node);
    while (atomic_load_explicit(&t->node.waits, memory_order_acquire)) {}
}
static void free_mcs(struct thread *t) {
    struct node *mine = &t->node, *next = atomic_load(&mine->next);
    if (!next && atomic_compare_exchange_strong(&tail, &mine, NULL)) return;
    while (!(next = atomic_load(&t->node.next))) {}
    atomic_store_explicit(&next->waits, 0, memory_order_release);
}

static const struct kind {
    const char *name;
    void (*take)(struct thread *), (*give)(struct thread *);
} kinds[] = {
    {"mutex", lock_mutex, free_mutex},
    {"spin", lock_spin, free_spin},
    {"ticket", lock_ticket, free_ticket},
    {"mcs", lock_mcs, free_mcs},
}, *kind;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static unsigned compute(unsigned x, int steps) {
    for (int i = 0; i < steps; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static void stay(int id) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(id % (int)sysconf(_SC_NPROCESSORS_ONLN), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    /* Under `chrt -f 2` the thread that ends the run has to come before those that spin. */
    struct sched_param below = {1};
    if (sched_getscheduler(0) == SCHED_FIFO) sched_setscheduler(0, SCHED_FIFO, &below);
}

static void *work(void *argument) {
    struct thread *t = argument;
    unsigned x = t->seed, at = 2 * t->seed;
    stay(t->id);
    pthread_barrier_wait(&ready);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        x = compute(x, think[at++ % DRAWS]);
        kind->take(t);
        x = compute(x, hold[at++ * 7 % DRAWS]);
        guarded = guarded + 1;
        kind->give(t);
        t->uses++;
    }
    t->seed = x;
    return NULL;
}

/* Who may go on is in `passed`; the other spins on it, or sleeps. */
static void *pass(void *argument) {
    struct thread *t = argument;
    int sleeps = kind == NULL;
    stay(t->id);
    pthread_barrier_wait(&ready);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        if (atomic_load(&passed) == t->id) {
            atomic_store(&passed, 1 - t->id);
            if (sleeps) {
                double begin = now();
                syscall(SYS_futex, &passed, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
                t->calls += now() - begin;
            }
            t->uses++;
        } else if (sleeps) {
            struct timespec most = {0, 100000000};
            syscall(SYS_futex, &passed, FUTEX_WAIT_PRIVATE, 1 - t->id, &most, NULL, 0);
        }
    }
    return NULL;
}

static void draw(int *steps, double mean) {
    for (int i = 0; i < DRAWS; i++) steps[i] = (int)(0.5 - mean * log((i + 0.5) / DRAWS));
    for (int i = DRAWS - 1; i > 0; i--) {
        int j = rand() % (i + 1), other = steps[i];
        steps[i] = steps[j];
        steps[j] = other;
    }
}

static double run(void *(*what)(void *), struct thread *threads) {
    pthread_t ids[MOST];
    pthread_barrier_init(&ready, NULL, N + 1);
    for (int i = 0; i < N; i++) {
        threads[i].id = i;
        threads[i].seed = 1000 * i + 1;
        pthread_create(&ids[i], NULL, what, &threads[i]);
    }
    pthread_barrier_wait(&ready);
    double begin = now();
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))};
    nanosleep(&t, NULL);
    double took = now() - begin;
    atomic_store(&stop, 1);
    for (int i = 0; i < N; i++) pthread_join(ids[i], NULL);
    return took;
}

int main(int count, char **words) {
    static struct thread threads[MOST];
    int passing = count == 3 && (!strcmp(words[1], "line") || !strcmp(words[1], "wake"));
    for (const struct kind *k = kinds; count == 6 && k < kinds + 4; k++)
        if (!strcmp(k->name, words[1])) kind = k;
    N = passing ? 2 : count == 6 ? atoi(words[2]) : 0;
    seconds = atof(words[count - 1]);
    if (!(passing || kind) || N < 1 || N > MOST || !(seconds > 0)) {
        fprintf(stderr, "expected LOCK N THINK HOLD SECONDS, or line or wake and SECONDS\n");
        return 2;
    }
    if (passing) {
        if (!strcmp(words[1], "line")) kind = kinds;
        double took = run(pass, threads);
        long passes = threads[0].uses + threads[1].uses;
        printf("passes,seconds,calls\n%ld,%.9f,%.9f\n", passes, took,
               (threads[0].calls + threads[1].calls) / passes);
        return 0;
    }
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    draw(think, atof(words[3]));
    draw(hold, atof(words[4]));
    double took = run(work, threads);
    long uses = 0;
    for (int i = 0; i < N; i++) uses += threads[i].uses;
    printf("uses,seconds,guarded,first,last\n%ld,%.9f,%ld,%ld,%ld\n", uses, took, guarded,
           threads[0].uses, threads[N - 1].uses);
    return 0;
}
