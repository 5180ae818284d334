"""A rig of what is rare: a mesh that bone envelopes carry, custom properties of an empty, of a mesh object and of its data,
two objects with data in common, and an action that keys properties alone. `odd.py FILE.blend` writes it."""

import math
import sys

import bpy

RINGS, AROUND = 9, 8


def armature():
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for name, parent, start, end in (("low", None, 0.0, 0.5), ("high", "low", 0.5, 1.0)):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = (0, 0, start), (0, 0, end)
        bone.head_radius = bone.tail_radius = bone.envelope_distance = 0.2
        bone.parent = rig.data.edit_bones[parent] if parent else None
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in rig.pose.bones:
        bone.rotation_mode = "XYZ"
        bone.lock_location, bone.lock_rotation = (True,) * 3, (False, True, True)
    return rig


def tube(rig):
    vertices = [(0.1 * math.cos(math.tau * k / AROUND), 0.1 * math.sin(math.tau * k / AROUND), r / (RINGS - 1))
                for r in range(RINGS) for k in range(AROUND)]
    faces = [[AROUND * r + k, AROUND * r + (k + 1) % AROUND, AROUND * (r + 1) + (k + 1) % AROUND, AROUND * (r + 1) + k]
             for r in range(RINGS - 1) for k in range(AROUND)]
    mesh = bpy.data.meshes.new("Tube")
    mesh.from_pydata(vertices, [], faces)
    thing = bpy.data.objects.new("Tube", mesh)
    bpy.context.scene.collection.objects.link(thing)
    modifier = thing.modifiers.new("Armature", "ARMATURE")
    modifier.object, modifier.use_bone_envelopes, modifier.use_vertex_groups = rig, True, False
    thing.shape_key_add(name="Basis")
    for name, across in (("wide", (1.5, 1.0)), ("deep", (1.0, 1.5))):
        key = thing.shape_key_add(name=name, from_mix=False)
        for point, at in zip(key.data, vertices):
            point.co = (at[0] * across[0], at[1] * across[1], at[2])
        key.value = 0.0
    return thing


def driven(target, path, kind, block, source, index=-1):
    """What is at `path` becomes the value of a custom property."""
    driver = target.driver_add(path, index).driver if index >= 0 else target.driver_add(path).driver
    driver.type = "SUM"
    goal = driver.variables.new().targets[0]
    goal.id_type, goal.id, goal.data_path = kind, block, source


def given(block, name):
    block[name] = 0.0
    block.id_properties_ui(name).update(min=0.0, max=1.0, soft_min=0.0, soft_max=1.0)


def main(path):
    bpy.ops.wm.read_factory_settings(use_empty=True)
    rig = armature()
    thing = tube(rig)
    handle = bpy.data.objects.new("Handle", None)
    bpy.context.scene.collection.objects.link(handle)
    twin = bpy.data.objects.new("Other", thing.data)
    bpy.context.scene.collection.objects.link(twin)
    given(handle, "lean")
    given(thing, "wide")
    given(thing.data, "deep")
    driven(rig.pose.bones["high"], "rotation_euler", "OBJECT", handle, '["lean"]', 0)
    keys = thing.data.shape_keys.key_blocks
    driven(keys["wide"], "value", "OBJECT", thing, '["wide"]')
    driven(keys["deep"], "value", "MESH", thing.data, '["deep"]')
    for frame, value in ((1, 0.0), (6, 1.0), (11, 0.0)):
        handle["lean"] = value
        handle.keyframe_insert('["lean"]', frame=frame)
    handle.animation_data.action.name = "nod"
    handle["lean"] = 0.0
    bpy.ops.wm.save_as_mainfile(filepath=path)


main((sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else sys.argv[1:])[0])
