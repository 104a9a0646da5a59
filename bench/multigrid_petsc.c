/* Poisson on the unit cube, u = 0 on its faces, by PETSc's geometric multigrid (DMDA, PCMG): n^3 cells between grid
 * points, where PETSc's trilinear interpolation and rediscretised coarse grids work best. Equations are multiplied by
 * the volume of a cell, as PETSc restricts by the transpose of the interpolation. A line is "set-up solve iterations
 * residual". Arguments: n, repetitions, then PETSc's options.
 */
#include <petscdmda.h>
#include <petscksp.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH_POINT(box, i, j, k)                         \
    for (PetscInt k = box.zs; k < box.zs + box.zm; ++k)  \
        for (PetscInt j = box.ys; j < box.ys + box.ym; ++j) \
            for (PetscInt i = box.xs; i < box.xs + box.xm; ++i)

static int on_edge(PetscInt n, PetscInt i, PetscInt j, PetscInt k) {
    return !i || !j || !k || i == n - 1 || j == n - 1 || k == n - 1;
}

static PetscErrorCode right_side(KSP ksp, Vec b, void* context) {
    DM grid;
    DMDALocalInfo box;
    PetscScalar*** f;
    (void)context;
    PetscFunctionBeginUser;
    PetscCall(KSPGetDM(ksp, &grid));
    PetscCall(DMDAGetLocalInfo(grid, &box));
    PetscCall(DMDAVecGetArray(grid, b, &f));
    const double h = 1.0 / (box.mx - 1);
    EACH_POINT(box, i, j, k) {
        const double value = (double)((i * 7919L + j * 104729L + k * 1299709L) % 1000) / 1000.0 - 0.4995;
        f[k][j][i] = on_edge(box.mx, i, j, k) ? 0.0 : h * h * h * value;
    }
    PetscCall(DMDAVecRestoreArray(grid, b, &f));
    PetscFunctionReturn(0);
}

static PetscErrorCode matrix(KSP ksp, Mat J, Mat A, void* context) {
    DM grid;
    DMDALocalInfo box;
    (void)J, (void)context;
    PetscFunctionBeginUser;
    PetscCall(KSPGetDM(ksp, &grid));
    PetscCall(DMDAGetLocalInfo(grid, &box));
    const PetscScalar c = 1.0 / (box.mx - 1);
    EACH_POINT(box, i, j, k) {
        MatStencil row = {k, j, i, 0}, columns[7] = {row};
        PetscScalar values[7] = {6 * c};
        PetscInt count = 1;
        for (int d = 0; d < 6 && !on_edge(box.mx, i, j, k); ++d) {
            PetscInt other[3] = {i, j, k};
            other[d / 2] += d % 2 ? 1 : -1;
            if (on_edge(box.mx, other[0], other[1], other[2])) continue; /* u = 0 there */
            columns[count] = (MatStencil){other[2], other[1], other[0], 0};
            values[count++] = -c;
        }
        PetscCall(MatSetValuesStencil(A, 1, &row, count, columns, values, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

static PetscErrorCode now(PetscLogDouble* time) {
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    return PetscTime(time);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const PetscInt n = atoi(argv[1]), repetitions = atoi(argv[2]);
    PetscInt levels = 1, iterations;
    for (PetscInt m = n; m % 2 == 0 && m > 4; m /= 2) ++levels;
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    DM grid;
    const DMBoundaryType none = DM_BOUNDARY_NONE;
    PetscCall(DMDACreate3d(PETSC_COMM_WORLD, none, none, none, DMDA_STENCIL_STAR, n + 1, n + 1, n + 1, PETSC_DECIDE,
                           PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &grid));
    PetscCall(DMSetUp(grid));
    for (PetscInt r = 0; r < repetitions; ++r) {
        KSP ksp;
        PC pc;
        Vec b, x, left;
        Mat A;
        PetscReal residual, size;
        PetscLogDouble begin, set_up, end;
        PetscCall(now(&begin));
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
        PetscCall(now(&set_up));
        PetscCall(KSPSolve(ksp, NULL, NULL));
        PetscCall(now(&end));
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
    return PetscFinalize();
}
