#!/usr/bin/env python3
"""A second verifier of audit logs: verify.py DIR VKEY [OUTSIDE]. Standard library only; it shares no code with the first.

Exit code: 0 ok, 1 tampered, 2 wrong command line or not readable, 3 incomplete, as of pipeguard (docs/cli.md). VKEY is a verifier key of the log, name+hash+base64; OUTSIDE a file of checkpoints held elsewhere.
"""
import base64, hashlib, json, os, re, sys

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):  # Edwards curve, extended coordinates (RFC 8032, 5.1.4)
    s, t = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    u, v = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = t - s, v - u, v + u, t + s
    return e * f % P, g * h % P, f * g % P, e * h % P


def mul(n, a):
    q = (0, 1, 1, 0)
    while n:
        if n & 1:
            q = add(q, a)
        a, n = add(a, a), n >> 1
    return q


def point(b):
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - x2) % P or (x == 0 and sign):
        raise ValueError("no point")
    return (P - x if x & 1 != sign else x, y, 1, (P - x if x & 1 != sign else x) * y % P)


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def ed25519(key, text, sig):
    s, r = int.from_bytes(sig[32:], "little"), point(sig[:32])
    k = int.from_bytes(hashlib.sha512(sig[:32] + key + text).digest(), "little") % L
    a, b = mul(s, BASE), add(r, mul(k, point(key)))
    return len(sig) == 64 and s < L and (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def tampered(why):
    print("tampered:", why)
    sys.exit(1)


def notes(content):
    """Returns text and lines of signature of each signed note, with an empty line behind it or none."""
    text, sigs, blank = [], [], False
    for line in content.split(b"\n")[:-1] + [b""]:
        is_sig = blank and line.startswith(b"\xe2\x80\x94 ")
        if (sigs or blank and line) and not is_sig:
            if sigs:
                yield b"\n".join(text) + b"\n", sigs
            text, sigs, blank = [], [], False
        if is_sig:
            sigs.append(line)
        elif line:
            text.append(line)
        else:
            blank = bool(text)


def checkpoints(file, vkey):
    """Returns {size: root} of the checkpoints in a file, all of which the key must have signed."""
    name, _, key = vkey.split("+", 2)
    key, out = base64.b64decode(key)[1:], {}
    want = hashlib.sha256(name.encode() + b"\n\x01" + key).digest()[:4]
    with open(file, "rb") as f:
        content = f.read()
    for text, sigs in notes(content):
        origin, size, root = text.decode("utf-8", "replace").split("\n")[:3]
        lines = [line.split(b" ") for line in sigs]
        good = [base64.b64decode(s[2]) for s in lines if s[1].decode() == name and base64.b64decode(s[2])[:4] == want]
        if origin != name or not good or not ed25519(key, text, good[0][4:]):
            tampered("a checkpoint is not signed by the key")
        out[int(size)] = base64.b64decode(root)
    return out


MAX_TORN = 16 * (2**20 + 4 * 8192)  # no writer leaves more, and no start reads more of it


def first_record(text):
    line, newline, _ = text.partition(b"\n")
    if not newline or b"\0" in line:
        return None
    try:
        record = json.loads(line)
    except ValueError:
        record = {}  # none that counts, if another segment declares this one void, and a fault else
    return record if isinstance(record, dict) else {}


def segments(directory):
    """Returns (name, the bytes of it that are of the log), in order. Each says what of the one before it counts, and which files do not. What none of
    the log says anything of has no name."""
    texts = {}
    for name in sorted(n for n in os.listdir(directory) if re.fullmatch(r"audit-[0-9]{20}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl", n)):
        with open(os.path.join(directory, name), "rb") as f:
            texts[name] = f.read()
    logs = {n: (first_record(t) or {}).get("log") or {} for n, t in texts.items()}
    void = {v for n, log in logs.items() for v in log.get("void", []) if v != n}
    names = [n for n, t in texts.items() if n not in void and first_record(t) is not None]
    named = {v for n in names for v in logs[n].get("void", [])}
    for after in names:
        held = logs[after].get("void_held", [])
        for name, was in zip(logs[after].get("void", []), held):
            if name in texts and name not in names and was:
                text, (length, _, digest) = texts[name], was.partition(" ")
                if len(text) > int(length) or len(text) == int(length) and digest and hashlib.sha256(text).hexdigest() != digest:
                    tampered(f"{name}: it is not what it was when {after} declared it void")
                if len(text) < int(length) or not digest and len(text) > MAX_TORN:  # the machine failed since, or no hash holds it
                    yield None, b""
    if any(t for n, t in texts.items() if n not in names and n not in named):
        yield None, b""
    for name, after in zip(names, names[1:] + [None]):
        text, log = texts[name], logs.get(after, {})
        if after and log.get("previous_segment") != name:
            tampered(f"{after}: does not follow {name}")
        if after:
            length = log["previous_bytes"]
            if not 0 <= len(text) - length <= log.get("torn_bytes", 0):
                tampered(f"{name}: its length is not the one that {after} declares")
            if len(text) - length > MAX_TORN and "previous_torn_hash" not in log:
                yield None, b""
            text = text[:length]
        yield name, text


def start(directory, first):
    """Returns size and tree of the records that were pruned, and of those that are about to be."""
    if not os.path.exists(os.path.join(directory, "start")):
        tampered(f"nothing says what became of the records before {first}")
    with open(os.path.join(directory, "start"), errors="replace") as f:
        title, size, *hashes = f.read().splitlines()
    levels = [i for i in range(63, -1, -1) if int(size) >> i & 1]
    if title != "pipeguard.dev/audit-start/v1" or int(size) < first - 1 or len(levels) != len(hashes):
        tampered("the start is not that of the first record")
    return int(size), [(level, base64.b64decode(h)) for level, h in zip(levels, hashes)]


def verify(directory, vkey, outside):
    for name in os.listdir(directory):
        if re.match(r"audit-|checkpoints$|start$", name) and not os.path.isfile(os.path.join(directory, name)):
            tampered(f"{name} is no file")
    heads = checkpoints(os.path.join(directory, "checkpoints"), vkey) if os.path.exists(os.path.join(directory, "checkpoints")) else {}
    held = checkpoints(outside, vkey) if outside else {}
    tree, size, seq, prev, prunes, taken, begin, open_end, start_size, strange = [], 0, 0, bytes(32), [], [], 1, False, 0, False  # tree: (level, hash) of whole subtrees
    for name, text in segments(directory):
        if name is None:
            strange = True
            continue
        lines = text.split(b"\n")
        if seq == 0 and int(name[6:26]) > 1:
            begin, prev = int(name[6:26]), None
            seq, (size, tree) = begin - 1, start(directory, begin)
            start_size = size
        if open_end or int(name[6:26]) != seq + 1:
            tampered(f"{name}: records before it or at its end are missing")
        open_end, closed = lines.pop() != b"", False
        for line in lines:
            if b"\0" in line:  # a page that was lost, perhaps: what it held is missed by a checkpoint
                open_end = True
                break
            try:
                record = json.loads(line)
            except ValueError:
                tampered(f"{name}: record {seq + 1} is none")
            if not isinstance(record, dict) or record.get("seq") != seq + 1 or prev is not None and record.get("prev") != base64.b64encode(prev).decode():
                tampered(f"{name}: record {seq + 1} does not fit")
            if record.get("stage") == "LogPrune":
                prunes.append((seq + 1, record["log"]["pruned"]["last_seq"]))
            opened = record.get("log", {}) if record.get("stage") == "LogOpen" else {}
            if 0 < opened.get("unsigned", 0) <= opened.get("previous_seq", 0) <= seq:
                taken.append((seq + 1, opened["previous_seq"] - opened["unsigned"] + 1, opened["previous_seq"]))
            if closed:
                tampered(f"{name}: record {seq + 1} stands behind the one that closed the segment")
            closed = record.get("stage") == "LogClose"
            seq, prev = seq + 1, hashlib.sha256(b"\0" + line).digest()
            if seq > size:
                node, size = (0, prev), seq
                while tree and tree[-1][0] == node[0]:
                    node = (node[0] + 1, hashlib.sha256(b"\1" + tree.pop()[1] + node[1]).digest())
                tree.append(node)
            if seq == size and (seq in heads or seq in held):
                root = tree[-1][1]
                for _, left in tree[-2::-1]:
                    root = hashlib.sha256(b"\1" + left + root).digest()
                if root != heads.get(seq, root) or root != held.get(seq, root):
                    tampered(f"{name}: the tree of {seq} records is not the one that was signed")
    if max([0, *heads, *held]) > seq:
        tampered(f"records after {seq} are gone")
    signed = max([0, *heads, *held])
    unsigned = []  # what a later start signed than the one that wrote it is anybody's word, and so is what no checkpoint covers
    for at, first, last in reversed(taken):
        if at <= signed and not any(a <= at <= b for a, b in unsigned):
            unsigned.append((first, last))
    pruned = max([0, *(last for at, last in prunes if at <= signed and not any(a <= at <= b for a, b in unsigned))])
    if signed and pruned < begin - 1:
        tampered(f"records before {begin} are gone, and nothing says that they were removed")
    if begin <= start_size and max([0, *heads, *held]) <= start_size:  # only the hash in the record behind them holds those
        tampered(f"records {begin} to {start_size} are held by no checkpoint of more")
    if strange or open_end or begin > 1 or not held or max(held) < seq:
        print(f"incomplete: records before {begin} and after {min(seq, max([0, *held]))} are not there, or not covered by a checkpoint held elsewhere")
        sys.exit(3)
    print(f"ok: {seq} records")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        print("usage: verify.py DIR VKEY [OUTSIDE]", file=sys.stderr)
        sys.exit(2)
    try:
        verify(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    except OSError as e:
        print("not read:", e, file=sys.stderr)
        sys.exit(2)
    except (ValueError, IndexError, KeyError, AttributeError, TypeError) as e:  # text that nobody signed, in no form that anybody writes
        tampered(e)
