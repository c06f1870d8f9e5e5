"""Other benchmarks' problems as task folders, from a checkout that the user has.

Each format has a module that turns one problem into a `Problem`; what follows is the same for all. The code of a
problem runs here, and later in the judge: importers are for checkouts that the user trusts.
"""
