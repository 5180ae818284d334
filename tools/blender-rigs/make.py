"""Makes Blender files with real rigs, for tests and benchmarks of rigs from the wild.

    python make.py human hero.blend --data ../../../shared/data      with the bpy wheel
    blender --background --python make.py -- face face.blend         with a Blender program

RIG is human (Rigify, lattice, corrective smooth), face (drivers, shape keys, corrective smooth), many-bones (2,000
bones, 5,000 constraints) or tiny (one of everything, for tests). Where `understudy info --install-blender` put the wheel, its Python runs this.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def main():
    own = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(prog="make.py", description=__doc__.splitlines()[0])
    parser.add_argument("rig", choices=["human", "face", "many-bones", "tiny"])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"), help="folder of real meshes")
    arguments = parser.parse_args(own)
    import bpy  # noqa: F401  (argparse first: --help needs no Blender)
    import common
    import face
    import human
    import many_bones
    import tiny
    common.empty_file()
    build = {"human": human.build, "face": face.build, "many-bones": many_bones.build, "tiny": tiny.build}[arguments.rig]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    build(arguments.data, arguments.output.absolute())


if __name__ == "__main__":
    main()
