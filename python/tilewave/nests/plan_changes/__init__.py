"""What changes a plan where the caller changes something: docs/guide/plans.md, "When a plan changes".

`earlier_plan`: only bounds or the number of time steps differ. `kept_rates`: rates on disk, until the machine is
measured again. `chain_layout`: nests of a chain whose plans want a shared array in different layouts.
"""
