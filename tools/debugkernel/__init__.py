"""tools/debug-kernel's parts: kernels that look for errors, from Debian's package of the source."""
