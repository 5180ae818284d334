"""Makes the files beside it with Blender (pip install bpy; made with bpy 5.0.1, no seed, own content, CC0):

    python make.py

A tube of 60 vertices on two bones with a shape, and a box that rides on the upper bone, ten frames at 24 per second, as
Alembic (also with two samples per frame), FBX, USD text and USD binary; and what Blender itself evaluates, as NumPy
arrays in Blender's metres and Z-up: tube [10,60,3], box [10,8,3].
"""
import math, os, bpy, numpy

HERE = os.path.dirname(os.path.abspath(__file__))
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.frame_start, scene.frame_end, scene.render.fps = 1, 10, 24

# The tube: six rings of ten.
rings, around = 6, 10
vertices = [(0.2 * math.cos(a), 0.2 * math.sin(a), 0.3 * r)
            for r in range(rings) for a in (2 * math.pi * k / around for k in range(around))]
faces = [(r * around + k, r * around + (k + 1) % around, (r + 1) * around + (k + 1) % around, (r + 1) * around + k)
         for r in range(rings - 1) for k in range(around)]
mesh = bpy.data.meshes.new("tube"); mesh.from_pydata(vertices, [], faces)
layer = mesh.uv_layers.new(name="UVMap")
for polygon in mesh.polygons:
    for corner, loop in enumerate(polygon.loop_indices):
        k, r = polygon.index % around, polygon.index // around
        layer.data[loop].uv = ((k + (corner in (1, 2))) / around, (r + (corner >= 2)) / (rings - 1))
tube = bpy.data.objects.new("tube", mesh); scene.collection.objects.link(tube)
tube.shape_key_add(name="Basis")
bulge = tube.shape_key_add(name="bulge")
for v in range(20, 40):
    x, y, z = vertices[v]; bulge.data[v].co = (1.5 * x, 1.3 * y, z)

box_mesh = bpy.data.meshes.new("box")
box_mesh.from_pydata([(x, y, z) for z in (1.6, 1.8) for y in (-.1, .1) for x in (-.1, .1)], [],
                     [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)])
box = bpy.data.objects.new("box", box_mesh); scene.collection.objects.link(box)

armature = bpy.data.armatures.new("rig"); rig = bpy.data.objects.new("rig", armature)
scene.collection.objects.link(rig); bpy.context.view_layer.objects.active = rig
bpy.ops.object.mode_set(mode="EDIT")
low = armature.edit_bones.new("low"); low.head, low.tail = (0, 0, 0), (0, 0, .75)
up = armature.edit_bones.new("up.L"); up.head, up.tail, up.parent = (0, 0, .75), (0, .1, 1.5), low
bpy.ops.object.mode_set(mode="OBJECT")
for thing, weight in ((tube, lambda z: min(max((z - .5) / .5, 0), 1)), (box, lambda z: 1.0)):
    groups = [thing.vertex_groups.new(name=name) for name in ("low", "up.L")]
    for vertex in thing.data.vertices:
        w = weight(vertex.co.z)
        groups[0].add([vertex.index], 1 - w, "REPLACE"); groups[1].add([vertex.index], w, "REPLACE")
    thing.parent = rig
    thing.modifiers.new("skin", "ARMATURE").object = rig

bpy.context.view_layer.objects.active = rig
for bone in rig.pose.bones:
    bone.rotation_mode = "XYZ"
for frame in range(1, 11):
    t = (frame - 1) / 9
    rig.pose.bones["low"].rotation_euler = (.2 * t, 0, .5 * t)
    rig.pose.bones["low"].location = (.1 * t, 0, 0)
    rig.pose.bones["up.L"].rotation_euler = (1.1 * t, .3 * math.sin(3 * t), 0)
    for bone in rig.pose.bones:
        bone.keyframe_insert("rotation_euler", frame=frame); bone.keyframe_insert("location", frame=frame)
    bulge.value = t * t
    bulge.keyframe_insert("value", frame=frame)

truth = {"tube": [], "box": []}
for frame in range(1, 11):
    scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    for name, thing in (("tube", tube), ("box", box)):
        evaluated = thing.evaluated_get(graph)
        truth[name].append([tuple(evaluated.matrix_world @ v.co) for v in evaluated.data.vertices])
numpy.savez(os.path.join(HERE, "truth.npz"), **{name: numpy.array(v, "f4") for name, v in truth.items()})

at = lambda name: os.path.join(HERE, name)
for thing in (tube, box, rig):
    thing.select_set(True)
bpy.ops.wm.alembic_export(filepath=at("hero.abc"), start=1, end=10, selected=False, uvs=True, packuv=True, export_custom_properties=False)
bpy.ops.wm.alembic_export(filepath=at("fine.abc"), start=1, end=10, xsamples=2, gsamples=2, sh_open=0.0, sh_close=1.0, export_custom_properties=False)
scene.frame_set(1)
bpy.ops.export_scene.fbx(filepath=at("hero.fbx"), bake_anim=True, bake_anim_simplify_factor=0.0, add_leaf_bones=False,
                         bake_anim_use_nla_strips=False, bake_anim_use_all_actions=False, use_armature_deform_only=True)
for name in ("hero.usda", "hero.usdc"):
    bpy.ops.wm.usd_export(filepath=at(name), export_animation=True, export_armatures=True, export_shapekeys=True,
                          export_materials=False)
