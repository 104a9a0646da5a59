/* Plays the lanes of schedules in SimGrid's SMPI: bench/simulate.py writes a file of steps for each rank. */
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char name[4096], op;
    snprintf(name, sizeof name, "%s/%d", argv[1], rank);
    FILE* file = fopen(name, "r");
    int messages = 0;
    long most = 1;
    if (!file || fscanf(file, "%d %ld", &messages, &most) != 2) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Request* requests = malloc((messages + 1) * sizeof *requests);
    char* bytes = SMPI_SHARED_MALLOC(most);
    const double begin = MPI_Wtime();
    while (fscanf(file, " %c", &op) == 1) {
        int number, peer, tag;
        long size;
        double seconds;
        if (op == 'c' && fscanf(file, "%lf", &seconds) == 1)
            smpi_execute(seconds);
        else if (op == 'w' && fscanf(file, "%d", &number) == 1)
            MPI_Wait(&requests[number], MPI_STATUS_IGNORE);
        else if ((op == 's' || op == 'r') && fscanf(file, "%d %d %d %ld", &number, &peer, &tag, &size) == 4) {
            if (op == 's')
                MPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[number]);
            else
                MPI_Irecv(bytes, (int)size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[number]);
        }
    }
    fclose(file);
    double taken = MPI_Wtime() - begin, longest;
    MPI_Reduce(&taken, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.12g\n", longest);
    SMPI_SHARED_FREE(bytes);
    MPI_Finalize();
    return 0;
}
