"""A Rigify human: Blender's own human metarig fitted to the MakeHuman body, generated, bound with automatic weights; a
corrective smooth, and a lattice over the belly whose points are hooked to three bones that deform nothing else."""

import addon_utils
import bpy
import numpy as np
from mathutils import Vector
from mathutils.bvhtree import BVHTree

from common import bump, keyed_action, mesh_object, only_active, save, wave, widget

DECIMETRE = 0.1
# Bones of the metarig on the left side and in the middle: head and tail as bones of MakeHuman, "bone>" for its tail.
PLACES = {
    "spine": ("spine05", "spine04"), "spine.001": ("spine04", "spine03"), "spine.002": ("spine03", "spine02"),
    "spine.003": ("spine02", "neck01"), "spine.004": ("neck01", "neck02"), "spine.005": ("neck02", "head"),
    "spine.006": ("head", "head>"),
    "shoulder.L": ("clavicle.L", "clavicle.L>"), "upper_arm.L": ("upperarm01.L", "lowerarm01.L"),
    "forearm.L": ("lowerarm01.L", "wrist.L"), "hand.L": ("wrist.L", "metacarpal2.L>"),
    "thigh.L": ("upperleg01.L", "lowerleg01.L"), "shin.L": ("lowerleg01.L", "foot.L"),
    "foot.L": ("foot.L", "toe2-1.L"), "toe.L": ("toe2-1.L", "toe2-3.L>"),
    "breast.L": ("breast.L", "breast.L>"), "pelvis.L": ("spine05", "pelvis.L>"),
}
for number, finger in enumerate(("thumb", "f_index", "f_middle", "f_ring", "f_pinky"), 1):
    for joint in (1, 2, 3):
        bone = f"finger{number}-{joint}.L"
        PLACES[f"{finger}.0{joint}.L"] = (bone, bone + ">")
for number in (1, 2, 3, 4):
    PLACES[f"palm.0{number}.L"] = (f"metacarpal{number}.L", f"metacarpal{number}.L>")
INSIDE = ("eye", "teeth", "tongue", "jaw", "face")


def build(data, path):
    body = np.load(data / "makehuman" / "human.npz")
    to_blender = lambda p: np.stack([p[..., 0], -p[..., 2], p[..., 1]], -1) * DECIMETRE
    kept = body["body_vertex_ids"]
    vertices = to_blender(body["verts"][kept].astype(np.float64))
    floor = np.array([0, 0, -vertices[:, 2].min()])
    renumbered = np.full(len(body["verts"]), -1)
    renumbered[kept] = np.arange(len(kept))
    quads = renumbered[body["quads"][body["quad_group"] == "body"]]
    human = mesh_object("Human", vertices + floor, quads)

    names = list(body["bone_names"])
    heads, tails = (to_blender(body[key].astype(np.float64)) + floor for key in ("bone_head", "bone_tail"))
    place = lambda name: Vector(tails[names.index(name[:-1])] if name.endswith(">") else heads[names.index(name)])

    addon_utils.enable("rigify", default_set=True)
    bpy.ops.object.armature_human_metarig_add()
    metarig = bpy.context.object
    bpy.ops.object.mode_set(mode="EDIT")
    fit(metarig.data.edit_bones, place, human)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.rigify_generate()
    bpy.ops.object.mode_set(mode="OBJECT")
    rig = next(o for o in bpy.data.objects if o.type == "ARMATURE" and o != metarig)
    rig.name = "Rig"
    bpy.data.objects.remove(metarig)

    only_active(rig)
    human.select_set(True)
    bpy.ops.object.parent_set(type="ARMATURE_AUTO")
    bound = sum(bool(v.groups) for v in human.data.vertices)
    print(f"Human: {len(human.data.vertices)} vertices, {bound} of them bound by automatic weights")
    follow_neighbours(human)
    belly(human, rig)
    smooth = human.modifiers.new("CorrectiveSmooth", "CORRECTIVE_SMOOTH")
    smooth.iterations, smooth.factor = 8, 0.5
    actions(rig)
    save(path)


def fit(bones, place, human):
    """Moves the metarig's bones to where MakeHuman has them, and the face's onto the surface."""
    connected = [bone.name for bone in bones if bone.use_connect]
    tree = BVHTree.FromPolygons([v.co for v in human.data.vertices], [p.vertices for p in human.data.polygons])
    mirrored = lambda p: Vector((-p.x, p.y, p.z))
    eye, chin = place("eye.L"), place("jaw>")
    front = tree.ray_cast(Vector((eye.x, -1, eye.z)), Vector((0, 1, 0)))[0]
    old_eye, old_chin = Vector((0.052, -0.145, 1.894)), Vector((0.0, -0.152, 1.739))
    scale = Vector((eye.x / old_eye.x, 0.75, (eye.z - chin.z) / (old_eye.z - old_chin.z)))
    face = next(b for b in bones if b.name == "face")
    for bone in [b for b in face.children_recursive] + [face]:
        ends = []
        for end in (bone.head, bone.tail):
            moved = Vector((end.x * scale.x, front.y + (end.y - old_eye.y) * scale.y,
                            eye.z + (end.z - old_eye.z) * scale.z))
            if not bone.name.startswith(INSIDE) or bone.name.startswith("jaw."):
                nearest = tree.find_nearest(moved)[0]
                moved = Vector((0.0, nearest.y, nearest.z)) if abs(end.x) < 1e-4 else nearest
            ends.append(moved)
        bone.use_connect = False
        bone.head, bone.tail = ends
    for side in "LR":
        look = next(b for b in bones if b.name == f"eye.{side}")
        centre = eye if side == "L" else mirrored(eye)
        look.head, look.tail = centre, centre + Vector((0, -0.024, 0))
    for name, (head, tail) in PLACES.items():
        for side in "LR" if name.endswith(".L") else " ":
            bone = bones[name[:-1] + side if side != " " else name]
            ends = [place(head), place(tail)]
            if side == "R":
                ends = [mirrored(end) for end in ends]
            bone.use_connect = False
            bone.head, bone.tail = ends
    foot = place("foot.L")
    for side, sign in (("L", 1), ("R", -1)):
        heel = bones[f"heel.02.{side}"]
        heel.head, heel.tail = (Vector((sign * (foot.x + d), foot.y + 0.05, 0)) for d in (-0.03, 0.03))
    for name in connected:
        bones[name].use_connect = True
    face.head = place("head")
    face.tail = face.head + Vector((0, 0, 0.06))


def follow_neighbours(human):
    """Automatic weights leave a few vertices alone: each gets those of its nearest bound neighbour."""
    from mathutils.kdtree import KDTree
    bound = [v for v in human.data.vertices if v.groups]
    tree = KDTree(len(bound))
    for index, vertex in enumerate(bound):
        tree.insert(vertex.co, index)
    tree.balance()
    for vertex in human.data.vertices:
        if not vertex.groups:
            for group in bound[tree.find(vertex.co)[1]].groups:
                human.vertex_groups[group.group].add([vertex.index], group.weight, "REPLACE")


def belly(human, rig):
    """A lattice over the belly, carried by the spine; its front points are hooked to bones that move no vertex else."""
    spine = rig.data.bones["DEF-spine.001"]
    centre = (spine.head_local + spine.tail_local) / 2 + Vector((0, -0.03, 0.0))
    only_active(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    for name, shift in (("belly.L", 0.09), ("belly", 0.0), ("belly.R", -0.09)):
        bone = rig.data.edit_bones.new(name)
        bone.head = centre + Vector((shift, -0.16, 0))
        bone.tail = bone.head + Vector((0, -0.06, 0))
        bone.parent = rig.data.edit_bones["DEF-spine.001"]
        bone.use_deform = False
    bpy.ops.object.mode_set(mode="OBJECT")
    shown = next(c for c in rig.data.collections_all if c.name == "Torso")
    for name in ("belly.L", "belly", "belly.R"):
        shown.assign(rig.data.bones[name])
        control = rig.pose.bones[name]
        control.custom_shape = widget()
        control.lock_rotation = control.lock_scale = (True,) * 3
        control.lock_rotation_w = True
        limit = control.constraints.new("LIMIT_LOCATION")
        limit.owner_space = "LOCAL"
        for axis in "xyz":
            setattr(limit, f"use_min_{axis}", True)
            setattr(limit, f"use_max_{axis}", True)
            setattr(limit, f"min_{axis}", -0.05)
            setattr(limit, f"max_{axis}", 0.05)
    cage = bpy.data.lattices.new("Belly")
    cage.points_u, cage.points_v, cage.points_w = 5, 4, 5
    lattice = bpy.data.objects.new("Belly", cage)
    bpy.context.scene.collection.objects.link(lattice)
    lattice.location, lattice.scale = centre, (0.5, 0.36, 0.42)
    bpy.context.view_layer.update()
    world = lattice.matrix_world.copy()
    lattice.parent, lattice.parent_type, lattice.parent_bone = rig, "BONE", "DEF-spine.001"
    bpy.context.view_layer.update()
    lattice.matrix_world = world
    lattice.hide_render = True
    for name, column in (("belly.R", (1,)), ("belly", (2,)), ("belly.L", (3,))):
        hook = lattice.modifiers.new(f"Hook {name}", "HOOK")
        hook.object, hook.subtarget = rig, name
        # Inner points of the front: u across, v in depth (0 is the front), w up.
        inner = [u + 5 * (0 + 4 * w) for w in (1, 2, 3) for u in column]
        hook.vertex_indices_set(inner)
        bpy.context.view_layer.update()
        bone_world = rig.matrix_world @ rig.pose.bones[name].matrix
        hook.matrix_inverse = bone_world.inverted() @ lattice.matrix_world
        hook.center = bone_world.translation
    mask = human.vertex_groups.new(name="belly")
    low, high = centre - Vector((0.25, 0.18, 0.21)), centre + Vector((0.25, 0.18, 0.21))
    for vertex in human.data.vertices:
        depth = [min(c - a, b - c) for c, a, b in zip(vertex.co, low, high)]
        if min(depth) > 0 and abs(vertex.co.x) < 0.2:
            mask.add([vertex.index], min(1.0, min(depth[0], depth[2]) / 0.05), "REPLACE")
    deform = human.modifiers.new("Belly", "LATTICE")
    deform.object, deform.vertex_group = lattice, "belly"


def actions(rig):
    """Three clips on IK controls, one of them kept for tests by its name."""
    turn, move = "rotation", "location"
    keyed_action(rig, "squat", 60, {
        ("torso", move, 2): bump(-0.25), ("torso", turn, 0): bump(12), ("chest", turn, 0): bump(20),
        ("head", turn, 0): bump(-15), ("hand_ik.L", move, 2): bump(0.25), ("hand_ik.R", move, 2): bump(0.25),
        ("belly", move, 1): wave(0.03, 2), ("hand_ik.L", move, 1): bump(-0.1), ("hand_ik.R", move, 1): bump(-0.1),
    })
    keyed_action(rig, "step", 60, {
        ("foot_ik.L", move, 1): bump(-0.35, 0, 0.6), ("foot_ik.L", move, 2): bump(0.2, 0, 0.5),
        ("foot_ik.R", move, 1): bump(-0.35, 0.4, 1), ("foot_ik.R", move, 2): bump(0.2, 0.5, 1),
        ("torso", move, 1): bump(-0.12), ("torso", move, 2): bump(-0.06), ("hips", turn, 1): wave(8, 1),
        ("chest", turn, 1): wave(-12, 1), ("hand_ik.L", move, 1): wave(0.2, 1), ("hand_ik.R", move, 1): wave(-0.2, 1),
        ("foot_heel_ik.L", turn, 0): bump(20, 0.1, 0.5), ("foot_heel_ik.R", turn, 0): bump(20, 0.5, 0.9),
    })
    keyed_action(rig, "test", 90, {
        ("hand_ik.R", move, 2): bump(0.45), ("hand_ik.R", move, 0): wave(0.12, 3), ("hand_ik.R", turn, 1): wave(30, 3),
        ("torso", turn, 1): wave(10, 1), ("torso", move, 0): wave(0.06, 1), ("head", turn, 2): wave(15, 1),
        ("f_index.01_master.R", turn, 0): bump(25), ("foot_ik.L", turn, 2): bump(15), ("belly.L", move, 1): wave(0.03, 2),
        ("shoulder.R", turn, 0): bump(12), ("jaw_master", turn, 0): wave(8, 3),
    })
