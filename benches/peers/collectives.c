/* MPI's collectives beside Gradwire: f32, one line of CSV per operation, size and state.
 *
 * collectives PEER VERSION TRANSPORT OPERATIONS SIZE...  (operations by commas, sizes in bytes of the whole vector)
 *
 * Columns: peer,version,transport,ranks,op,bytes,buffers,state,median_us,min_us,p99_us,wrong. The times of a call are the maximum
 * over the ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum op { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, BARRIER, OPS };
static const char *names[OPS] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier"};

static int rank, size;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float value(int rank, size_t index) { return (float)((rank + 1) * (int)(index % 13)); }

static int repetitions(size_t bytes) {
    size_t count = (size_t)(64 << 20) / (bytes + 4096);
    return count < 12 ? 12 : count > 3000 ? 3000 : (int)count;
}

/* The vector is worked on in place; one rank's part of it has `part` elements. */
static void call(enum op op, float *vector, float *result, int count, int part) {
    switch (op) {
    case ALL_REDUCE: MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case BROADCAST: MPI_Bcast(vector, count, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case ALL_GATHER:
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, vector, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(vector, result, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    default: MPI_Barrier(MPI_COMM_WORLD);
    }
}

static long count_wrong(enum op op, float *vector, float *result, int count, int part) {
    for (int i = 0; i < count; i++) vector[i] = value(rank, (size_t)i);
    call(op, vector, result, count, part);
    long wrong = 0;
    for (int i = 0; i < count; i++) {
        float sum = 0, found = vector[i], expected;
        for (int other = 0; other < size; other++) sum += value(other, (size_t)i);
        switch (op) {
        case ALL_REDUCE: expected = sum; break;
        case BROADCAST: expected = value(0, (size_t)i); break;
        case ALL_GATHER: expected = value(i / part, (size_t)i); break;
        case REDUCE_SCATTER:
            if (i / part != rank) continue;
            found = result[i % part], expected = sum;
            break;
        default: continue;
        }
        wrong += found != expected;
    }
    long all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void measure(char **about, enum op op, size_t bytes) {
    int part = (int)(bytes / sizeof(float)) / size, count = op == ALL_REDUCE || op == BROADCAST ? (int)(bytes / sizeof(float)) : part * size;
    int calls = repetitions(bytes);
    float *vector = malloc(bytes), *result = malloc(bytes);
    double *times = malloc(sizeof(double) * (size_t)calls), *worst = malloc(sizeof(double) * (size_t)calls);
    for (int dirty = 0; dirty < (op == BARRIER ? 1 : 2); dirty++) {
        long wrong = count_wrong(op, vector, result, count, part);
        memset(vector, 0, bytes);
        for (int number = -calls / 4; number < calls; number++) {
            if (dirty) memset(vector, 0, bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            call(op, vector, result, count, part);
            if (number >= 0) times[number] = (MPI_Wtime() - start) * 1e6;
        }
        MPI_Allreduce(times, worst, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        qsort(worst, (size_t)calls, sizeof(double), compare);
        if (rank == 0)
            printf("%s,%s,%s,%d,%s,%zu,private,%s,%.3f,%.3f,%.3f,%ld\n", about[0], about[1], about[2], size, names[op], bytes,
                   dirty ? "dirty" : "hot", worst[calls / 2], worst[0], worst[calls - 1 - calls / 100], wrong);
    }
    free(vector), free(result), free(times), free(worst);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (char *name = strtok(argv[4], ","); name; name = strtok(NULL, ","))
        for (int op = 0; op < OPS; op++)
            for (int argument = 5; argument < argc && !strcmp(name, names[op]); argument++) {
                measure(argv + 1, (enum op)op, strtoull(argv[argument], NULL, 10));
                if (op == BARRIER) break;
            }
    fflush(stdout);
    return MPI_Finalize();
}
