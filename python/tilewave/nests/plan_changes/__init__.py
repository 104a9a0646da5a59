"""What changes a plan where the caller changes something: docs/guide/plans.md, "When a plan changes".

`earlier_plan`: only bounds or the number of time steps differ. What a chain changes of its nests' plans is in the core:
src/nests/chain_layout.hpp; so are rates on disk, until the machine is measured again: src/measure/rate_store.hpp.
"""
