"""Schedules as values: made, printed, saved, proved, predicted and run."""
