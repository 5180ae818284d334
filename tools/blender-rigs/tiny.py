"""A rig so small that its answers are kept among the tests, with one of everything that can go wrong: a bendy bone, a
lattice hooked to a bone that deforms nothing, driven and free shape keys, a switch, a subdivision on top, an n-gon, a
mesh in an excluded collection, a bone with a limit, vertices that do not follow the root. `build(data, path)` needs no
data."""

import math

import bpy
import numpy as np
from mathutils import Matrix

from common import bump, keyed_action, mesh_object, only_active, save, widget

RINGS, AROUND, LENGTH = 9, 6, 0.8


def build(_data, path):
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    skeleton(rig)
    vertices, faces = tube()
    arm = mesh_object("Arm", vertices, [])
    # The lid is a polygon of six corners.
    arm.data.clear_geometry()
    arm.data.from_pydata(vertices.tolist(), [], faces)
    arm.shape_key_add(name="Basis")
    bound(arm, rig)
    shapes(arm, rig, vertices)
    cage(arm, rig)
    arm.modifiers.new("Subdivision", "SUBSURF").levels = 1
    hidden = bpy.data.collections.new("Bands")
    bpy.context.scene.collection.children.link(hidden)
    band = mesh_object("Band", vertices[AROUND * 3:AROUND * 5] * (1.05, 1.05, 1),
                       [[a, (a + 1) % 6, (a + 1) % 6 + 6, a + 6] for a in range(6)])
    bpy.context.scene.collection.objects.unlink(band)
    hidden.objects.link(band)
    carried(band, rig, "upper")
    bpy.context.view_layer.layer_collection.children["Bands"].exclude = True
    keyed_action(rig, "curl", 20, {("lower", "rotation", 0): bump(50), ("upper", "rotation", 0): bump(-20)})
    keyed_action(rig, "test", 20, {("lower", "rotation", 0): bump(30), ("bulge", "location", 1): bump(0.03),
                                   ("root", "location", 0): bump(0.1)})
    save(path)


def carried(thing, rig, bone):
    """Parents an object to a bone where it stands; a child of a bone hangs on the bone's tail."""
    thing.parent, thing.parent_type, thing.parent_bone = rig, "BONE", bone
    tail = Matrix.Translation((0, rig.data.bones[bone].length, 0))
    thing.matrix_parent_inverse = (rig.matrix_world @ rig.pose.bones[bone].matrix @ tail).inverted()


def skeleton(rig):
    only_active(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    places = (("root", None, -0.1, 0.0), ("upper", "root", 0.0, 0.4), ("lower", "upper", 0.4, 0.8),
              ("fk_helper", "upper", 0.4, 0.5), ("bulge", "upper", 0.2, 0.25))
    for name, parent, start, end in places:
        bone = bones.new(name)
        bone.head, bone.tail = (0, 0, start), (0, 0, end)
        bone.parent = bones[parent] if parent else None
    bones["lower"].use_connect = True
    bones["bulge"].head = (0, -0.15, 0.2)
    bones["bulge"].tail = (0, -0.2, 0.2)
    bones["upper"].bbone_segments = 4
    bpy.ops.object.mode_set(mode="OBJECT")
    for name, bone in rig.pose.bones.items():
        rig.data.bones[name].use_deform = name in ("upper", "lower")
        bone.rotation_mode = "XYZ"
        if name != "fk_helper":
            bone.custom_shape = widget()
        bone.lock_location = (name not in ("root", "bulge"),) * 3
        bone.lock_rotation = (name == "bulge", name != "upper", name != "upper" and name != "lower")
    limit = rig.pose.bones["lower"].constraints.new("LIMIT_ROTATION")
    limit.owner_space, limit.use_limit_x = "LOCAL", True
    limit.min_x, limit.max_x = math.radians(-10), math.radians(120)
    follow = rig.pose.bones["lower"].constraints.new("COPY_ROTATION")
    follow.target, follow.subtarget, follow.influence = rig, "fk_helper", 0.0
    lower = rig.pose.bones["lower"]
    lower["follow"], lower["squash"] = 0.0, 0.0
    for name in ("follow", "squash"):
        lower.id_properties_ui(name).update(min=0.0, max=1.0, soft_min=0.0, soft_max=1.0)
    driver = follow.driver_add("influence").driver
    driver.type = "SUM"
    variable = driver.variables.new()
    variable.targets[0].id, variable.targets[0].data_path = rig, 'pose.bones["lower"]["follow"]'


def tube():
    vertices = [(0.08 * math.cos(2 * math.pi * k / AROUND), 0.08 * math.sin(2 * math.pi * k / AROUND),
                 LENGTH * ring / (RINGS - 1)) for ring in range(RINGS) for k in range(AROUND)]
    faces = [[AROUND * r + k, AROUND * r + (k + 1) % AROUND, AROUND * (r + 1) + (k + 1) % AROUND, AROUND * (r + 1) + k]
             for r in range(RINGS - 1) for k in range(AROUND)]
    faces.append([AROUND * (RINGS - 1) + k for k in range(AROUND)])
    # Three vertices that nobody bound: they stay behind.
    vertices += [(0.3, 0.0, 0.0), (0.35, 0.0, 0.0), (0.3, 0.0, 0.05)]
    count = len(vertices)
    faces.append([count - 3, count - 2, count - 1])
    return np.array(vertices), faces


def bound(arm, rig):
    groups = {name: arm.vertex_groups.new(name=name) for name in ("upper", "lower")}
    for index in range(RINGS * AROUND):
        share = min(max((arm.data.vertices[index].co.z - 0.3) / 0.2, 0), 1)
        groups["upper"].add([index], 1 - share, "REPLACE")
        groups["lower"].add([index], share, "REPLACE")
    arm.modifiers.new("Armature", "ARMATURE").object = rig


def shapes(arm, rig, vertices):
    def key(name, delta):
        made = arm.shape_key_add(name=name, from_mix=False)
        made.data.foreach_set("co", (vertices + delta).astype(np.float32).ravel())
        made.value = 0.0
        return made

    middle = np.exp(-((vertices[:, 2] - 0.4) / 0.1) ** 2)[:, None] * (np.abs(vertices[:, :1]) < 0.2)
    out = vertices * (1, 1, 0) * middle
    key("free", 0.3 * out)
    elbow = key("elbow", 0.5 * out * (vertices[:, 1:2] > 0)).driver_add("value").driver
    elbow.type = "SCRIPTED"
    turn = elbow.variables.new()
    turn.name, turn.type = "turn", "TRANSFORMS"
    goal = turn.targets[0]
    goal.id, goal.bone_target, goal.transform_type, goal.transform_space = rig, "lower", "ROT_X", "LOCAL_SPACE"
    elbow.expression = "turn / 1.6"
    squash = key("squash", -0.3 * out).driver_add("value").driver
    squash.type = "SCRIPTED"
    share = squash.variables.new()
    share.name = "share"
    share.targets[0].id, share.targets[0].data_path = rig, 'pose.bones["lower"]["squash"]'
    # A function of Python's own makes the driver one that needs trust: it is dead without.
    squash.expression = "float(sorted([share])[0])"


def cage(arm, rig):
    lattice = bpy.data.objects.new("Cage", bpy.data.lattices.new("Cage"))
    bpy.context.scene.collection.objects.link(lattice)
    lattice.data.points_u = lattice.data.points_v = lattice.data.points_w = 3
    lattice.location, lattice.scale = (0, 0, 0.2), (0.3, 0.3, 0.3)
    carried(lattice, rig, "upper")
    hook = lattice.modifiers.new("Hook", "HOOK")
    hook.object, hook.subtarget = rig, "bulge"
    hook.vertex_indices_set([u + 3 * (0 + 3 * 1) for u in range(3)])
    bpy.context.view_layer.update()
    hook.matrix_inverse = (rig.matrix_world @ rig.pose.bones["bulge"].matrix).inverted() @ lattice.matrix_world
    group = arm.vertex_groups.new(name="caged")
    group.add([i for i in range(RINGS * AROUND) if arm.data.vertices[i].co.z < 0.35], 1.0, "REPLACE")
    deform = arm.modifiers.new("Cage", "LATTICE")
    deform.object, deform.vertex_group = lattice, "caged"
