# not: gfx90a gfx942 gfx950 gfx1201 sm_90
# Ends with an exception before anything is compiled.
raise RuntimeError("not today")
