"""A face: ICT-FaceKit's head with its expressions as shape keys, driven by bones, by custom properties, and some of
them free; eyes and jaw as bones, correctives by products of values, a corrective smooth."""

import math

import bpy
import numpy as np
from mathutils import Vector

from common import bump, keyed_action, mesh_object, only_active, save, wave, widget

CENTIMETRE = 0.01
# Control bone: where it is (landmark of 68), and channel (index, sign) to shape keys that it drives per 2 cm.
BONES = {
    "mouth_corner.L": (54, {(0, 1): "mouthStretch_L", (2, 1): "mouthSmile_L", (2, -1): "mouthFrown_L"}),
    "mouth_corner.R": (48, {(0, -1): "mouthStretch_R", (2, 1): "mouthSmile_R", (2, -1): "mouthFrown_R"}),
    "lip_upper.L": (52, {(2, 1): "mouthUpperUp_L", (2, -1): "mouthRollUpper"}),
    "lip_upper.R": (50, {(2, 1): "mouthUpperUp_R"}),
    "lip_lower.L": (56, {(2, -1): "mouthLowerDown_L", (2, 1): "mouthShrugLower"}),
    "lip_lower.R": (58, {(2, -1): "mouthLowerDown_R"}),
    "brow_inner.L": (22, {(2, 1): "browInnerUp_L"}), "brow_inner.R": (21, {(2, 1): "browInnerUp_R"}),
    "brow_outer.L": (25, {(2, 1): "browOuterUp_L", (2, -1): "browDown_L"}),
    "brow_outer.R": (18, {(2, 1): "browOuterUp_R", (2, -1): "browDown_R"}),
    "lid.L": (44, {(2, -1): "eyeBlink_L", (2, 1): "eyeWide_L"}), "lid.R": (37, {(2, -1): "eyeBlink_R", (2, 1): "eyeWide_R"}),
    "cheek.L": (13, {(2, 1): "cheekRaiser_L", (1, -1): "cheekPuff_L"}),
    "cheek.R": (3, {(2, 1): "cheekRaiser_R", (1, -1): "cheekPuff_R"}),
    "nose": (30, {(2, 1): "noseSneer_L", (0, 1): "noseSneer_R"}),
}
# Custom properties of the bone "face" that drive one shape key each.
PROPERTIES = ("mouthFunnel", "mouthPucker", "mouthLeft", "mouthRight", "mouthRollLower", "mouthShrugUpper", "mouthClose",
              "mouthDimple_L", "mouthDimple_R", "mouthPress_L", "mouthPress_R", "eyeSquint_L", "eyeSquint_R",
              "cheekSquint_L", "cheekSquint_R")
# Correctives: a shape key that is the product of two others, as a share of the sum of their movements.
PRODUCTS = (("mouthSmile_L", "jawOpen", 0.25), ("mouthSmile_R", "jawOpen", 0.25), ("eyeBlink_L", "mouthSmile_L", 0.2),
            ("eyeBlink_R", "mouthSmile_R", 0.2), ("browDown_L", "eyeWide_L", 0.3), ("browDown_R", "eyeWide_R", 0.3))
REACH = 0.02


def build(data, path):
    source = np.load(data / "ict-facekit" / "face.npz")
    to_blender = lambda p: np.stack([p[..., 0], -p[..., 2], p[..., 1]], -1).astype(np.float64) * CENTIMETRE
    neutral = to_blender(source["neutral"])
    head = mesh_object("Head", neutral, source["quads"], source["uv"], source["quad_uv"])
    names = [str(name) for name in source["expression_names"]]
    deltas = {name: to_blender(delta) for name, delta in zip(names, source["expression_deltas"])}
    marks = neutral[source["landmarks68"]]
    parts = {str(n): slice(int(a), int(b)) for n, a, b in
             zip(source["part_names"], source["part_start"], source["part_end"])}
    eyes = {side: neutral[parts[f"eyeball_{long}"]].mean(0) for side, long in (("L", "left"), ("R", "right"))}

    rig = skeleton(marks, eyes)
    skin(head, rig, neutral, parts)
    head.shape_key_add(name="Basis")
    driven(head, rig, deltas)
    smooth = head.modifiers.new("CorrectiveSmooth", "CORRECTIVE_SMOOTH")
    smooth.iterations, smooth.factor = 10, 0.5
    actions(rig, head)
    save(path)


def skeleton(marks, eyes):
    rig = bpy.data.objects.new("FaceRig", bpy.data.armatures.new("FaceRig"))
    bpy.context.scene.collection.objects.link(rig)
    only_active(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones

    def bone(name, at, to, parent=None):
        made = bones.new(name)
        made.head, made.tail, made.parent = at, to, bones[parent] if parent else None
        return made

    bone("root", (0, 0.05, -0.2), (0, -0.05, -0.2))
    bone("neck", (0, 0.0, -0.16), (0, 0.0, -0.06), "root")
    bone("head", (0, 0.0, -0.06), (0, 0.0, 0.14), "neck")
    bone("face", (0, -0.16, 0.14), (0, -0.16, 0.16), "head")
    bone("jaw", (0, -0.01, -0.02), Vector(marks[8]), "head")
    bone("eyes", (0, -0.6, eyes["L"][2]), (0, -0.65, eyes["L"][2]), "head")
    for side, centre in eyes.items():
        centre = Vector(centre)
        bone(f"eye.{side}", centre, centre + Vector((0, -0.03, 0)), "head")
        target = Vector((centre.x, -0.6, centre.z))
        bone(f"eye_target.{side}", target, target + Vector((0, -0.03, 0)), "eyes")
    for name, (mark, _) in BONES.items():
        # Upright, so that the bone's own x, y, z are across, forward and up once it is rolled.
        at = Vector(marks[mark]) + Vector((0, -0.01, 0))
        bone(name, at, at + Vector((0, 0.02, 0)), "head").roll = 0.0
    bpy.ops.object.mode_set(mode="OBJECT")
    for name in [b.name for b in rig.data.bones]:
        rig.data.bones[name].use_deform = name in ("neck", "head", "eye.L", "eye.R")
        pose = rig.pose.bones[name]
        pose.rotation_mode = "XYZ"
        if name not in ("eye.L", "eye.R"):
            pose.custom_shape = widget()
        pose.lock_scale = (True,) * 3
        if name in BONES or name.startswith("eye_target") or name in ("eyes", "face"):
            pose.lock_rotation = (True,) * 3
        if name in ("neck", "head", "jaw", "face", "root"):
            pose.lock_location = (name != "jaw" and name != "root",) * 3
        if name == "jaw":
            limit = pose.constraints.new("LIMIT_ROTATION")
            limit.owner_space = "LOCAL"
            limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
            limit.min_x, limit.max_x = 0.0, math.radians(25)
            pose.lock_location = (False, True, False)
    for name, (_, channels) in BONES.items():
        pose = rig.pose.bones[name]
        used = {index for index, _ in channels}
        # Bones point back (+y of the world), so that their x, y, z are x, y and z of the world.
        pose.lock_location = [index not in used for index in range(3)]
        limit = pose.constraints.new("LIMIT_LOCATION")
        limit.owner_space = "LOCAL"
        for index, axis in enumerate("xyz"):
            low = -REACH if (index, -1) in channels else 0.0
            high = REACH if (index, 1) in channels else 0.0
            setattr(limit, f"use_min_{axis}", True)
            setattr(limit, f"use_max_{axis}", True)
            setattr(limit, f"min_{axis}", low)
            setattr(limit, f"max_{axis}", high)
    for side in "LR":
        track = rig.pose.bones[f"eye.{side}"].constraints.new("DAMPED_TRACK")
        track.target, track.subtarget = rig, f"eye_target.{side}"
    for name in ("eyes", "eye_target.L", "eye_target.R"):
        limit = rig.pose.bones[name].constraints.new("LIMIT_LOCATION")
        limit.owner_space = "LOCAL"
        reach = 0.15 if name == "eyes" else 0.02
        for axis in "xyz":
            setattr(limit, f"use_min_{axis}", True)
            setattr(limit, f"use_max_{axis}", True)
            setattr(limit, f"min_{axis}", -reach)
            setattr(limit, f"max_{axis}", reach)
    face = rig.pose.bones["face"]
    for name in PROPERTIES:
        face[name] = 0.0
        face.id_properties_ui(name).update(min=0.0, max=1.0, soft_min=0.0, soft_max=1.0)
    return rig


def skin(head, rig, neutral, parts):
    """Neck below, head above, with a soft border; eyeballs follow their bones."""
    up = np.clip((neutral[:, 2] + 0.12) / 0.06, 0, 1)
    groups = {name: head.vertex_groups.new(name=name) for name in ("neck", "head", "eye.L", "eye.R")}
    balls = {"eye.L": parts["eyeball_left"], "eye.R": parts["eyeball_right"]}
    for name, part in balls.items():
        up[part] = -1
        groups[name].add(list(range(part.start, part.stop)), 1.0, "REPLACE")
    for index, share in enumerate(up):
        if share >= 0:
            groups["head"].add([index], float(share), "REPLACE")
            groups["neck"].add([index], float(1 - share), "REPLACE")
    head.parent = rig
    modifier = head.modifiers.new("Armature", "ARMATURE")
    modifier.object = rig


def driven(head, rig, deltas):
    """A shape key per expression, with drivers where a bone or a property moves it."""
    rest = np.empty(3 * len(head.data.vertices), np.float32)
    head.data.vertices.foreach_get("co", rest)

    def key(name, delta):
        made = head.shape_key_add(name=name, from_mix=False)
        made.data.foreach_set("co", (rest.reshape(-1, 3) + delta).astype(np.float32).ravel())
        made.slider_min, made.slider_max = 0.0, 1.0
        made.value = 0.0
        return made

    def drive(shape, variables, expression):
        driver = shape.driver_add("value").driver
        driver.type = "SCRIPTED"
        for name, kind, target in variables:
            variable = driver.variables.new()
            variable.name = name
            if kind == "bone":
                variable.type = "TRANSFORMS"
                goal = variable.targets[0]
                goal.id, goal.bone_target, goal.transform_type, goal.transform_space = rig, *target, "LOCAL_SPACE"
            elif kind == "property":
                goal = variable.targets[0]
                goal.id, goal.data_path = rig, f'pose.bones["face"]["{target}"]'
            else:
                goal = variable.targets[0]
                goal.id_type, goal.id = "KEY", head.data.shape_keys
                goal.data_path = f'key_blocks["{target}"].value'
        driver.expression = expression

    by_bone = {shape: (bone, *channel) for bone, (_, channels) in BONES.items() for channel, shape in channels.items()}
    for name, delta in deltas.items():
        if name.startswith(("PupilDilate", "eyeLook")):
            continue
        shape = key(name, delta)
        if name == "jawOpen":
            drive(shape, [("turn", "bone", ("jaw", "ROT_X"))], f"turn / {math.radians(25):.6f}")
        elif name in ("jawLeft", "jawRight"):
            sign = 1 if name == "jawLeft" else -1
            drive(shape, [("side", "bone", ("jaw", "LOC_X"))], f"max(0, {sign} * side / {REACH})")
        elif name == "jawForward":
            drive(shape, [("out", "bone", ("jaw", "LOC_Z"))], f"max(0, out / {REACH})")
        elif name in by_bone:
            bone, index, sign = by_bone[name]
            drive(shape, [("slide", "bone", (bone, f"LOC_{'XYZ'[index]}"))], f"max(0, {sign} * slide / {REACH})")
        elif name in PROPERTIES:
            drive(shape, [("value", "property", name)], "value")
    for first, second, share in PRODUCTS:
        shape = key(f"{first}*{second}", share * (deltas[first] + deltas[second]))
        shape.slider_min = -1.0
        drive(shape, [("a", "key", first), ("b", "key", second)], "-a * b")


def actions(rig, head):
    move, turn = "location", "rotation"
    smile = {("mouth_corner.L", move, 2): bump(0.018), ("mouth_corner.R", move, 2): bump(0.018),
             ("cheek.L", move, 2): bump(0.012), ("cheek.R", move, 2): bump(0.012), ("lid.L", move, 2): bump(-0.006),
             ("lid.R", move, 2): bump(-0.006), ("head", turn, 0): wave(6, 1)}
    keyed_action(rig, "smile", 60, smile)
    keyed_action(rig, "talk", 120, {
        ("jaw", turn, 0): lambda t: 9 * (1 - math.cos(10 * math.pi * t)), ("mouth_corner.L", move, 0): wave(0.008, 3),
        ("mouth_corner.R", move, 0): wave(-0.008, 3), ("lip_upper.L", move, 2): wave(0.008, 4),
        ("lip_upper.R", move, 2): wave(0.008, 4), ("lip_lower.L", move, 2): wave(-0.008, 5),
        ("lip_lower.R", move, 2): wave(-0.008, 5), ("brow_inner.L", move, 2): bump(0.012),
        ("brow_inner.R", move, 2): bump(0.012), ("head", turn, 1): wave(8, 1), ("neck", turn, 0): wave(5, 1),
        ("lid.L", move, 2): bump(-0.02, 0.4, 0.5), ("lid.R", move, 2): bump(-0.02, 0.4, 0.5),
        ("eyes", move, 0): wave(0.08, 1),
    })
    keyed_action(rig, "test", 90, {
        ("jaw", turn, 0): bump(22), ("mouth_corner.L", move, 2): bump(0.016), ("mouth_corner.R", move, 2): wave(-0.016, 1),
        ("brow_outer.L", move, 2): bump(-0.016), ("brow_outer.R", move, 2): bump(0.016), ("nose", move, 2): bump(0.014),
        ("lid.R", move, 2): bump(-0.018), ("head", turn, 2): wave(10, 1), ("eyes", move, 2): wave(0.06, 1),
        ("cheek.L", move, 1): bump(-0.015),
    })
