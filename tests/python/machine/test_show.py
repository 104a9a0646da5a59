"""A machine's numbers in words: units, tables, pictures of what is there."""

import random

import pytest

from tilewave.machine import show
