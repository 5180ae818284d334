"""Looks at a file before anything is sampled: what can be moved, what each channel moves, what the inputs are, and
whether the rig is fit to be learned. The result is one JSON file that workers, reports and people read."""

import fnmatch
import json
import time

import bpy
import numpy as np

import clips
import controls as control_module
import inputs as input_module
import tree
from stage import SIMULATED, Stage, drivers_of, say, shape_keys

# A vertex that moves by less than this share of the figure's size has not moved.
STILL = 1e-5
# First amplitudes of a channel without a range: degrees, share of the size, factor.
FIRST_TURN, FIRST_MOVE, FIRST_SCALE = 15.0, 0.03, 1.1
# Ranges by kind: degrees, and for channels that move more than half of the figure; shares of what a channel moves and
# of the whole for lengths.
TURN, TURN_ALL, REACH, REACH_ALL = 30.0, 15.0, 0.12, 0.06
CHECK_POSES = 48
# Bones that are recorded though they move no vertex.
MOST_GUIDES = 400


def run(request, output):
    survey = Survey(request)
    with open(output, "w", encoding="utf-8") as file:
        json.dump(survey.result(), file)


class Survey:
    def __init__(self, request):
        self.request = request
        self.warnings = []
        start = time.perf_counter()
        say("progress", "0 1 opening")
        self.stage = Stage(request)
        names, self.listing = choose(request["objects"])
        self.stage.use(names)
        self.open_seconds = time.perf_counter() - start
        self.scripts()
        self.simulated()
        self.edits = request["edits"]
        named = {name for name, edit in self.edits.items() if edit["sample"]}
        self.channels, self.switches = control_module.find(self.stage, request["controls"], named)
        unit = 100 * self.stage.metres
        for channel in self.channels:
            if channel["from"] == "limit" and channel["kind"] == "location":
                channel["low"], channel["high"] = channel["low"] * unit, channel["high"] * unit
        unknown = set(self.edits) - {channel["name"] for channel in self.channels} \
            - {channel["name"] for channel in self.switches}
        unknown -= {name for name, edit in self.edits.items() if not edit["sample"]}
        if unknown:
            raise RuntimeError(f"the controls file names '{sorted(unknown)[0]}', which the rig does not have")
        self.candidates = input_module.find(self.stage)
        self.reader = input_module.Inputs(self.stage, self.candidates)
        self.play_actions()
        self.hold()
        self.probe()
        self.finish_ranges()
        self.root_check()
        self.random_check()

    def warn(self, text):
        self.warnings.append(text)
        say("warning", text)

    def scripts(self):
        dead = [curve for thing in self.stage.needed for _, curve in drivers_of(thing)
                if curve.driver.type == "SCRIPTED" and not curve.driver.is_simple_expression]
        texts = [text.name for text in bpy.data.texts if text.use_module]
        self.scripts_off = not self.request["trust_scripts"]
        if dead and self.scripts_off:
            self.warn(f"{len(dead)} drivers call Python and are dead without --trust-scripts, the first is "
                      f"{dead[0].data_path}")
        self.dead_drivers, self.texts = len(dead) if self.scripts_off else 0, texts

    def simulated(self):
        for thing in self.stage.objects:
            for modifier in thing.modifiers:
                if modifier.type in SIMULATED and modifier.show_viewport:
                    self.warn(f"'{thing.name}' has the modifier '{modifier.name}' ({modifier.type}), whose result "
                              "depends on earlier frames: switch it off in the file")

    def play_actions(self):
        """Clips, for ranges and as animation."""
        self.clips = []
        controls = control_module.Controls(self.stage, self.channels)
        steering = control_module.steering_properties(self.stage)
        actions = list(bpy.data.actions)
        for place, action in enumerate(actions):
            say("progress", f"{place} {len(actions)} clips")
            cast = clips.roles(self.stage, action)
            if not cast:
                continue
            frames = clips.play(self.stage, controls, action, cast)
            if not len(frames) or np.ptp(frames, axis=0).max(initial=0) < 1e-6:
                continue
            held = {path for _, _, paths in cast for path in paths if path in steering}
            if held:
                self.warn(f"the action '{action.name}' animates {len(held)} switches, such as {sorted(held)[0]}: they "
                          "stay as they are set")
            self.clips.append((action.name, frames))

    def hold(self):
        """Channels that are sampled and channels that are not: scale is, where a limit, an action or the user says so."""
        kept, self.held = [], []
        for place, channel in enumerate(self.channels):
            edit = self.edits.get(channel["name"])
            shown = [frames[:, place] for _, frames in self.clips]
            moved = any(np.ptp(values) > 1e-4 or abs(values[0] - channel["default"]) > 1e-4 for values in shown)
            if edit and edit["sample"]:
                channel.update(low=edit["low"], high=edit["high"], default=edit["default"])
                channel["from"] = "file"
            elif edit:
                self.held.append((place, "the controls file says so"))
                continue
            elif channel["kind"] == "scale" and channel["from"] != "limit" and not moved:
                self.held.append((place, "scale without a limit or an action"))
                continue
            elif moved and channel["low"] is None:
                low = min(channel["default"], *(values.min() for values in shown))
                high = max(channel["default"], *(values.max() for values in shown))
                more = 0.1 * (high - low)
                channel.update(low=float(low - more), high=float(high + more))
                channel["from"] = "action"
            kept.append(place)
        self.held_names = [(self.channels[place]["name"], why) for place, why in self.held]
        held_rows = [self.channels[place] for place, _ in self.held]
        self.clips = [(name, frames[:, kept]) for name, frames in self.clips]
        self.channels = [self.channels[place] for place in kept]
        self.held_rows = held_rows

    def probe(self):
        """Every channel to both ends by itself, from rest and, where that moves nothing, from another pose."""
        self.controls = control_module.Controls(self.stage, self.channels)
        values = self.controls.defaults()
        self.rest, self.rest_inputs = self.pose(values)
        if not np.isfinite(self.rest).all():
            raise RuntimeError("the mesh at rest has vertices that are not finite")
        self.topology = [self.counts()]
        size = float(np.linalg.norm(np.ptp(self.rest, axis=0)))
        self.size = size
        moves = np.zeros(len(self.channels))
        self.alive = np.zeros(len(self.channels), bool)
        self.through_nothing = []
        random = np.random.default_rng(7)
        start, poses = time.perf_counter(), 0
        for place, channel in enumerate(self.channels):
            say("progress", f"{place} {len(self.channels)} channels")
            ends = self.ends(channel)
            for end in ends:
                tried = values.copy()
                tried[place] = end
                vertices, seen = self.pose(tried)
                poses += 1
                moved, worst = self.moved(vertices, self.rest)
                if worst > STILL * size:
                    self.alive[place] = True
                    self.reach(channel, vertices, moved, worst, end)
                    if np.abs(seen - self.rest_inputs).max() < 1e-6:
                        self.through_nothing.append(channel["name"])
                    break
            moves[place] = worst if self.alive[place] else 0
        self.pose_ms = 1e3 * (time.perf_counter() - start) / max(poses, 1)
        quiet = np.flatnonzero(~self.alive)
        # What matters only beside others: a pole while the limb is bent, a follower while its leader is turned.
        for attempt in range(2):
            if not len(quiet):
                break
            base = values.copy()
            for place in np.flatnonzero(self.alive):
                low, high = self.ends(self.channels[place])[::-1]
                base[place] = values[place] + 0.6 * random.uniform(-1, 1) * min(abs(low - values[place]),
                                                                               abs(high - values[place]))
            reference, reference_inputs = self.pose(base)
            for count, place in enumerate(quiet):
                say("progress", f"{count} {len(quiet)} quiet channels")
                tried = base.copy()
                tried[place] = self.ends(self.channels[place])[attempt]
                vertices, seen = self.pose(tried)
                moved, worst = self.moved(vertices, reference)
                if worst > STILL * size:
                    self.alive[place] = True
                    self.reach(self.channels[place], vertices, moved, worst, tried[place])
                    if np.abs(seen - reference_inputs).max() < 1e-6:
                        self.through_nothing.append(self.channels[place]["name"])
            quiet = np.flatnonzero(~self.alive)

    def ends(self, channel):
        """Where a channel is tried: at its range's ends, or a little to either side."""
        if channel["low"] is not None:
            ends = [channel["high"], channel["low"]]
            return ends if abs(ends[0] - channel["default"]) > 1e-9 else ends[::-1]
        if channel["kind"] == "rotation":
            return [FIRST_TURN, -FIRST_TURN]
        if channel["kind"] == "location":
            reach = 100 * FIRST_MOVE * self.size
            return [reach, -reach]
        return [FIRST_SCALE, 1 / FIRST_SCALE]

    def reach(self, channel, vertices, moved, worst, end):
        """What a channel moves, for ranges by kind: the extent of the region and its share of the vertices."""
        region = moved > 0.05 * worst
        channel["region"] = float(np.linalg.norm(np.ptp(self.rest[region], axis=0)))
        channel["share"] = float((moved > STILL * self.size).mean())
        channel["moved_vertices"] = int((moved > STILL * self.size).sum())
        channel["per_unit"] = worst / max(abs(end - channel["default"]), 1e-9)

    def pose(self, values):
        self.controls.apply(values)
        self.stage.update()
        return self.stage.vertices(), self.reader.read()

    def counts(self):
        return tuple(len(self.stage.evaluated(thing).data.vertices) for thing in self.stage.objects)

    def moved(self, vertices, reference):
        if vertices.shape != reference.shape:
            raise RuntimeError(self.count_problem())
        distance = np.linalg.norm(vertices - reference, axis=1)
        return distance, float(distance.max(initial=0))

    def count_problem(self):
        for thing, now, rest in zip(self.stage.objects, self.counts(), self.topology[0]):
            if now != rest:
                kinds = ", ".join(f"{m.name} ({m.type})" for m in thing.modifiers if m.show_viewport)
                return (f"'{thing.name}' has {now} vertices in one pose and {rest} at rest: one of its modifiers changes "
                        f"their number ({kinds}); switch it off in the file")
        return "the number of vertices changes from pose to pose"

    def finish_ranges(self):
        """Ranges by kind, and channels that move nothing out."""
        figure = 100 * self.size
        for channel, alive in zip(self.channels, self.alive):
            if not alive or channel["low"] is not None:
                continue
            if channel["kind"] == "rotation":
                reach = TURN_ALL if channel["share"] > 0.5 else TURN
                channel.update(low=-reach, high=reach)
            elif channel["kind"] == "location":
                reach = min(REACH * 100 * channel["region"], REACH_ALL * figure)
                # A centimetre of a control may be two of the mesh.
                reach = reach / max(channel["per_unit"] * 100, 0.5)
                reach = float(f"{max(reach, 1e-4 * figure):.3g}")
                channel.update(low=-reach, high=reach)
            else:
                channel.update(low=0.9, high=1.1)
            channel["from"] = "kind"
        kept = [place for place, alive in enumerate(self.alive) if alive]
        self.dropped = [self.channels[place]["name"] for place, alive in enumerate(self.alive) if not alive]
        self.clips = [(name, frames[:, kept]) for name, frames in self.clips]
        self.channels = [self.channels[place] for place in kept]
        for place, channel in enumerate(self.channels):
            low, high = channel["low"], channel["high"]
            if not low < high:
                raise RuntimeError(f"the range of '{channel['name']}' is {low} to {high}")
            channel["default"] = min(max(channel["default"], low), high)
        self.controls = control_module.Controls(self.stage, self.channels)
        cut, where = 0, None
        for _, frames in self.clips:
            low = np.array([channel["low"] for channel in self.channels])
            high = np.array([channel["high"] for channel in self.channels])
            outside = (frames < low - 1e-3) | (frames > high + 1e-3)
            cut += int(outside.any(1).sum())
            if outside.any() and where is None:
                where = self.channels[int(np.flatnonzero(outside.any(0))[0])]["name"]
            np.clip(frames, low, high, out=frames)
        if cut:
            self.warn(f"{cut} frames of actions leave the range of a control, such as '{where}', and are cut to it")
        if self.through_nothing:
            names = ", ".join(self.through_nothing[:5])
            self.warn(f"{len(self.through_nothing)} controls move vertices but no bone or value that is recorded "
                      f"({names}): a twin has them as inputs of their own")
        if not self.channels:
            raise RuntimeError("no control moves a vertex of the chosen meshes")

    def root_check(self):
        """Moves the whole figure and lists what stays behind."""
        best = None
        for place, channel in enumerate(self.channels):
            if channel["kind"] == "location" and (best is None or channel["moved_vertices"] > best[0]):
                best = (channel["moved_vertices"], place)
        self.stray, self.stray_count, self.root = [], 0, ""
        if best and best[0] > 0.6 * len(self.rest):
            self.root = self.channels[best[1]]["name"]
            values = self.controls.defaults()
            values[best[1]] = self.channels[best[1]]["high"]
            moved = self.pose(values)[0] - self.rest
        else:
            armatures = self.stage.armatures()
            if not armatures:
                return
            # No control moves the figure: the armature itself does.
            top = armatures[0]
            self.root = top.name
            self.controls.apply(self.controls.defaults())
            top.location.x += 0.1 / self.stage.metres
            self.stage.update()
            moved = self.stage.vertices() - self.rest
            top.location.x -= 0.1 / self.stage.metres
            self.stage.update()
        typical = np.median(moved, axis=0)
        left = np.linalg.norm(moved - typical, axis=1) > 0.02 * np.linalg.norm(typical)
        self.stray_count = int(left.sum())
        first = 0
        for thing, count in zip(self.stage.objects, self.topology[0]):
            own = np.flatnonzero(left[first:first + count])
            first += count
            if len(own):
                self.stray.append({"object": thing.name, "count": len(own), "vertices": own[:12].tolist()})
                self.warn(f"{len(own)} of {count} vertices of '{thing.name}' do not follow '{self.root}': vertices "
                          f"{', '.join(map(str, own[:5]))}{' …' if len(own) > 5 else ''}")

    def random_check(self):
        """Random poses: vertex count, finite numbers, sameness of a repeated pose, and motion for the tree."""
        random = np.random.default_rng(11)
        low = np.array([channel["low"] for channel in self.channels])
        high = np.array([channel["high"] for channel in self.channels])
        poses, values, vertices = [], [], []
        start = time.perf_counter()
        for pose in range(CHECK_POSES):
            say("progress", f"{pose} {CHECK_POSES} random poses")
            turn = np.clip(random.normal(0, 1 / 3, len(low)), -0.5, 0.5)
            values.append(((low + high) / 2 + turn * (high - low)).astype(np.float32))
            now, seen = self.pose(values[-1])
            self.moved(now, self.rest)
            if not np.isfinite(now).all():
                raise RuntimeError("a random pose has vertices that are not finite")
            poses.append(seen)
            vertices.append(now)
        self.pose_ms = 1e3 * (time.perf_counter() - start) / CHECK_POSES
        again = self.pose(values[3])[0]
        _, worst = self.moved(again, vertices[3])
        self.repeat_cm = 100 * worst
        if worst > 1e-4 * self.size:
            self.warn(f"the same pose twice differs by {10 * self.repeat_cm:.2f} mm: something depends on what was "
                      "before, and a twin cannot learn that")
        self.keep_inputs(np.array(poses))

    def keep_inputs(self, poses):
        """Inputs that move, with parents from motion. Segments that stay with their bone say nothing."""
        rest = self.rest_inputs
        kept = []
        place_of = {(row["object"], row["bone"]): place for place, row in enumerate(self.candidates)
                    if row["kind"] == "bone"}
        singular = []
        for place, row in enumerate(self.candidates):
            if abs(np.linalg.det(rest[place, :, :3])) < 1e-9:
                singular.append(row["name"])
                continue
            spread = np.ptp(poses[:, place], axis=0).max()
            if row["kind"] == "segment":
                bone = place_of[(row["object"], row["bone"])]
                inverse = np.linalg.pinv(poses[:, bone, :, :3])
                turn = inverse @ poses[:, place, :, :3]
                slide = np.einsum("pij,pj->pi", inverse, poses[:, place, :, 3] - poses[:, bone, :, 3])
                spread = max(np.ptp(turn, axis=0).max(), np.ptp(slide, axis=0).max() / self.size)
            if row["kind"] != "bone" and spread < 1e-4:
                continue
            kept.append(place)
        if singular:
            self.warn(f"{len(singular)} bones are flat at rest and left out, such as '{singular[0]}'")
        weighted = used_bones(self.stage)
        kept = [place for place in kept if self.candidates[place]["kind"] != "bone"
                or (self.candidates[place]["object"], self.candidates[place]["bone"]) in weighted
                or np.ptp(poses[:, place], axis=0).max() > 1e-6]
        names = {}
        for place in kept:
            row = self.candidates[place]
            names.setdefault(row["name"], []).append(row)
        for rows in names.values():
            if len(rows) > 1:
                for row in rows:
                    row["name"] = f"{row['object']}/{row['name']}"
        self.inputs = [self.candidates[place] for place in kept]
        self.find_guides()
        say("progress", "0 1 bone tree")
        is_bone = np.array([row["kind"] not in ("shape", "value") for row in self.inputs], bool)
        rest = rest[kept]
        parents = tree.parents(np.concatenate([rest[None], poses[:, kept]]), rest, is_bone)
        self.bones = [{"name": row["name"], "parent": int(parent) if parent >= 0 else None, "rest": matrix.ravel().tolist()}
                      for row, parent, matrix in zip(self.inputs, parents, rest)]

    def find_guides(self):
        """Guides with what they are at rest; those that have no size then are none."""
        rows = input_module.guides(self.stage, self.channels, self.inputs)
        self.controls.apply(self.controls.defaults())
        self.stage.update()
        rest = input_module.Inputs(self.stage, rows).read()
        kept = [place for place in range(len(rows)) if abs(np.linalg.det(rest[place, :, :3])) > 1e-9][:MOST_GUIDES]
        names = [rows[place]["name"] for place in kept]
        for place in kept:
            if names.count(rows[place]["name"]) > 1:
                rows[place] = {**rows[place], "name": f"{rows[place]['object']}/{rows[place]['name']}"}
        self.guides = [rows[place] for place in kept]
        self.guide_rest = rest[kept]

    def result(self):
        self.pose(self.controls.defaults())
        geometry = surface(self.stage)
        if geometry.pop("partly"):
            self.warn("not all of the chosen meshes have texture coordinates: none are recorded")
        rate = clips.rate(self.stage)
        description = {
            "name": bpy.path.display_name_from_filepath(self.request["file"]) or "blend",
            "units": "m", "up": "z",
            "controls": [{key: channel[key] for key in ("name", "low", "high", "default")} for channel in self.channels],
            "vertices": self.rest.round(7).tolist(), "bones": self.bones,
            "clips": [{"name": name, "rate": rate, "frames": frames.round(5).tolist(),
                       "for_test": name.lower().startswith("test")} for name, frames in self.clips],
            "warnings": self.warnings, **geometry,
        }
        if self.guides:
            description["bones"] = self.bones + [{"name": row["name"], "parent": None, "rest": matrix.ravel().tolist()}
                                                 for row, matrix in zip(self.guides, self.guide_rest)]
            description["guides"] = len(self.guides)
        weights = skin(self.stage, self.inputs)
        if weights:
            description["weights"] = weights
        keep = ("name", "low", "high", "default", "from", "moved_vertices")
        kinds = {}
        for row in self.inputs:
            kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
        bones = sum(len(thing.pose.bones) for thing in self.stage.armatures())
        constraints = sum(len(b.constraints) for thing in self.stage.armatures() for b in thing.pose.bones)
        report = {
            "blender": bpy.app.version_string, "objects": self.listing,
            "controls": [{key: channel[key] for key in keep} for channel in self.channels],
            "held": [{"name": name, "why": why} for name, why in self.held_names],
            "moves_nothing": self.dropped,
            "switches": [{"name": c["name"], "value": c["default"], "low": c["low"], "high": c["high"]}
                         for c in self.switches],
            "inputs": kinds, "bones": bones, "constraints": constraints,
            "drivers": sum(1 for thing in self.stage.needed for _ in drivers_of(thing)),
            "dead_drivers": self.dead_drivers, "root": self.root, "stray": self.stray, "pose_ms": self.pose_ms,
            "open_seconds": self.open_seconds, "repeat_mm": 10 * self.repeat_cm,
            "libraries": [bpy.path.abspath(library.filepath) for library in bpy.data.libraries],
        }
        return {"request": self.request, "objects": [thing.name for thing in self.stage.objects],
                "channels": self.channels, "inputs": self.inputs + self.guides, "description": description, "report": report}


def choose(patterns):
    """The meshes to record and a list of all with what they have."""
    shapes, cages = set(), set()
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE":
            shapes |= {bone.custom_shape for bone in thing.pose.bones if bone.custom_shape}
    for thing in bpy.data.objects:
        for modifier in thing.modifiers:
            target = getattr(modifier, "target", None) or getattr(modifier, "object", None)
            if isinstance(target, bpy.types.Object) and target.type == "MESH" and thing.type == "MESH":
                cages.add(target)
    chosen, listing = [], []
    for thing in bpy.data.objects:
        if thing.type != "MESH" or thing in shapes:
            continue
        deformed = any(m.type in ("ARMATURE", "LATTICE", "MESH_DEFORM", "SURFACE_DEFORM", "HOOK", "CURVE")
                       for m in thing.modifiers)
        rigged = deformed or thing.parent_type in ("BONE", "ARMATURE") or bool(shape_keys(thing))
        if patterns:
            take = any(fnmatch.fnmatchcase(thing.name, pattern) for pattern in patterns)
            why = "" if take else "--object names others"
        else:
            take = rigged and not thing.hide_render and len(thing.data.polygons) > 0
            take = take and not (thing in cages and thing.display_type in ("WIRE", "BOUNDS"))
            why = "" if take else "is not moved by a rig" if not rigged else "is hidden in renders or a cage"
        listing.append({"name": thing.name, "vertices": len(thing.data.vertices), "recorded": take, "why": why,
                        "modifiers": [f"{m.name} ({m.type}{'' if m.show_viewport else ', off'})" for m in thing.modifiers]})
        if take:
            chosen.append(thing.name)
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(row["name"], pattern) for row in listing):
            known = ", ".join(row["name"] for row in listing[:12])
            raise RuntimeError(f"--object {pattern}: there is no such mesh (there are {known})")
    if not chosen:
        raise RuntimeError("no mesh is moved by a rig; name one with --object")
    return chosen, listing


def surface(stage):
    """Faces, texture coordinates and segments of the evaluated meshes; polygons of more corners become triangles."""
    faces, face_uvs, uvs, of_vertex, first, partly, missing = [], [], [], [], 0, False, False
    for number, thing in enumerate(stage.objects):
        mesh = stage.evaluated(thing).data
        corners = np.empty(len(mesh.loops), np.int32)
        mesh.loops.foreach_get("vertex_index", corners)
        starts, totals = np.empty(len(mesh.polygons), np.int32), np.empty(len(mesh.polygons), np.int32)
        mesh.polygons.foreach_get("loop_start", starts)
        mesh.polygons.foreach_get("loop_total", totals)
        loops = [list(range(a, a + n)) for a, n in zip(starts.tolist(), totals.tolist()) if n <= 4]
        if (totals > 4).any():
            mesh.calc_loop_triangles()
            loops += [list(t.loops) for t in mesh.loop_triangles if totals[t.polygon_index] > 4]
        owner = corners.tolist()
        faces += [[first + owner[loop] for loop in face] for face in loops]
        layer = mesh.uv_layers.active
        if layer is None:
            missing = True
        else:
            partly = True
            flat = np.empty(2 * len(mesh.loops), np.float32)
            if hasattr(layer, "uv"):
                layer.uv.foreach_get("vector", flat)
            else:
                layer.data.foreach_get("uv", flat)
            key = np.column_stack([corners, flat.reshape(-1, 2).view(np.int32)])
            unique, place = np.unique(key, axis=0, return_inverse=True)
            place = (place.ravel() + len(uvs)).tolist()
            uvs += np.ascontiguousarray(unique[:, 1:].astype(np.int32)).view(np.float32).tolist()
            face_uvs += [[place[loop] for loop in face] for face in loops]
        of_vertex += [number] * len(mesh.vertices)
        first += len(mesh.vertices)
    out = {"faces": faces, "partly": partly and missing,
           "segments": {"names": [thing.name for thing in stage.objects], "of_vertex": of_vertex}}
    if partly and not missing:
        out.update(uvs=uvs, face_uvs=face_uvs)
    return out


def used_bones(stage):
    """Deform bones with weight on a chosen mesh."""
    out = set()
    for thing in stage.objects:
        groups = input_module.weighted_groups(thing)
        for modifier in thing.modifiers:
            if modifier.type == "ARMATURE" and modifier.object:
                # Envelopes reach wherever a deform bone is.
                names = [b.name for b in modifier.object.data.bones if b.use_deform] if groups is None else groups
                out |= {(modifier.object.name, name) for name in names}
    return out


def skin(stage, inputs):
    """Skin weights, where every vertex of every chosen mesh has some; bones that are recorded alone count."""
    place = {(row["object"], row["bone"]): index for index, row in enumerate(inputs) if row["kind"] == "bone"}
    rows = []
    for thing in stage.objects:
        armature = next((m.object for m in thing.modifiers if m.type == "ARMATURE" and m.object), None)
        mesh = thing.data
        if armature is None or len(mesh.vertices) != len(stage.evaluated(thing).data.vertices):
            return None
        owner = [place.get((armature.name, group.name)) if group.name in armature.data.bones
                 and armature.data.bones[group.name].use_deform else None for group in thing.vertex_groups]
        for vertex in mesh.vertices:
            row = [(owner[g.group], g.weight) for g in vertex.groups
                   if g.group < len(owner) and owner[g.group] is not None and g.weight > 0]
            total = sum(weight for _, weight in row)
            if total <= 0:
                return None
            rows.append([[bone, weight / total] for bone, weight in sorted(row, key=lambda r: -r[1])])
    return rows
