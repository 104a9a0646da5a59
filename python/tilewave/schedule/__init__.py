"""Schedules as values: made, printed, kept in files, proved, predicted and run."""
