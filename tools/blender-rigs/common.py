"""What the three rigs share: meshes from arrays, custom shapes, keyed actions."""

import math

import bpy
import numpy as np


def empty_file():
    """A Blender file with nothing in it, in metres and at 30 frames per second."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 30


def mesh_object(name, vertices, faces, uvs=None, face_uvs=None):
    """A mesh object; faces are rows of three or four corners, -1 for the fourth corner of a triangle."""
    mesh = bpy.data.meshes.new(name)
    rows = [[int(corner) for corner in face if corner >= 0] for face in faces]
    mesh.from_pydata(vertices.tolist(), [], rows)
    mesh.validate()
    if uvs is not None:
        layer = mesh.uv_layers.new(name="UVMap")
        flat = [uvs[corner] for face in face_uvs for corner in face if corner >= 0]
        layer.uv.foreach_set("vector", np.asarray(flat, np.float32).ravel())
    mesh.shade_smooth()
    thing = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(thing)
    return thing


def widget():
    """The custom shape of our controls: a small cube of edges, hidden."""
    found = bpy.data.objects.get("WGT-control")
    if found:
        return found
    corners = [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    edges = [(a, b) for a in range(8) for b in range(a) if sum(p != q for p, q in zip(corners[a], corners[b])) == 1]
    mesh = bpy.data.meshes.new("WGT-control")
    mesh.from_pydata(corners, edges, [])
    shape = bpy.data.objects.new("WGT-control", mesh)
    hidden = bpy.data.collections.get("widgets") or bpy.data.collections.new("widgets")
    hidden.objects.link(shape)
    shape.hide_render = True
    return shape


def only_active(thing):
    """Selects this object alone and makes it the active one."""
    bpy.context.view_layer.update()
    for other in list(bpy.context.view_layer.objects):
        other.select_set(False)
    thing.select_set(True)
    bpy.context.view_layer.objects.active = thing


def keyed_action(armature, name, frames, curves):
    """An action: `curves` maps (bone, property, index) to a function of the phase 0 to 1, or to a list of key values.
    Rotations are Euler angles in degrees, written in the mode of the bone."""
    armature.animation_data_create()
    armature.animation_data.action = None
    touched = sorted({(bone, prop) for bone, prop, _ in curves})
    for frame in range(0, frames + 1, 5):
        phase = frame / frames
        for bone_name, prop in touched:
            bone = armature.pose.bones[bone_name]
            values = [0.0, 0.0, 0.0]
            for index in range(3):
                curve = curves.get((bone_name, prop, index))
                values[index] = curve(phase) if curve else 0.0
            if prop == "location":
                bone.location = values
                bone.keyframe_insert("location", frame=1 + frame)
            else:
                from mathutils import Euler
                euler = Euler([math.radians(v) for v in values])
                if bone.rotation_mode == "QUATERNION":
                    bone.rotation_quaternion = euler.to_quaternion()
                    bone.keyframe_insert("rotation_quaternion", frame=1 + frame)
                else:
                    bone.rotation_euler = euler
                    bone.keyframe_insert("rotation_euler", frame=1 + frame)
    action = armature.animation_data.action
    action.name = name
    action.use_fake_user = True
    armature.animation_data.action = None
    for bone in armature.pose.bones:
        bone.location = (0, 0, 0)
        bone.rotation_quaternion = (1, 0, 0, 0)
        bone.rotation_euler = (0, 0, 0)
        bone.scale = (1, 1, 1)
    return action


def wave(amplitude, times=1.0, shift=0.0):
    """A sine over the phase that begins and ends at rest."""
    return lambda t: amplitude * math.sin(math.pi * t) ** 2 * math.sin(2 * math.pi * (times * t + shift) + math.pi / 2)


def bump(amplitude, start=0.0, end=1.0):
    """From rest to the amplitude and back."""
    def value(t):
        t = (t - start) / (end - start)
        return amplitude * math.sin(math.pi * t) ** 2 if 0 <= t <= 1 else 0.0
    return value


def save(path):
    """Writes the file, packed small."""
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True)
    print(f"{path}: written")
