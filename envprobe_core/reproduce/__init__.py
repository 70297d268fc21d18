"""The sections of the paper executed again, and the book built from them.

`sections` finds the notebooks and says which must run, `parameters` reads what may be changed, `execution`
runs them (`warm` starts their kernels), `build` makes the pages.
"""
