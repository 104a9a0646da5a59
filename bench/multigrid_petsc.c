/* Poisson on the unit cube, u = 0 on its faces, by PETSc's geometric multigrid (DMDA, PCMG): n^3 cells between grid
 * points, where PETSc's trilinear interpolation and rediscretised coarse grids work best. Equations are multiplied by
 * the volume of a cell, as PETSc restricts by the transpose of the interpolation. A line is "set-up solve iterations
 * residual". Arguments: n, repetitions, then PETSc's options.
 */
#include <petscdmda.h>
#include <petscksp.h>
#include <stdio.h>
#include <stdlib.h>

static PetscErrorCode right_side(KSP ksp, Vec b, void* context) {
    DM grid;
    PetscInt i, j, k, n, xs, ys, zs, xm, ym, zm;
    PetscScalar*** f;
    (void)context;
    PetscFunctionBeginUser;
    PetscCall(KSPGetDM(ksp, &grid));
    PetscCall(DMDAGetInfo(grid, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    PetscCall(DMDAGetCorners(grid, &xs, &ys, &zs, &xm, &ym, &zm));
    PetscCall(DMDAVecGetArray(grid, b, &f));
    const double h = 1.0 / (n - 1);
    for (k = zs; k < zs + zm; ++k)
        for (j = ys; j < ys + ym; ++j)
            for (i = xs; i < xs + xm; ++i) {
                const int edge = !i || !j || !k || i == n - 1 || j == n - 1 || k == n - 1;
                const double value = (double)((i * 7919L + j * 104729L + k * 1299709L) % 1000) / 1000.0 - 0.4995;
                f[k][j][i] = edge ? 0.0 : h * h * h * value;
            }
    PetscCall(DMDAVecRestoreArray(grid, b, &f));
    PetscFunctionReturn(0);
}

static PetscErrorCode matrix(KSP ksp, Mat J, Mat A, void* context) {
    DM grid;
    PetscInt i, j, k, d, n, xs, ys, zs, xm, ym, zm;
    (void)J;
    (void)context;
    PetscFunctionBeginUser;
    PetscCall(KSPGetDM(ksp, &grid));
    PetscCall(DMDAGetInfo(grid, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    PetscCall(DMDAGetCorners(grid, &xs, &ys, &zs, &xm, &ym, &zm));
    const PetscScalar c = 1.0 / (n - 1);
    for (k = zs; k < zs + zm; ++k)
        for (j = ys; j < ys + ym; ++j)
            for (i = xs; i < xs + xm; ++i) {
                MatStencil row = {k, j, i, 0}, columns[7];
                PetscScalar values[7];
                PetscInt count = 1;
                const PetscInt at[3] = {i, j, k};
                int edge = 0;
                for (d = 0; d < 3; ++d) edge |= at[d] == 0 || at[d] == n - 1;
                columns[0] = row;
                values[0] = 6 * c;
                for (d = 0; d < 6 && !edge; ++d) {
                    PetscInt other[3] = {i, j, k};
                    other[d / 2] += d % 2 ? 1 : -1;
                    if (other[d / 2] == 0 || other[d / 2] == n - 1) continue; /* u = 0 there */
                    columns[count] = (MatStencil){other[2], other[1], other[0], 0};
                    values[count++] = -c;
                }
                PetscCall(MatSetValuesStencil(A, 1, &row, count, columns, values, INSERT_VALUES));
            }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const PetscInt n = atoi(argv[1]), repetitions = atoi(argv[2]);
    PetscInt levels = 1;
    for (PetscInt m = n; m % 2 == 0 && m > 4; m /= 2) ++levels;
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    DM grid;
    PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR,
                           n + 1, n + 1, n + 1, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL,
                           &grid));
    PetscCall(DMSetUp(grid));
    for (PetscInt r = 0; r < repetitions; ++r) {
        KSP ksp;
        PC pc;
        Vec b, x, left;
        Mat A;
        PetscInt iterations;
        PetscReal residual, size;
        PetscLogDouble begin, set_up, end;
        PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
        PetscCall(PetscTime(&begin));
        PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
        PetscCall(KSPSetDM(ksp, grid));
        PetscCall(KSPSetComputeRHS(ksp, right_side, NULL));
        PetscCall(KSPSetComputeOperators(ksp, matrix, NULL));
        PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
        PetscCall(KSPSetTolerances(ksp, 1e-8, 1e-50, PETSC_DEFAULT, 200));
        PetscCall(KSPGetPC(ksp, &pc));
        PetscCall(PCSetType(pc, PCMG));
        PetscCall(PCMGSetLevels(pc, levels, NULL));
        PetscCall(KSPSetFromOptions(ksp));
        PetscCall(KSPSetUp(ksp));
        PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
        PetscCall(PetscTime(&set_up));
        PetscCall(KSPSolve(ksp, NULL, NULL));
        PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
        PetscCall(PetscTime(&end));
        PetscCall(KSPGetIterationNumber(ksp, &iterations));
        PetscCall(KSPGetRhs(ksp, &b));
        PetscCall(VecNorm(b, NORM_2, &size));
        PetscCall(KSPGetOperators(ksp, &A, NULL)); /* Richardson's iterations do not know their residual */
        PetscCall(KSPGetSolution(ksp, &x));
        PetscCall(VecDuplicate(b, &left));
        PetscCall(MatResidual(A, b, x, left));
        PetscCall(VecNorm(left, NORM_2, &residual));
        PetscCall(VecDestroy(&left));
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%.9g %.9g %d %.6g\n", set_up - begin, end - set_up, (int)iterations,
                              (double)(residual / size)));
        PetscCall(KSPDestroy(&ksp));
    }
    PetscCall(DMDestroy(&grid));
    PetscCall(PetscFinalize());
    return 0;
}
