#!/usr/bin/env python3
"""adit bench: real figures for every layer, a reason for what has none, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from lab import (
    RIGHT,
    Adit,
    Completed,
    Lab,
    Namespace,
    Process,
    ends,
    expect,
    main,
    pair,
    ping,
    progress,
    run,
    scenario,
    tool,
    wait_until,
)

ADIT = "ctl/cli/adit"
SVG = "{http://www.w3.org/2000/svg}"
IPERF_PORT = 5201


def steps(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Results by "layer/protocol/streams/direction"."""
    named = {}
    for result in report["results"]:
        words = (result[key] for key in ("layer", "protocol", "streams", "direction"))
        named["/".join(str(word) for word in words)] = result
    expect(len(named) == len(report["results"]), "no step is there twice")
    return named


def require_figures(name: str, result: dict[str, Any]) -> None:
    expect(result["reason"] is None, f"{name} has a result: {result['reason']}")
    expect(result["mbps"] > 0.01, f"{name}: {result['mbps']} Mbit/s")
    expect(result["seconds"] > 0.4, f"{name} took its time: {result['seconds']}")
    expect(result["cores"], f"{name} has the load of the cores")
    for core in result["cores"]:
        expect(0 <= core["softirq_percent"] <= core["busy_percent"] <= 100.1, f"{name}: {core}")
    if result["protocol"] == "tcp":
        expect(result["retransmits"] is not None, f"{name} counts retransmits")
        expect(len(result["series"]) > 2, f"{name} has a course: {result['series']}")
    else:
        expect(0 <= result["lost_percent"] < 100, f"{name} counts losses")


def require_page(page: Path, report: dict[str, Any]) -> None:
    """Well-formed, by itself, with the report's own series."""
    text = page.read_text()
    loaded = re.findall(r'(?:src|href)="?[^ >]*|@import|url\(', text)
    expect(not loaded, f"it loads nothing: {loaded}")
    root = ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
    paths = [path.get("class", "") for path in root.iter(f"{SVG}path")]
    for layer in ("bare", "tunnel", "mapped"):
        expect(f"course line-{layer}" in paths, f"a line for {layer}: {sorted(set(paths))}")
    labels = [label.text for label in root.iter(f"{SVG}text")]
    cores = report["results"][0]["cores"]
    charts = sum(1 for result in report["results"] if result["cores"])
    expect(labels.count(f"cpu{cores[0]['cpu']}") == charts, "a chart of the cores for each step")
    data = [element for element in root.iter() if element.get("id") == "adit-bench"]
    embedded = json.loads(data[0].text or "")
    expect(embedded["results"] == report["results"], "the page holds what --json printed")


def remains(own: int) -> list[str]:
    """Processes of a laboratory of `adit bench --local`, and of the benchmark itself."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
            command = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"ADIT_BENCH_TEST={own}".encode() in words:
            found.append(f"{path.parent.name}: {command}")
    return found


def start_local(lab: Lab, *args: str) -> Process:
    """--local in the background; its standard error and output share a log."""
    process = Process(
        [tool(ADIT), "bench", "--local", *args],
        lab.dir / "bench.log",
        env={**os.environ, "ADIT_BENCH_TEST": str(os.getpid())},
    )
    lab.processes.append(process)
    return process


def require_nothing_left() -> None:
    wait_until(lambda: not remains(os.getpid()), 10, "no process of it is left")


@scenario(seconds=150, heavy=True)
def local(lab: Lab) -> None:
    """All layers in namespaces of its own: figures, a page, a comparison; nothing is left."""
    namespaces = run(["ip", "netns", "list"]).out
    links = run(["ip", "-brief", "link"]).out
    page = lab.dir / "page.html"
    options = ["--seconds", "1", "--streams", "1,2", "--backend", "userspace"]
    env = {**os.environ, "ADIT_BENCH_TEST": str(os.getpid())}
    done = run(
        [tool(ADIT), "bench", "--local", *options, "--json", "--html", str(page)],
        timeout=120,
        env=env,
    )
    report = json.loads(done.out)
    results = steps(report)
    expect(len(results) == 16, f"three layers: {list(results)}")
    for name, result in results.items():
        require_figures(name, result)
        progress(f"{name}: {result['mbps']:.0f} Mbit/s")
    expect(report["backend"] == "userspace" and report["suite"], f"the tunnel: {report}")
    expect(report["ceiling"]["mbps"] > 0, f"a ceiling: {report['ceiling']}")
    lines = [line for line in done.err.splitlines() if re.search(r"\[\d+/16\] ", line)]
    expect(len(lines) == 16, f"one line of progress for each step: {done.err}")
    require_page(page, report)

    expect(run(["ip", "netns", "list"]).out == namespaces, "no namespace is left")
    expect(run(["ip", "-brief", "link"]).out == links, "no link is left")
    require_nothing_left()

    before = lab.dir / "before.json"
    report["results"][0]["mbps"] *= 2
    report["results"][1].update(mbps=None, reason="the server was busy")
    before.write_text(json.dumps(report))
    after = lab.dir / "after.json"
    after.write_text(done.out)
    text = run([tool(ADIT), "bench", "show", str(after), "--compare", str(before)]).out
    expect("-50.0 %" in text, f"before and after: {text}")
    expect("no result before" in text and "the server was busy" in text, f"and why not: {text}")


@scenario(seconds=60)
def interrupted(lab: Lab) -> None:
    """Ctrl-C: what was measured so far shows, the rest says why not, nothing is left."""
    bench = start_local(lab, "--seconds", "1", "--streams", "1", "--backend", "userspace")
    bench.require(lambda: "[1/" in bench.output(), 40, "the first step")
    bench.signal(signal.SIGINT)
    code = bench.wait(15)
    text = bench.output()
    expect(code == 1, f"a failure: {code}")
    table = text[text.index("LAYER") :]
    first = next(line for line in table.splitlines() if line.startswith("bare link"))
    expect("no result" not in first and re.search(r" \d+ ", first), f"the first: {first}")
    expect(table.count("no result: interrupted") == 9, f"the rest: {table}")
    expect(not re.search(r"receive +0", table), f"nothing is a zero: {table}")
    require_nothing_left()


@scenario(seconds=60)
def killed(lab: Lab) -> None:
    """kill -9 of the benchmark: the kernel removes all that it made."""
    bench = start_local(lab, "--seconds", "30", "--streams", "1", "--backend", "userspace")

    def iperf_runs() -> bool:
        return any("iperf3 -J -c" in line for line in remains(os.getpid()))

    bench.require(iperf_runs, 40, "iperf3 runs")
    expect(sum("aditd" in line for line in remains(os.getpid())) >= 2, "so do the daemons")
    os.kill(bench.pid, signal.SIGKILL)
    bench.wait(5)
    require_nothing_left()


def tunnels(lab: Lab) -> tuple[Adit, Adit]:
    """Left maps a port of its own to the right, where iperf3 will be."""
    net = pair(lab)
    left_spec, right_spec = ends.specs(f"{net.right_address}:{ends.PORT}")
    left_spec.extra.append("Public = eth0")
    target = [f"To = right:{IPERF_PORT}", "Source = masquerade", "Hairpin = on"]
    left_spec.maps.append(["Listen = tcp/15201", *target])
    left = Adit(net.left, lab.device("l"), left_spec)
    right = Adit(net.right, lab.device("r"), right_spec)
    right.up()
    left.up()
    ping(net.left, RIGHT)
    return left, right


def run_bench(where: Namespace, *args: str, check: bool = True) -> Completed:
    return where.run(tool(ADIT), "bench", *args, check=check, timeout=90)


def bench_json(where: Namespace, *args: str, check: bool = True) -> dict[str, Any]:
    done = run_bench(where, *args, "--json", "--seconds", "1", check=check)
    report: dict[str, Any] = json.loads(done.out)
    return report


def start_server(tunnel: Adit, *args: str) -> Process:
    server = tunnel.where.start(tool(ADIT), "bench", "server", tunnel.name, *args, log="bench-server")
    server.require(lambda: "on the other machine" in server.output(), 15, "the server is ready")
    return server


@scenario(seconds=120, heavy=True)
def peer(lab: Lab) -> None:
    """Between two machines: by name with all layers, and by address without root."""
    left, right = tunnels(lab)
    server = start_server(right, "--endpoint", "auto")
    expect("192.0.2.2" in server.output() and RIGHT in server.output(), server.output())
    report = bench_json(left.where, "right", "--streams", "1")
    for name, result in steps(report).items():
        require_figures(name, result)
    targets = {result["layer"]: result["target"] for result in report["results"]}
    expect(
        targets
        == {
            "bare": f"192.0.2.2:{IPERF_PORT}",
            "tunnel": f"{RIGHT}:{IPERF_PORT}",
            "mapped": "192.0.2.1:15201",
        },
        f"each layer by its own way: {targets}",
    )
    expect(report["peer"] == "right" and report["suite"], f"of the daemon: {report}")

    nobody = ("setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", tool(ADIT))
    options = ("--layers", "tunnel", "--streams", "1", "--seconds", "1", "--json")
    done = left.where.run(*nobody, "bench", RIGHT, *options, timeout=60)
    report = json.loads(done.out)
    for name, result in steps(report).items():
        require_figures(name, result)
    expect(report["suite"] is None, "without root nobody knows the cipher")
    expect(report["ceiling"]["mbps"] is None and report["ceiling"]["reason"], "nor the ceiling")
    done = left.where.run(*nobody, "bench", "right", *options, check=False)
    expect(done.code == 1 and "without root" in done.err, f"nor a name: {done}")

    server.signal(signal.SIGINT)
    expect(server.wait(10) == 0, server.output())
    expect("stopped after" in server.output(), server.output())


@scenario(seconds=90)
def no_result(lab: Lab) -> None:
    """Nobody listens, the server is busy, the name is wrong: reasons, never zeros."""
    left, right = tunnels(lab)
    done = run_bench(left.where, "right", "--seconds", "1", check=False)
    expect(done.code == 1 and "nothing was measured" in done.err, f"a failure: {done}")
    expect(done.out.count("no result: ") >= 16, f"each with its reason: {done.out}")
    expect("unable to connect" in done.out, f"the reason: {done.out}")
    expect(not re.search(r"(send|receive) +[\d.]", done.out), f"no figure at all: {done.out}")
    report = bench_json(left.where, "right", "--layers", "tunnel", check=False)
    for name, result in steps(report).items():
        expect(result["mbps"] is None and result["reason"], f"{name}: {result}")

    server = start_server(right)
    busy = left.where.start("iperf3", "-c", RIGHT, "-t", "40", log="busy")
    server.require(lambda: "run 1 at" in server.output(), 10, "somebody is served")
    options = ("--layers", "tunnel", "--streams", "1", "--seconds", "1")
    text = run_bench(left.where, "right", *options, check=False)
    expect(text.code == 1 and "server is busy" in text.out, f"busy: {text}")
    busy.stop()

    wrong = run_bench(left.where, "wrong", check=False)
    expect(wrong.code == 1 and "there are: right" in wrong.err, f"the names: {wrong}")
    neither = run_bench(left.where, check=False)
    expect(neither.code == 1 and "--local" in neither.err, f"what is missing: {neither}")
    taken = run_bench(right.where, "server", right.name, check=False)
    expect(taken.code == 1 and "in use" in taken.err, f"the port is taken: {taken}")


@scenario(seconds=30)
def crypto(lab: Lab) -> None:
    """Each suite with at least one implementation, one of them chosen."""
    where = lab.namespace("alone")
    report = json.loads(run_bench(where, "crypto", "--seconds", "0.02", "--json").out)
    for suite in ("chacha20-poly1305", "aes-256-gcm", "aes-128-gcm"):
        rows = [row for row in report["results"] if row["suite"] == suite]
        expect(sum(row["chosen"] for row in rows) == 1, f"one is chosen: {rows}")
        expect(all(row["seal_mb_per_s"] > 1 and row["open_mb_per_s"] > 1 for row in rows), f"{rows}")


if __name__ == "__main__":
    sys.exit(main())
