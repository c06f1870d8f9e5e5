"""The trusted side: secret seeds, references, tolerances, and the clock that counts. Never loads candidate code."""
