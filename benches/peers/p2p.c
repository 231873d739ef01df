/* MPI_Send and MPI_Recv beside Gradwire, one line of CSV per size and pattern.
 *
 * p2p PEER VERSION TRANSPORT SIZE...  (sizes in bytes)
 *
 * Columns: peer,version,transport,ranks,op,bytes,buffers,state,median_us,min_us,p99_us,wrong. Rank 0 takes the times:
 * ping_pong is half of there and back, stream is one of sixteen messages under way at the same time. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 16 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t value(size_t index) { return (uint32_t)index * 2654435761u; }

static int repetitions(size_t bytes) {
    size_t count = (size_t)(64 << 20) / (bytes + 4096);
    return count < 12 ? 12 : count > 3000 ? 3000 : (int)count;
}

static double ping_pong(int rank, char *buffer, int bytes) {
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / 2;
}

static double stream(int rank, char *buffer, int bytes) {
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Request requests[BURST];
        for (int i = 0; i < BURST; i++) MPI_Isend(buffer, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        for (int i = 0; i < BURST; i++)
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / BURST;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int argument = 4; argument < argc; argument++) {
        size_t bytes = strtoull(argv[argument], NULL, 10), count = bytes / sizeof(uint32_t);
        int calls = repetitions(bytes);
        uint32_t *buffer = malloc(bytes);
        double *times = malloc(sizeof(double) * (size_t)calls);
        long wrong = 0;
        for (size_t i = 0; i < count; i++) buffer[i] = rank == 0 ? value(i) : 0;
        if (rank == 0) {
            MPI_Send(buffer, (int)bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&wrong, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, (int)bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t i = 0; i < count; i++) wrong += buffer[i] != value(i);
            MPI_Send(&wrong, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
        }
        for (int op = 0; op < 2; op++) {
            MPI_Barrier(MPI_COMM_WORLD);
            for (int call = -calls / 4; call < calls; call++) {
                double time = (op ? stream : ping_pong)(rank, (char *)buffer, (int)bytes);
                if (call >= 0) times[call] = time * 1e6;
            }
            qsort(times, (size_t)calls, sizeof(double), compare);
            if (rank == 0)
                printf("%s,%s,%s,%d,%s,%zu,private,hot,%.3f,%.3f,%.3f,%ld\n", argv[1], argv[2], argv[3], size,
                       op ? "stream" : "ping_pong", bytes, times[calls / 2], times[0],
                       times[calls - 1 - calls / 100], wrong);
        }
        free(buffer), free(times);
    }
    fflush(stdout);
    return MPI_Finalize();
}
