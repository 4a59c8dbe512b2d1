"""tools/vm's parts: stock kernels, the root file system, QEMU, and what the kernel says."""
