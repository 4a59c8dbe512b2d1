"""The units under a systemd of their own, as the package installs them: who may do what, what
restarts, and an upgrade under a connection that goes through the tunnel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from debian import Machine, PackageTest, Tree, installed, packages, until

KEYS = {  # private: public
    "server": ("qGC4RMKWsXmiCKJjBrp5PaN0u9ekBkxGzqGyqFQmBUs=", ""),
    "nas": ("gK0bwcqv5bQfDGZLP2vTQcpcVqkKdEuKzM5zdLkQG2Q=", ""),
}
PSK = "E31Nxk7dY3tq6B3wyq0P7nM4Wd0tYTQ6YvLqkJm0D0s="
UNIT, HELPER = "adit@adit0", "adit-helper@adit0"
ADMIN = 1 << 12  # CAP_NET_ADMIN
#: What goes back and forth in the connection: one line every 20 ms, and the longest wait for an answer.
ECHO = """
import socket
listener = socket.create_server(("10.77.0.1", 7))
connection, _ = listener.accept()
while data := connection.recv(4096):
    connection.sendall(data)
"""
TALK = """
import socket, sys, time
for _ in range(200):
    try:
        connection = socket.create_connection(("10.77.0.1", 7), timeout=60)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
longest, count = 0.0, 0
while count < 100000:
    begin = time.monotonic()
    connection.sendall(b"x")
    assert connection.recv(1) == b"x", "the connection ended"
    longest = max(longest, time.monotonic() - begin)
    count += 1
    print(count, longest, flush=True)
    time.sleep(0.02)
"""


def config(own: str, other: str, tree: Tree, extra: str = "") -> str:
    address = {"server": "10.77.0.1", "nas": "10.77.0.2"}
    public = tree.command(f"echo {KEYS[other][0]} | adit pubkey").stdout.strip()
    endpoint = "Endpoint = 192.0.2.1:51820\n" if own == "nas" else ""
    return (f"[Interface]\nPrivateKey = {KEYS[own][0]}\nAddress = {address[own]}/24\n"
            f"ListenPort = 51820\n{extra}\n"
            f"[Peer]\nName = {other}\nPublicKey = {public}\nPresharedKey = {PSK}\n{endpoint}"
            f"AllowedIPs = {address[other]}/32\nPersistentKeepalive = 1\n")


def write_config(tree: Tree, text: str) -> None:
    file = tree / "etc/adit/adit0.conf"
    file.write_text(text)
    file.chmod(0o600)


class Service(PackageTest):
    """One machine whose tunnel is up for all that needs no second one."""

    def up(self, extra: str = "") -> Machine:
        tree = self.tree(installed())
        write_config(tree, config("server", "nas", tree, extra))
        machine = self.machine(tree)
        machine.run(f"systemctl start {UNIT}")
        return machine

    def pids(self, machine: Machine) -> tuple[int, int]:
        """Of the worker and the helper, once both are there."""
        until(lambda: machine.property(UNIT, "SubState") == "running", "the unit is up")
        return (int(machine.property(UNIT, "MainPID")), int(machine.property(HELPER, "MainPID")))

    def status_of(self, machine: Machine, pid: int, field: str) -> str:
        text = machine.run(f"grep ^{field}: /proc/{pid}/status").stdout
        return text.split(":", 1)[1].strip()

    def test_rights_and_modes(self) -> None:
        machine = self.up(extra="PostUp = id -u >/root/hook; mount -t tmpfs hook /mnt\n")
        worker, helper = self.pids(machine)
        user = machine.run("id -u adit").stdout.strip()
        self.assertEqual(self.status_of(machine, worker, "Uid").split(), [user] * 4)
        for field in ("CapPrm", "CapEff"):
            self.assertEqual(int(self.status_of(machine, worker, field), 16), ADMIN, field)
        for field in ("CapInh", "CapAmb"):
            self.assertEqual(int(self.status_of(machine, worker, field), 16), 0, field)
        self.assertEqual(self.status_of(machine, worker, "Seccomp"), "2")
        self.assertEqual(self.status_of(machine, worker, "NoNewPrivs"), "1")
        self.assertEqual(self.status_of(machine, helper, "Uid").split(), ["0"] * 4)
        self.assertEqual((machine.tree / "root/hook").read_text(), "0\n", "hooks run as root")
        machine.run("mountpoint -q /mnt")  # and change the machine itself
        modes = machine.run("stat -c '%n %a %U:%G' /etc/adit /etc/adit/adit0.conf /var/lib/adit "
                            "/var/lib/adit/adit0 /run/adit /run/adit/adit0 /run/adit/adit0.sock "
                            "/run/wireguard/adit0.sock").stdout.splitlines()
        self.assertEqual(modes, [
            "/etc/adit 700 root:root",
            "/etc/adit/adit0.conf 600 root:root",
            "/var/lib/adit 755 root:root",
            "/var/lib/adit/adit0 700 adit:adit",
            "/run/adit 755 root:root",
            "/run/adit/adit0 700 adit:adit",
            "/run/adit/adit0.sock 660 root:adit",
            "/run/wireguard/adit0.sock 600 root:root",
        ])
        self.assertEqual(machine.run("find /var/lib/adit /run/adit -type f -perm /077").stdout, "")
        score = machine.run(f"systemd-analyze security --no-pager {UNIT} | tail -1").stdout
        print(f"  {score.strip()}", file=sys.stderr)
        self.assertLessEqual(float(re.search(r": ([\d.]+) ", score).group(1)), 2.5, score)

    def test_who_may_talk_to_it(self) -> None:
        machine = self.up()
        machine.run("useradd -m member && useradd -m stranger && usermod -aG adit member")
        for command in ("adit status adit0", "adit show adit0"):
            self.assertIn("adit0", machine.run(command, user="member").stdout)
        for command in ("adit status adit0 --json", "adit show adit0"):
            text = machine.run(command, user="member").stdout
            for secret in (KEYS["server"][0], PSK):
                self.assertNotIn(secret, text)
        for command, words in (
                ("adit show adit0 private-key", "only root may see private and preshared keys"),
                ("adit show adit0 preshared-keys", "only root may see"),
                ("adit showconf adit0", "only root may see"),
                ("adit down adit0", "only root may change a tunnel"),
                ("adit reload adit0", "only root may change a tunnel"),
                ("adit set adit0 listen-port 1234", "only root may"),
                ("wg show adit0", ""),
                ("cat /etc/adit/adit0.conf", "Permission denied"),
                ("ls /var/lib/adit/adit0", "Permission denied")):
            done = machine.run(command, user="member", check=False)
            self.assertNotEqual(done.returncode, 0, command)
            self.assertIn(words, done.stderr, command)
        done = machine.run("adit status adit0", user="stranger", check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("usermod -aG adit stranger", done.stderr)
        self.assertIn("adit0", machine.run("adit show interfaces").stdout)
        self.assertIn(KEYS["server"][0], machine.run("adit show adit0 private-key").stdout)

    def test_what_restarts_and_what_stays_down(self) -> None:
        machine = self.up(extra="PostUp = echo up >>/root/hooks\nPostDown = echo down >>/root/hooks\n")
        drop_in = machine.tree / "etc/systemd/system/adit@.service.d/quick.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text("[Service]\nWatchdogSec=2\nRestartSec=100ms\n")
        machine.run(f"systemctl daemon-reload && systemctl restart {UNIT}")
        index = machine.run("cat /sys/class/net/adit0/ifindex").stdout
        for what, which, number in (("a killed worker", 0, "KILL"), ("a killed helper", 1, "KILL"),
                                    ("a worker that hangs", 0, "STOP")):
            before = self.pids(machine)
            machine.run(f"kill -{number} {before[which]}")
            until(lambda: 0 not in self.pids(machine) and not set(self.pids(machine)) & set(before),
                  f"{what} leads to two new processes")
            machine.run("adit status adit0")
            self.assertEqual(machine.run("cat /sys/class/net/adit0/ifindex").stdout, index,
                             f"{what} leaves the link")
        self.assertEqual((machine.tree / "root/hooks").read_text(), "up\ndown\nup\n",
                         "an adopted interface runs no hook")
        self.pids(machine)
        # A hook that takes longer than the watchdog waits is no reason to restart.
        write = "sed -i 's|^PostDown.*|PostDown = sleep 4; echo down >>/root/hooks|'"
        machine.run(f"{write} /etc/adit/adit0.conf && adit reload adit0")
        machine.run("adit down adit0")
        self.assertDown(machine)
        machine.run(f"systemctl start {UNIT} && systemctl stop {UNIT}")
        self.assertDown(machine)
        timeouts = machine.run(f"journalctl -o cat -u {UNIT} | grep -c 'Watchdog timeout'").stdout
        self.assertEqual(timeouts.strip(), "1", "the one that was meant")
        self.assertEqual(machine.property(UNIT, "Result"), "success")
        self.assertEqual((machine.tree / "root/hooks").read_text(), "up\ndown\nup\ndown\nup\ndown\n")
        self.assertEqual(machine.run("ls /run/adit").stdout, "")

    def assertDown(self, machine: Machine) -> None:
        for unit in (UNIT, HELPER):
            until(lambda: machine.property(unit, "ActiveState") == "inactive", f"{unit} has ended")
        machine.run("! ip link show adit0 2>/dev/null && sleep 0.5")
        self.assertEqual(machine.property(UNIT, "ActiveState"), "inactive")

    def test_a_wrong_file_is_told_and_a_right_one_starts_by_itself(self) -> None:
        tree = self.tree(installed())
        good = config("server", "nas", tree)
        write_config(tree, good.replace("ListenPort = 51820", "ListenPort = many"))
        machine = self.machine(tree)
        self.assertNotEqual(machine.run(f"systemctl start {UNIT}", check=False).returncode, 0)
        self.assertIn("adit0.conf:4:", machine.journal())
        self.assertIn(f"journalctl -u {HELPER}", machine.journal())
        write_config(tree, good)
        self.pids(machine)
        machine.run("adit status adit0")

    def test_an_upgrade_over_the_tunnel(self) -> None:
        """The connection through the tunnel that the package comes by goes on."""
        machine = self.up()
        nas = self.tree(installed(), "nas")
        write_config(nas, config("nas", "server", nas))
        other = self.machine(nas)
        inside = ("nsenter", f"--net=/proc/{machine.pid}/ns/net")
        subprocess.run((*inside, "ip", "link", "add", "wan", "type", "veth", "peer", "name", "wan",
                        "netns", str(other.pid)), check=True)
        for host, address in ((machine, "192.0.2.1"), (other, "192.0.2.2")):
            subprocess.run(("nsenter", f"--net=/proc/{host.pid}/ns/net", "sh", "-ec",
                            f"ip address add {address}/24 dev wan; ip link set wan up"), check=True)
        other.run(f"systemctl start {UNIT}")

        echo = subprocess.Popen((*inside, sys.executable, "-c", ECHO))
        self.addCleanup(echo.wait)
        self.addCleanup(echo.kill)
        talk = subprocess.Popen(("nsenter", f"--net=/proc/{other.pid}/ns/net", sys.executable, "-uc",
                                 TALK), stdout=subprocess.PIPE, text=True)
        self.addCleanup(talk.stdout.close)
        self.addCleanup(talk.wait)
        self.addCleanup(talk.kill)
        said: list[str] = []
        threading.Thread(target=lambda: said.extend(talk.stdout), daemon=True).start()

        def answers() -> int:
            return int(said[-1].split()[0]) if said else 0

        until(lambda: answers() > 20, "the connection works")
        for host in (machine, other):
            before, index = self.pids(host), host.run("cat /sys/class/net/adit0/ifindex").stdout
            shutil.copy(packages(2)["adit"], host.tree / "root/new.deb")
            host.run("dpkg -i /root/new.deb")
            until(lambda: not set(self.pids(host)) & set(before), "the new daemon is up")
            count = answers()
            until(lambda: answers() > count + 20, "the connection goes on")
            self.assertEqual(host.run("cat /sys/class/net/adit0/ifindex").stdout, index)
        print(f"  longest pause {float(said[-1].split()[1]):.1f} s", file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
