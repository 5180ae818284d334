"""A rig of 2,000 bones and 5,000 constraints, most of them mechanism: eight arms of a starfish, whose 320 deform bones
follow 80 controls through layers of constrained bones. `build(data, path)` needs no data."""

import bpy
import numpy as np
from mathutils import Matrix, Vector

from common import bump, keyed_action, mesh_object, only_active, save, wave, widget

ARMS, CONTROLS, DEFORM, LAYERS = 8, 10, 40, 5
LENGTH, RADIUS = 1.2, 0.1


def build(_data, path):
    rig = bpy.data.objects.new("Star", bpy.data.armatures.new("Star"))
    bpy.context.scene.collection.objects.link(rig)
    only_active(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    root = bones.new("root")
    root.head, root.tail = (0, 0, 0), (0, 0, 0.2)
    root.use_deform = False
    vertices, faces, owners = [], [], []
    for arm in range(ARMS):
        turn = Matrix.Rotation(2 * np.pi * arm / ARMS, 4, "Z")
        at = lambda share: turn @ Vector((0.25 + LENGTH * share, 0, 0))

        def chain(name, count, parent, deform):
            for index in range(count):
                bone = bones.new(f"{name}.{index:02}")
                bone.head, bone.tail = at(index / count), at((index + 1) / count)
                bone.parent = bones[f"{name}.{index - 1:02}"] if parent is None and index else bones[parent or "root"]
                bone.use_deform = deform

        chain(f"ctl{arm}", CONTROLS, None, False)
        for layer in range(LAYERS):
            chain(f"MCH{arm}-{layer}", DEFORM, "root", False)
        chain(f"DEF{arm}", DEFORM, None, True)
        tube(arm, turn, vertices, faces, owners)
    bpy.ops.object.mode_set(mode="OBJECT")
    constrain(rig)
    mesh = mesh_object("Star.skin", np.array(vertices), faces)
    groups = {b.name: mesh.vertex_groups.new(name=b.name) for b in rig.data.bones if b.use_deform}
    for index, (arm, share) in enumerate(owners):
        place = min(max(share * DEFORM - 0.5, 0), DEFORM - 1.001)
        low, part = int(place), place - int(place)
        groups[f"DEF{arm}.{low:02}"].add([index], 1 - part, "REPLACE")
        groups[f"DEF{arm}.{low + 1:02}"].add([index], part, "REPLACE")
    mesh.parent = rig
    mesh.modifiers.new("Armature", "ARMATURE").object = rig
    keyed_action(rig, "swim", 60, {
        (f"ctl{arm}.{index:02}", "rotation", axis): (wave(14, 1, arm / ARMS) if axis == 0 else bump(6))
        for arm in range(ARMS) for index in range(CONTROLS) for axis in (0, 2)
    })
    keyed_action(rig, "test", 60, {
        (f"ctl{arm}.{index:02}", "rotation", axis): (wave(10, 1, arm / ARMS + 0.3) if axis == 0 else wave(5, 2, index / CONTROLS))
        for arm in range(ARMS) for index in range(CONTROLS) for axis in (0, 2)
    })
    constraints = sum(len(b.constraints) for b in rig.pose.bones)
    print(f"Star: {len(rig.data.bones)} bones, {constraints} constraints, {len(vertices)} vertices")
    save(path)


def tube(arm, turn, vertices, faces, owners):
    """Rings along the arm, thinner towards the tip."""
    rings, around, first = 121, 12, len(vertices)
    for ring in range(rings):
        share = ring / (rings - 1)
        for corner in range(around):
            angle = 2 * np.pi * corner / around
            radius = RADIUS * (1 - 0.8 * share)
            local = Vector((0.25 + LENGTH * share, radius * np.cos(angle), radius * np.sin(angle)))
            vertices.append(tuple(turn @ local))
            owners.append((arm, share))
    for ring in range(rings - 1):
        for corner in range(around):
            a, b = first + ring * around + corner, first + ring * around + (corner + 1) % around
            faces.append((a, b, b + around, a + around))


def constrain(rig):
    """Each mechanism bone blends the two controls that are next to it and the layer below, within limits."""
    pose = rig.pose.bones
    for bone in pose:
        bone.rotation_mode = "XYZ"
        if bone.name.startswith("ctl") or bone.name == "root":
            bone.custom_shape = widget()
            bone.lock_scale = (True,) * 3
            bone.lock_location = (bone.name != "root",) * 3
    for arm in range(ARMS):
        for layer in range(LAYERS):
            for index in range(DEFORM):
                bone = pose[f"MCH{arm}-{layer}.{index:02}"]
                place = index * CONTROLS / DEFORM
                near = min(int(place), CONTROLS - 1)
                if layer == 0:
                    add(bone, "COPY_LOCATION", rig, f"ctl{arm}.{near:02}", head_tail=place - near)
                    add(bone, "COPY_ROTATION", rig, f"ctl{arm}.{near:02}")
                    add(bone, "COPY_ROTATION", rig, f"ctl{arm}.{min(near + 1, CONTROLS - 1):02}",
                        influence=max(0.0, place - near - 0.5))
                else:
                    below = f"MCH{arm}-{layer - 1}.{index:02}"
                    add(bone, "COPY_TRANSFORMS", rig, below)
                    add(bone, "COPY_ROTATION", rig, f"MCH{arm}-{layer - 1}.{max(index - 1, 0):02}", influence=0.25)
                    add(bone, "COPY_LOCATION", rig, below, influence=0.9)
        for index in range(DEFORM):
            bone = pose[f"DEF{arm}.{index:02}"]
            top = f"MCH{arm}-{LAYERS - 1}.{index:02}"
            add(bone, "COPY_TRANSFORMS", rig, top)


def add(bone, kind, rig, target, **settings):
    constraint = bone.constraints.new(kind)
    constraint.target, constraint.subtarget = rig, target
    for name, value in settings.items():
        setattr(constraint, name, value)
