"""The tables that a person reads."""

from __future__ import annotations

from collections.abc import Callable

from .figures import Number, Results, ratio, summary
from .goals import GOALS
from .plan import ADIT, LINKS, MEASURES, SUBJECTS

TITLES = {
    "tcp": ("one TCP stream", "per byte"),
    "bidirectional": ("a stream each way", "per byte"),
    "eight_streams": ("eight streams", "per byte"),
    "udp1372": ("inner UDP 1372 B", "per packet"),
    "udp64": ("inner UDP 64 B", "per packet"),
    "mapped": ("mapped port", "per byte"),
    "ping": ("ping", "per round trip"),
}
NAMES = {"xfrm_aes256gcm": "IPsec (GCM)", "wireguard": "WireGuard", "plain": "plain"}
LINK_NAMES = {
    "default": "veth as it is: super-packets cross it",
    "nic_like": "NIC-like: no packet longer than the MTU crosses it, GRO on",
}


def _number(value: Number) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 1000 else f"{value:,.0f}"


def _rows(rows: list[list[str]]) -> str:
    """Columns of equal width: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _figures(results: Results, link: str) -> str:
    subjects = [s for s in SUBJECTS if any(results.value(link, s, m) for m in MEASURES)]
    rows = [["instructions", *(NAMES.get(subject, subject) for subject in subjects)]]
    for measure in MEASURES:
        values = [results.value(link, subject, measure) for subject in subjects]
        if all(value is None for value in values):
            continue
        title, unit = TITLES[measure]
        cells = []
        for subject, value in zip(subjects, values):
            times = ratio(results.value(link, "wireguard", measure), value)
            tail = f" ({times:.2f}x)" if subject in ADIT and times is not None else ""
            cells.append(_number(value) + tail)
        rows.append([f"{title}, {unit}", *cells])
    return _rows(rows) if len(rows) > 1 else ""


def _retransmits(results: Results, link: str) -> str:
    parts = []
    for subject in SUBJECTS:
        values = [results.value(link, subject, m, "retransmits") for m in MEASURES]
        known = [int(value) for value in values if value is not None]
        if known:
            parts.append(f"{NAMES.get(subject, subject)} {sum(known)}")
    return f"retransmits: {', '.join(parts)}" if parts else ""


def _ciphers(results: Results) -> str:
    told = summary(results)
    lines = []
    for title, key, form in (
        ("the AEAD alone, per byte and pass", "aead", _number),
        ("floor (plain + 2 passes), per byte", "floor", _number),
        ("adit / floor", "ratio_to_floor", _number),
    ):
        known = {suite: value for suite, value in told[key].items() if value is not None}
        if known:
            lines.append(f"{title}: " + ", ".join(f"{s} {form(v)}" for s, v in known.items()))
    return "\n".join(lines)


def _goals(results: Results) -> str:
    rows = [["goal", "is", "to be", ""]]
    for goal in GOALS:
        value = goal.ratio(results)
        if value is not None:
            sign = ">=" if goal.at_least else "<="
            verdict = "yes" if goal.reached(value) else "NO"
            rows.append([goal.what, _number(value), f"{sign} {_number(goal.limit)}", verdict])
    return _rows(rows) if len(rows) > 1 else ""


def render(results: Results) -> str:
    """All that was measured. In brackets: WireGuard's figure / ours."""
    parts = [f"{results.kernel}, one processor; instructions of the whole machine"]
    for link in LINKS:
        figures = _figures(results, link)
        if figures:
            parts.append("\n".join((LINK_NAMES[link], figures, _retransmits(results, link))))
    makers: tuple[Callable[[Results], str], ...] = (_ciphers, _goals)
    parts += [text for text in (maker(results) for maker in makers) if text]
    return "\n\n".join(parts)
