"""Understudy's end inside Blender: looks at a file (`survey`), or answers by the rig protocol (`serve`).

Run by Blender's own Python or by that of the `bpy` wheel; started by `crates/jobs/src/blender`. What a survey needs
and finds are JSON files; progress and warnings are lines on standard error that begin with '@'.
"""

import json
import os
import sys

# Whatever prints, Blender's own C code included, goes to standard error: standard output belongs to the protocol.
# A Blender program prints before this line runs; it is started with the protocol's pipe as descriptor 3 then.
if os.environ.get("UNDERSTUDY_PIPE") == "3":
    SINK = os.fdopen(3, "wb")
else:
    SINK = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def main():
    words = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else sys.argv[1:]
    mode, request = words[0], words[1]
    with open(request, encoding="utf-8") as file:
        request = json.load(file)
    if mode == "survey":
        import survey
        survey.run(request, words[2])
    else:
        import serve
        serve.run(request, sys.stdin.buffer, SINK)


if __name__ == "__main__":
    try:
        main()
    except Exception as problem:
        import traceback
        traceback.print_exc()
        text = " ".join(str(problem).split()) or type(problem).__name__
        print(f"@error {text}", file=sys.stderr, flush=True)
        print(text, file=sys.stderr, flush=True)
        sys.stderr.flush()
        os._exit(3)
    SINK.flush()
    # Blender's own clean-up takes a while, and nothing of it is ours.
    os._exit(0)
