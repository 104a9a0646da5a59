/* Poisson on n^3 cells of the unit cube, u = 0 on its faces, by hypre's PFMG. A line has the seconds of set-up
 * and solution, iterations and residual.
 *
 * Arguments: n, repetitions, relaxation (1: weighted Jacobi, 2: red-black Gauss-Seidel), ranks along x, y, z.
 */
#include <HYPRE_struct_ls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double right_side(long i, long j, long k) {
    return (double)((i * 7919 + j * 104729 + k * 1299709) % 1000) / 1000.0 - 0.4995;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, d, s;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 7) return 2;
    const int n = atoi(argv[1]), repetitions = atoi(argv[2]), relaxation = atoi(argv[3]);
    const int grid[3] = {atoi(argv[4]), atoi(argv[5]), atoi(argv[6])};
    const int at[3] = {rank % grid[0], rank / grid[0] % grid[1], rank / (grid[0] * grid[1])};
    int lo[3], hi[3], cells = 1;
    for (d = 0; d < 3; ++d) {
        lo[d] = (int)((long)n * at[d] / grid[d]);
        hi[d] = (int)((long)n * (at[d] + 1) / grid[d]) - 1;
        cells *= hi[d] - lo[d] + 1;
    }
    HYPRE_StructGrid cube;
    HYPRE_StructGridCreate(MPI_COMM_WORLD, 3, &cube);
    HYPRE_StructGridSetExtents(cube, lo, hi);
    HYPRE_StructGridAssemble(cube);
    /* Half of a symmetric stencil. */
    HYPRE_StructStencil stencil;
    HYPRE_StructStencilCreate(3, 4, &stencil);
    int offsets[4][3] = {{0, 0, 0}, {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}, entries[4] = {0, 1, 2, 3};
    for (s = 0; s < 4; ++s) HYPRE_StructStencilSetElement(stencil, s, offsets[s]);
    HYPRE_StructMatrix A;
    HYPRE_StructMatrixCreate(MPI_COMM_WORLD, cube, stencil, &A);
    HYPRE_StructMatrixSetSymmetric(A, 1);
    HYPRE_StructMatrixInitialize(A);
    HYPRE_StructVector b, x;
    HYPRE_StructVectorCreate(MPI_COMM_WORLD, cube, &b);
    HYPRE_StructVectorCreate(MPI_COMM_WORLD, cube, &x);
    HYPRE_StructVectorInitialize(b);
    HYPRE_StructVectorInitialize(x);
    double *values = malloc(sizeof(double) * 4 * (size_t)cells), *f = malloc(sizeof(double) * (size_t)cells);
    double *zeros = calloc((size_t)cells, sizeof(double));
    const double c = (double)n * n;
    long m = 0;
    int index[3];
    for (index[2] = lo[2]; index[2] <= hi[2]; ++index[2])
        for (index[1] = lo[1]; index[1] <= hi[1]; ++index[1])
            for (index[0] = lo[0]; index[0] <= hi[0]; ++index[0], ++m) {
                f[m] = right_side(index[0], index[1], index[2]);
                values[4 * m] = 6 * c;
                for (d = 0; d < 3; ++d) {
                    values[4 * m] += c * ((index[d] == 0) + (index[d] == n - 1));
                    values[4 * m + 1 + d] = index[d] == 0 ? 0.0 : -c;
                }
            }
    HYPRE_StructMatrixSetBoxValues(A, lo, hi, 4, entries, values);
    HYPRE_StructMatrixAssemble(A);
    HYPRE_StructVectorSetBoxValues(b, lo, hi, f);
    HYPRE_StructVectorAssemble(b);
    HYPRE_StructVectorSetBoxValues(x, lo, hi, zeros);
    HYPRE_StructVectorAssemble(x);
    for (int r = 0; r < repetitions; ++r) {
        HYPRE_StructSolver solver;
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        HYPRE_StructPFMGCreate(MPI_COMM_WORLD, &solver);
        HYPRE_StructPFMGSetMaxIter(solver, 200);
        HYPRE_StructPFMGSetTol(solver, 1e-8);
        HYPRE_StructPFMGSetRelaxType(solver, relaxation);
        HYPRE_StructPFMGSetSkipRelax(solver, 0);
        HYPRE_StructPFMGSetLogging(solver, 1); /* else there is no residual to be asked for */
        HYPRE_StructPFMGSetup(solver, A, b, x);
        MPI_Barrier(MPI_COMM_WORLD);
        const double set_up = MPI_Wtime();
        HYPRE_StructVectorSetBoxValues(x, lo, hi, zeros);
        HYPRE_StructPFMGSolve(solver, A, b, x);
        MPI_Barrier(MPI_COMM_WORLD);
        const double end = MPI_Wtime();
        int iterations;
        double residual;
        HYPRE_StructPFMGGetNumIterations(solver, &iterations);
        HYPRE_StructPFMGGetFinalRelativeResidualNorm(solver, &residual);
        if (rank == 0) printf("%.9g %.9g %d %.6g\n", set_up - begin, end - set_up, iterations, residual);
        HYPRE_StructPFMGDestroy(solver);
    }
    MPI_Finalize();
    return 0;
}
