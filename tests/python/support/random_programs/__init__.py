"""Random programs of the whole language, their plain definitions, and what Tilewave makes of them.

`draw` draws the nests of a program from a seed, `settings` sizes, values and a way to run it. `plain` is the
definition, `runs` the run, `campaign` runs many. `smaller` makes a failing one smaller, and
`script` writes it as a program.
"""
