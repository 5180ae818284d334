"""Sampling and sweeps on a farm. Ray does the farming (`pip install "understudy[ray]"`): placing, retrying, nodes that die.

    from understudy import farm
    farm.sample("rook", "data/rook", poses=20000, method="sparse", address="auto")
    farm.sweep("data/rook", "twins", [{"kind": "body", "seed": seed} for seed in (1, 2, 3)], address="auto")
    farm.sweep("data/rook", "twins", [{"kind": "auto", "seed": seed} for seed in (1, 2, 3)], address="auto")

A recording is cut into shards; each is a task that gives the same bytes on any machine, however often it is tried. What a task
made comes back through Ray's object store, so that nodes need no disk in common. Without Ray, the same shards are made by
`understudy sample --shard k/n` and joined by `understudy merge`: docs/guides/farm.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from . import BadInputError, UnderstudyError, learn, merge
from . import open as open_rig
from . import sample as _sample_here

#: Chunks per shard, about 10 MB each: what is lost when a node dies, and what lies in memory when a shard comes back.
CHUNKS_PER_SHARD = 4
#: As many as `understudy.sample` records where neither a number nor clips are given.
POSES = 1000


def _ray(address: str | None):
    try:
        import ray
    except ImportError:
        raise UnderstudyError('the farm runs on Ray: pip install "understudy[ray]"') from None
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    elif address not in (None, "auto", here := ray.get_runtime_context().gcs_address):
        raise BadInputError(f"address: {address}, but this process belongs to the cluster at {here} already")
    return ray


def _files(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def _pose_count(rig, settings: dict) -> int:
    """How many poses a recording has at most where no number is given: the frames of its clips, as on one machine."""
    clips = settings.get("clips") or []
    if not (clips or settings.get("held_out")):
        return POSES
    opened = open_rig(rig() if isinstance(rig, Callable) else rig)
    names = clips or [clip["name"] for clip in opened.clips]
    return sum(len(opened.clip(name, settings.get("rate"))[0]) for name in names)


def _called(rig) -> str:
    """What a rig is known by in a later process: a function's address there is another one."""
    return f"{rig.__module__}.{rig.__qualname__}" if hasattr(rig, "__qualname__") else str(rig)


def _make_shard(rig, settings: dict, number: int, of: int) -> dict[str, bytes]:
    """What one task does, on whatever node: a shard as the bytes of its files."""
    rig = rig() if isinstance(rig, Callable) else rig
    with tempfile.TemporaryDirectory(prefix="understudy-") as scratch:
        folder = os.path.join(scratch, "shard")
        _sample_here(rig, folder, shard=(number, of), threads=1, **settings)
        return _files(folder)


def _make_twin(data: bytes | str, settings: dict) -> tuple[bytes, dict]:
    """What one task of a sweep does."""
    with tempfile.TemporaryDirectory(prefix="understudy-") as scratch:
        folder = data
        if not isinstance(data, str):
            folder = os.path.join(scratch, "data")
            _write(Path(folder), data)
        twin = os.path.join(scratch, "hero.twin")
        report = learn(folder, twin, **settings)
        return Path(twin).read_bytes(), report


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """A folder, whole or not at all."""
    half = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for name, content in files.items():
        (half / name).write_bytes(content)
    shutil.rmtree(folder, ignore_errors=True)
    half.rename(folder)


def sample(
    rig,
    output,
    *,
    poses: int | None = None,
    address: str | None = None,
    shards: int | None = None,
    retries: int = 5,
    progress=None,
    **settings,
) -> dict:
    """Records a dataset on a Ray cluster: the bytes of a run on one machine. Settings are those of `understudy.sample`: with
    `clips` and without `poses` every frame of the clips is recorded.

    `rig` is a name or file that every node finds, an address, or a function without arguments that makes a rig (an object as
    `understudy.open` takes it) where the task runs. `address`: Ray's ("auto": the cluster that this machine belongs to); None
    starts one here. A run that was interrupted goes on with the shards that it lacks; a function is the same one by its name.
    """
    output = Path(output)
    chunk = settings.get("chunk") or 64
    chunks = max(1, -(-(poses or _pose_count(rig, settings)) // chunk))
    shards = min(chunks, shards or -(-chunks // CHUNKS_PER_SHARD))
    settings = {**settings, "poses": poses, "chunk": chunk}
    work = output.with_name(output.name + ".shards")
    # Shards of other settings are no use: what a run is, is written beside them.
    note = json.dumps({"rig": _called(rig), "shards": shards, "settings": settings}, sort_keys=True, default=str)
    if (work / "run.json").exists() and (work / "run.json").read_text() != note:
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    (work / "run.json").write_text(note)
    folders = [work / f"{number:05}" for number in range(1, shards + 1)]
    missing = [number for number in range(1, shards + 1) if not folders[number - 1].is_dir()]

    ray = _ray(address)
    task = ray.remote(num_cpus=1, max_retries=retries)(_make_shard)
    waiting = {task.remote(rig, settings, number, shards): number for number in missing}
    done = shards - len(missing)
    _tell(progress, "started", what=f"sampling {_called(rig)} on Ray", total=shards, unit="shards")
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for reference in ready:
                number = waiting.pop(reference)
                _write(folders[number - 1], _get(ray, reference))
                done += 1
                _tell(progress, "step", done=done)
    except BaseException:
        for reference in waiting:
            ray.cancel(reference, force=True)
        raise
    report = merge(folders, output)
    _tell(progress, "finished")
    shutil.rmtree(work)
    return report


def sweep(data, output, variants: Iterable[dict], *, address: str | None = None, retries: int = 2, shared: bool = False, progress=None) -> list[dict]:
    """Learns a twin per variant (settings of `understudy.learn`, seeds and sizes for instance), each a Ray task; writes
    `output/000.twin` and so on and `output/sweep.json`, and gives the reports, best first. `shared`: every node sees the dataset
    under the same path; otherwise it is sent once."""
    ray = _ray(address)
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    source = str(Path(data).resolve()) if shared else ray.put(_files(os.fspath(data)))
    task = ray.remote(num_cpus=1, max_retries=retries)(_make_twin)
    variants = [dict(variant) for variant in variants]
    if not variants:
        raise BadInputError("variants: there are none")
    waiting = {task.remote(source, {"threads": 1, **variant}): place for place, variant in enumerate(variants)}
    _tell(progress, "started", what="learning on Ray", total=len(variants), unit="twins")
    results = []
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for reference in ready:
                place = waiting.pop(reference)
                twin, report = _get(ray, reference)
                path = output / f"{place:03}.twin"
                half = path.with_suffix(".tmp")
                half.write_bytes(twin)
                half.rename(path)
                held = report.get("learned", report).get("held_back") or {}
                results.append({"twin": str(path), "variant": variants[place], "mean_mm": held.get("mean_mm"), "report": report})
                _tell(progress, "step", done=len(results))
    except BaseException:
        for reference in waiting:
            ray.cancel(reference, force=True)
        raise
    results.sort(key=lambda result: (result["mean_mm"] is None, result["mean_mm"]))
    (output / "sweep.json").write_text(json.dumps(results, indent=1))
    _tell(progress, "finished")
    return results


def _get(ray, reference):
    """What a task gave; its own error, without Ray's wrapping."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, (BadInputError, UnderstudyError)) else error from None


def _tell(progress, event: str, **facts) -> None:
    if progress is True:
        facts = ", ".join(f"{name} {value}" for name, value in facts.items())
        print(f"\r\x1b[K{event} {facts}", end="\n" if event == "finished" else "", file=sys.stderr, flush=True)
    elif progress:
        progress({"event": event, **facts})


def main(words: list[str] | None = None) -> int:
    """`understudy farm`, and `python -m understudy.farm`."""
    parser = argparse.ArgumentParser(
        prog="understudy farm",
        description="Sampling and sweeps on a Ray cluster.",
        epilog="Example: understudy farm sample rook -o data/rook --poses 20000 --method sparse --ray auto",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("sample", help="records a dataset", epilog="Example: understudy farm sample mira -o data/mira --poses 8000 --ray auto")
    one.add_argument("rig")
    one.add_argument("-o", "--output", required=True, metavar="DIR")
    one.add_argument("--poses", type=int, metavar="N", help=f"every frame where clips are named, {POSES} otherwise")
    one.add_argument("--method", choices=["gaussian", "uniform", "sparse", "noise"])
    one.add_argument("--seed", type=int, metavar="S")
    one.add_argument("--clip", action="append", dest="clips", metavar="NAME")
    one.add_argument("--exclude", action="append", metavar="NAME")
    one.add_argument("--chunk", type=int, metavar="N", help="poses per file")
    one.add_argument("--shards", type=int, metavar="N")
    one.add_argument("--ray", metavar="ADDRESS", help="of a cluster, or auto; without it one starts here")
    two = commands.add_parser("sweep", help="learns a twin per kind and seed", epilog="Example: understudy farm sweep data/rook -o twins --kind body --seeds 1,2,3 --ray auto")
    two.add_argument("data")
    two.add_argument("-o", "--output", required=True, metavar="DIR")
    two.add_argument("--kind", action="append", metavar="KIND", help="auto, body, diff, face or skin; can be given again")
    two.add_argument("--seeds", default="1", metavar="S,S", help="one twin of each kind per seed")
    two.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the kind")
    two.add_argument("--ray", metavar="ADDRESS")
    given = vars(parser.parse_args(words))
    command, address = given.pop("command"), given.pop("ray")
    try:
        if command == "sample":
            given = {name: value for name, value in given.items() if value is not None}
            report = sample(given.pop("rig"), given.pop("output"), address=address, progress=True, **given)
        else:
            extra = {name: json.loads(value) for name, value in (text.split("=", 1) for text in given["set"])}
            seeds = [int(seed) for seed in given["seeds"].split(",")]
            kinds = given["kind"] or ["skin"]
            variants = [{"kind": kind, "seed": seed, **extra} for kind in kinds for seed in seeds]
            report = sweep(given["data"], given["output"], variants, address=address, progress=True)
    except (BadInputError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except UnderstudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
