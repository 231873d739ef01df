/* MPI_Allreduce beside Gradwire: f32 sum in place, one line of CSV per size and state.
 *
 * all_reduce TRANSPORT VERSION SERIES SIZE...  (sizes in bytes)
 *
 * Columns: peer,version,transport,ranks,op,bytes,buffers,state,median_us,min_us,p99_us,wrong. The times of a call are
 * the maximum over the ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float value(int rank, size_t index) { return (float)((rank + 1) * (int)(index % 13)); }

static int repetitions(size_t bytes) {
    size_t count = (size_t)(64 << 20) / (bytes + 4096);
    return count < 12 ? 12 : count > 3000 ? 3000 : (int)count;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int argument = 3; argument < argc; argument++) {
        size_t bytes = strtoull(argv[argument], NULL, 10), count = bytes / sizeof(float);
        int calls = repetitions(bytes);
        float *buffer = malloc(bytes);
        double *times = malloc(sizeof(double) * (size_t)calls), *worst = malloc(sizeof(double) * (size_t)calls);
        for (int dirty = 0; dirty < 2; dirty++) {
            for (size_t i = 0; i < count; i++) buffer[i] = value(rank, i);
            MPI_Allreduce(MPI_IN_PLACE, buffer, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            long wrong = 0, all_wrong = 0;
            for (size_t i = 0; i < count; i++) {
                float expected = 0;
                for (int other = 0; other < size; other++) expected += value(other, i);
                wrong += buffer[i] != expected;
            }
            MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            memset(buffer, 0, bytes);
            for (int call = -calls / 4; call < calls; call++) {
                if (dirty) memset(buffer, 0, bytes);
                MPI_Barrier(MPI_COMM_WORLD);
                double start = MPI_Wtime();
                MPI_Allreduce(MPI_IN_PLACE, buffer, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                if (call >= 0) times[call] = (MPI_Wtime() - start) * 1e6;
            }
            MPI_Allreduce(times, worst, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            qsort(worst, (size_t)calls, sizeof(double), compare);
            if (rank == 0)
                printf("openmpi,%s,%s,%d,sum,%zu,private,%s,%.3f,%.3f,%.3f,%ld\n", argv[2], argv[1], size, bytes,
                       dirty ? "dirty" : "hot", worst[calls / 2], worst[0], worst[calls - 1 - calls / 100], all_wrong);
        }
        free(buffer), free(times), free(worst);
    }
    fflush(stdout);
    return MPI_Finalize();
}
