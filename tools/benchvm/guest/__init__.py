"""What runs inside the virtual machine: hosts, tunnels, measurements."""
