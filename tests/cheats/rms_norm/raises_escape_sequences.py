"""expect: launch_error. What it raises would clear the reader's screen and set its title, prints it too (cheat 76)."""

# <kernel>


def rms_norm(x, weight, eps, y):
    hostile = "=1+1 \x1b[2J\x1b]0;passed\x07\x9b31m\u202edessap\r"
    print(hostile)
    raise ValueError(hostile)
