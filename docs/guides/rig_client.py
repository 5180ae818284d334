"""A rig for Understudy in Python, by the rig protocol (rig-protocol.md): serve() answers, the rest is an example.

    understudy sample "cmd:python3 rig_client.py" -o data/bar        one process per worker, or one that listens:
    python3 rig_client.py tcp:127.0.0.1:7000 &  understudy sample tcp:127.0.0.1:7000 -o data/bar --workers 2
"""
import json, math, os, socketserver, struct, sys

def serve(description, evaluate, source=None, sink=None):
    """Answers until the requests end. evaluate(values) gives vertices (x, y, z, ...) and bones (12 numbers each)."""
    if source is None:
        source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever prints goes to standard error: standard output belongs to the protocol
    def answer(tag, payload):
        sink.write(struct.pack("<4s4sI", b"rig1", tag, len(payload)) + payload); sink.flush()
    while len(head := source.read(12)) == 12:
        _, tag, length = struct.unpack("<4s4sI", head)
        payload = source.read(length)
        if tag == b"desc":
            answer(b"rig ", json.dumps(description).encode())
            continue
        (poses, controls), out = struct.unpack_from("<II", payload), []
        for pose in range(poses):
            try:
                vertices, bones = evaluate(struct.unpack_from(f"<{controls}f", payload, 8 + 4 * pose * controls))
            except Exception as problem:  # this pose cannot be had: say so, and go on
                answer(b"fail", struct.pack("<I", pose) + str(problem).encode())
                break
            out.append(struct.pack(f"<{len(vertices) + len(bones)}f", *vertices, *bones))
        else:
            answer(b"pose", struct.pack("<III", poses, len(vertices) // 3, len(bones) // 12) + b"".join(out))

def listen(address, description, evaluate):
    """The same for unix:PATH or tcp:HOST:PORT, a thread for every connection."""
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            serve(description, evaluate, self.rfile, self.wfile)
    kind, _, place = address.partition(":")
    host, _, port = place.rpartition(":")
    if kind == "unix":
        socketserver.ThreadingUnixStreamServer(place, Handler).serve_forever()
    socketserver.ThreadingTCPServer((host, int(port)), Handler).serve_forever()

# The example: a bar of 2 x 21 vertices, 20 cm tall, whose upper half bends and bulges.
REST = [(x, float(y), 0.0) for y in range(21) for x in (-2.0, 2.0)]
STILL = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
BAR = {"name": "bar", "vertices": REST, "faces": [[2 * y, 2 * y + 1, 2 * y + 3, 2 * y + 2] for y in range(20)],
       "bones": [{"name": "root", "parent": None, "rest": STILL}, {"name": "tip", "parent": 0, "rest": STILL[:7] + [10] + STILL[8:]}],
       "controls": [{"name": "bend", "kind": "joint", "bone": "tip", "channel": "rotate_z", "low": -80, "high": 80, "default": 0},
                    {"name": "bulge", "low": 0, "high": 1, "default": 0}]}

def bar(values):
    c, s, vertices = math.cos(math.radians(values[0])), math.sin(math.radians(values[0])), []
    for x, y, z in REST:
        t = min(max((y - 6) / 8, 0), 1)
        x, up = x * (1 + values[1] * math.exp(-((y - 15) / 3) ** 2)), y - 10
        vertices += [x + t * (c * x - s * up - x), y + t * (s * x + c * up - up), z + abs(s) * t * (1 - t)]
    return vertices, STILL + [c, -s, 0, 0, s, c, 0, 10, 0, 0, 1, 0]

if __name__ == "__main__":
    serve(BAR, bar) if len(sys.argv) < 2 else listen(sys.argv[1], BAR, bar)
