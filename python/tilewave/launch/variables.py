"""Environment variables that launchers set for the ranks that they start."""

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
JOB_VARIABLES = (
    "PMI_",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMIX_SERVER_",
    "OMPI_COMM_WORLD_",
    "TILEWAVE_RANK",
)  # beginnings of names
