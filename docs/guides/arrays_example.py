"""Writes recorded poses as arrays for `understudy import` (from-your-own-program.md): a bar that bends and bulges.

    python3 arrays_example.py bar.npz
"""
import sys, numpy

FRAMES = 1500
random = numpy.random.default_rng(1)
bend, bulge = random.uniform(-80, 80, FRAMES), random.uniform(0, 1, FRAMES)

# 2 x 21 vertices, 20 cm tall; the upper half turns about (0, 10, 0), the skin bulges and slides.
rest = numpy.array([(x, float(y), 0.0) for y in range(21) for x in (-2.0, 2.0)])
faces = numpy.array([(2 * y, 2 * y + 1, 2 * y + 3, 2 * y + 2) for y in range(20)])
t = numpy.clip((rest[:, 1] - 6) / 8, 0, 1)
c, s = numpy.cos(numpy.radians(bend))[:, None], numpy.sin(numpy.radians(bend))[:, None]
x = rest[:, 0] * (1 + bulge[:, None] * numpy.exp(-((rest[:, 1] - 15) / 3) ** 2))
up = rest[:, 1] - 10
vertices = numpy.stack([x + t * (c * x - s * up - x), rest[:, 1] + t * (s * x + c * up - up), abs(s) * t * (1 - t)], 2)

bones = numpy.tile(numpy.eye(4)[:3], (FRAMES, 2, 1, 1))
bones[:, 1, 0, 0], bones[:, 1, 0, 1], bones[:, 1, 0, 3] = c[:, 0], -s[:, 0], 0
bones[:, 1, 1, 0], bones[:, 1, 1, 1], bones[:, 1, 1, 3] = s[:, 0], c[:, 0], 10
rest_bones = numpy.tile(numpy.eye(4)[:3], (2, 1, 1))
rest_bones[1, 1, 3] = 10

numpy.savez(sys.argv[1], vertices=vertices.astype("f4"), faces=faces, rest=rest, bones=bones.astype("f4"),
            rest_bones=rest_bones, bone_names=numpy.array(["root", "tip"]), parents=numpy.array([-1, 0]),
            controls=numpy.stack([bulge], 1), control_names=numpy.array(["bulge"]), units="cm", up="y")
