"""expect: compile_error. Not Python."""

# <kernel>



def rms_norm(x, weight, eps, y)
    honest(x, weight, eps, y)
