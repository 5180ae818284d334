"""The bar of docs/guides/rig_client.py with one accident: disturbed_rig.py ACCIDENT NOTE [always].

The accident happens to poses whose bend lies in a narrow range, once (the file NOTE says that it happened), or always.
"""
import os, pathlib, signal, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "docs" / "guides"))
import rig_client

accident, note = sys.argv[1], sys.argv[2]


def evaluate(values):
    vertices, bones = rig_client.bar(values)
    if not 10 < values[0] < 14:
        return vertices, bones
    try:
        os.close(os.open(note, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if "always" not in sys.argv:
            return vertices, bones
    if accident == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if accident == "hang":
        time.sleep(600)
    if accident == "nan":
        vertices[4] = float("nan")
    if accident == "count":
        vertices = vertices[:-3]
    if accident == "print":
        os.write(rig_client_output, b"Traceback: this is no frame")
    if accident == "raise":
        raise ValueError("the solver did not converge")
    return vertices, bones


# serve() keeps standard output for itself as a new number; the accident "print" writes to it past the protocol.
rig_client_output = os.dup(1)
rig_client.serve(rig_client.BAR, evaluate)
