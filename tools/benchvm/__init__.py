"""tools/bench-vm's parts: the machine, the guest's measurements, ratios, goals, the table."""
