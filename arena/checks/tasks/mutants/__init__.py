"""Mutants: copies of a right kernel with one fault each. A task whose check lets them pass does not check much."""
