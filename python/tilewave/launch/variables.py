"""This file has what launchers set in the environment of the ranks that they start, and the error of a launch."""

import re

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
LIVED = "TILEWAVE_LIVED_S"  # seconds that launches of a program have lived, in the mean, once one has died
JOB_VARIABLES = (
    "PMI_",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMIX_SERVER_",
    "OMPI_COMM_WORLD_",
    "TILEWAVE_RANK",
    LIVED,
)  # beginnings of names


def number(text: str) -> int | None:
    """Return the whole number that the value of a variable is, of up to nine digits; else None."""
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


class LaunchError(ValueError):
    """The launch that was asked for cannot be started."""
