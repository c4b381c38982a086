/* A load generator: N clients think, compute, and then write under one of m locks.

   clients N PROCESSORS LOCKS COMPUTE WRITE SECONDS prints a table with one row: N, X [1/s], mean R
   [s], U_cpu and c_cpu. A client thinks for 20 ms, computes until it has used COMPUTE ms of
   processor time, and holds a lock for WRITE ms, in which it sleeps, as a program that waits for a
   disk does. All three times are means of exponential distributions. Each request takes one of the
   locks at random.
*/
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const double THINK = 0.020;
static double compute, hold;
static pthread_mutex_t locks[64];
static int number;
static double begin, end;

struct client { unsigned short seed[3]; long done; double response; };

static double now(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void pass(double seconds) {
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))};
    nanosleep(&t, NULL);
}

static double drawn(struct client *c, double mean) { return -mean * log(1.0 - erand48(c->seed)); }

static void *work(void *argument) {
    struct client *c = argument;
    while (now(CLOCK_MONOTONIC) < end) {
        pass(drawn(c, THINK));
        double sent = now(CLOCK_MONOTONIC);
        double until = now(CLOCK_THREAD_CPUTIME_ID) + drawn(c, compute);
        while (now(CLOCK_THREAD_CPUTIME_ID) < until) {}
        pthread_mutex_t *lock = &locks[(int)(number * erand48(c->seed))];
        pthread_mutex_lock(lock);
        pass(drawn(c, hold));
        pthread_mutex_unlock(lock);
        double answered = now(CLOCK_MONOTONIC);
        if (answered >= begin && answered < end) {
            c->done++;
            c->response += answered - sent;
        }
    }
    return NULL;
}

static double used(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int count, char **words) {
    if (count != 7) return fprintf(stderr, "expected six numbers, as the source says\n"), 2;
    int N = atoi(words[1]), c = atoi(words[2]);
    double seconds = atof(words[6]), X = 0, R = 0;
    number = atoi(words[3]);
    compute = 1e-3 * atof(words[4]);
    hold = 1e-3 * atof(words[5]);
    for (int i = 0; i < number; i++) pthread_mutex_init(&locks[i], NULL);
    struct client *clients = calloc(N, sizeof *clients);
    pthread_t *threads = calloc(N, sizeof *threads);
    begin = now(CLOCK_MONOTONIC) + 0.5;
    end = begin + seconds;
    for (int i = 0; i < N; i++) {
        clients[i].seed[0] = i + 1;
        clients[i].seed[1] = (unsigned short)(1e6 * begin);
        pthread_create(&threads[i], NULL, work, &clients[i]);
    }
    pass(0.5);
    double before = used();
    pass(end - now(CLOCK_MONOTONIC));
    double busy = used() - before;
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        X += clients[i].done / seconds;
        R += clients[i].response;
    }
    printf("N,X,R,U_cpu,c_cpu\n%d,%.3f,%.6f,%.4f,%d\n", N, X, R / (X * seconds), busy / seconds / c, c);
    return 0;
}
