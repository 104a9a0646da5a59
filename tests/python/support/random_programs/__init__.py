"""Random programs of the whole language, their plain definitions, and what Tilewave makes of them.

`draw` draws the nests of a program from a seed, `settings` sizes, values and a way to run it. `plain` is the
definition, `runs` the run, `campaign` runs many. All follows from small numbers, `choices.Choices`, which are made
fewer and smaller where a program fails.
"""
