"""Every warning is an error; and one that is shown where it was raised."""

import warnings

warnings.simplefilter("error")
kept = []
for step in range(600):
    kept.append(bytearray(2000))
    try:
        warnings.warn(f"step {step}", DeprecationWarning, stacklevel=1)
    except DeprecationWarning as warning:
        told = warning
print(told)
warnings.simplefilter("default")
for _ in range(3):
    warnings.warn("once a place", UserWarning, stacklevel=1)
