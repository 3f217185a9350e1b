# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch: parameters become views of the shared memory, and stay so.

Much of what PyTorch offers moves a parameter to other memory without a word: ``double()``, ``to(memory_format=...)``,
``share_memory()``, ``p.data = ...``, pruning, a layer that is replaced. So before each fold every place of a parameter
is looked at. What still has its shape and type is copied in and bound again; what has not is named.

Tensors on a device stay there, and are copied (device.py). Tensors of half precision stay, too: the shared memory has float32
masters of them (Micikevicius et al. 2017, section 3.1)."""
from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any, Callable, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Set, Tuple

import torch

from .device import Copier, Copiers
from .errors import Error, ViewsLost
from .interrupt import uninterrupted
from .memory import Layout, Memory, Tensor
from .model import check_local, check_shapes, check_shares, is_named

HALVES = (torch.float16, torch.bfloat16)
RUN_MAX = 1 << 22  # values that are copied together


def lies_here(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be a view of shared memory; others, on a device, are copied to it and back."""
    return bool(tensor.device.type == "cpu")


@dataclasses.dataclass
class Place:
    """Where a module keeps a tensor: ``table[key]``."""

    table: Dict[str, torch.Tensor]
    key: str


@dataclasses.dataclass
class Found:
    """A tensor of the model and all its places: tied ones have several."""

    tensor: torch.Tensor
    places: List[Place]
    names: List[str]  # in the same order


@dataclasses.dataclass
class Slot:
    """A tensor that travels."""

    entry: Tensor
    found: Found
    view: torch.Tensor  # of the memory, in the tensor's shape
    address: int  # of the view; share_memory() takes a view along when it moves a tensor
    dtype: torch.dtype
    is_value: bool  # and no update, in every turn
    copier: Optional[Copier] = None  # of the tensor; None: it is the view
    adopted: int = 0  # the address of the tensor that the copier knows
    master: Optional[torch.Tensor] = None  # what a tensor was last rounded from, or what was last sent of it; float32 on its device
    touch: Optional[torch.Tensor] = None  # an empty view of the tensor, which shares its version counter


def plain(name: str) -> str:
    """A name without what DataParallel (first) and compile (anywhere) put into it."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    return ".".join(parts[1:] if parts[0:1] == ["module"] else parts)


def modules_of(model: torch.nn.Module) -> Iterator[Tuple[str, torch.nn.Module]]:
    """Every module by the first of its names. A module is not asked for itself twice, so that a circle ends."""
    for name, module in model.named_modules():
        yield plain(name), module


def search(model: torch.nn.Module, table: str) -> Dict[str, Found]:
    """All tensors of the modules' tables `table`, by their first names, in the order of the modules."""
    found: Dict[int, Found] = {}
    names: Dict[str, Found] = {}
    for prefix, module in modules_of(model):
        entries = getattr(module, table)
        for key, tensor in entries.items():
            if tensor is None or (table == "_buffers" and key in module._non_persistent_buffers_set):
                continue
            name = f"{prefix}.{key}" if prefix else key
            if id(tensor) not in found and name in names:
                raise Error(f"two parameters of the model are called '{name}', wrappers aside; rename one")
            if id(tensor) not in found:
                found[id(tensor)] = names[name] = Found(tensor, [], [])
            found[id(tensor)].places.append(Place(entries, key))
            found[id(tensor)].names.append(name)
    return names


def is_local(found: Found, local: Sequence[str]) -> bool:
    """Whether `local` names a tensor. Raises Error if it names only some of the places of a tied one."""
    ours = [is_named(name, local) for name in found.names]
    if any(ours) and not all(ours):
        raise Error(f"'{found.names[ours.index(True)]}' is to stay local, and is tied to '{found.names[ours.index(False)]}', which "
                    "is shared; name both in local, or neither")
    return any(ours)


def digest(tensors: Dict[str, Found]) -> str:
    """16 hexadecimal digits that stand for the tensors' names, shapes, types and bits."""
    hasher = hashlib.sha256()
    for name, found in sorted(tensors.items()):
        tensor = found.tensor.detach().cpu().contiguous()
        hasher.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        hasher.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()[:16]


class TorchModel:
    """A module behind the seam of model.py. `buffers` "average": those of floating point travel, as values;
    "local": none does. `params` "trainable": those that require a gradient travel, of the others a digest. What `local` names stays
    where it is. With `ahead` all tensors that travel are copied, and the program may change them while the daemon has the memory:
    see advance()."""

    def __init__(self, model: torch.nn.Module, buffers: Literal["average", "local"],
                 params: Literal["trainable", "all"], ahead: bool = False, local: Sequence[str] = ()) -> None:
        self._model, self._ahead, self._names = model, ahead, tuple(local)
        self._average, self._all = buffers == "average", params == "all"
        check_local(self._names, [name for table in ("_parameters", "_buffers") for found in search(model, table).values()
                                  for name in found.names])
        updates, values, frozen = self._search()
        for name, found in updates.items():
            check_parameter(name, found.tensor)
        check_shares(self._names, list(updates))
        self.layout = Layout({n: f.tensor.shape for n, f in updates.items()},
                             {n: f.tensor.shape for n, f in values.items()})
        self.tags = {"framework": f"torch {torch.__version__}"}
        if frozen:
            self.tags["frozen"] = digest(frozen)
        self._slots: List[Slot] = []
        self._frozen = frozen
        self._tree: List[Tuple[Dict[str, Any], Dict[str, Any]]] = []
        self._memory: Optional[Memory] = None
        self._copiers: Optional[Copiers] = None

    def _search(self) -> Tuple[Dict[str, Found], Dict[str, Found], Dict[str, Found]]:
        """What travels as updates, what as values, and what is frozen. Without a value there is nothing to share."""
        parameters = {n: f for n, f in self._shared("_parameters").items() if has_values(n, f.tensor)}
        buffers = self._shared("_buffers") if self._average else {}
        frozen = {} if self._all else {n: f for n, f in parameters.items() if not f.tensor.requires_grad}
        return ({n: f for n, f in parameters.items() if n not in frozen},
                {n: f for n, f in buffers.items() if f.tensor.is_floating_point() and f.tensor.numel()}, frozen)

    def _shared(self, table: str) -> Dict[str, Found]:
        """The tensors of a table that `local` does not name. Raises Error for one that it names in part."""
        return {name: found for name, found in search(self._model, table).items() if not is_local(found, self._names)}

    def share(self, memory: Memory) -> None:
        self._memory, self._copiers = memory, Copiers(memory)
        memory.shield()
        updates, values, _ = self._search()
        for entry, found in zip(self.layout.tensors, [*updates.values(), *values.values()]):
            view = view_of(memory, entry)
            slot = Slot(entry, found, view, view.data_ptr(), found.tensor.dtype, entry.first >= self.layout.values_from)
            self._slots.append(slot)
            self._bind(slot)
        self._on_copiers(take)
        self.synchronize()
        self._remember_tree()

    def gather(self, assigned: bool = False) -> None:
        self._find()
        self._on_copiers(functools.partial(take, assigned=assigned))
        self.synchronize()

    def advance(self, landed: bool) -> None:
        self._find()
        with uninterrupted():  # a tensor that has been passed on by half would be added twice
            self._on_copiers(functools.partial(pass_on, landed=landed))
            self.synchronize()

    def _find(self) -> None:
        """Where the tensors are now. Raises ViewsLost, and Error for a frozen parameter that no longer is."""
        self._look_at_tree()
        for slot in self._slots:
            tensor = self._held(slot)
            if slot.copier is not None or tensor is not slot.found.tensor or not in_place(slot, tensor):
                check_same(slot, tensor)
                slot.found.tensor = tensor
                if slot.view.data_ptr() != slot.address and self._memory is not None:
                    slot.view = view_of(self._memory, slot.entry)
                self._bind(slot)
        for name, found in self._frozen.items():
            if found.tensor.requires_grad:
                raise Error(f"'{name}' was frozen when the program attached, so it does not travel, and now requires "
                            "a gradient; attach with params='all', or after it has been freed")

    def scatter(self) -> None:
        with torch.no_grad():
            for slot in self._slots:
                if slot.touch is not None:
                    slot.touch.zero_()  # nothing is written, but a graph kept across the turn raises
        self._on_copiers(put)
        for copier in self._copiers.all() if self._copiers else []:
            copier.fence()

    def synchronize(self) -> None:
        if self._copiers is not None:
            self._copiers.synchronize()

    def _bind(self, slot: Slot) -> None:
        """Copy the values of a slot's tensor to the memory and let it live there; or choose the copier for it."""
        tensor = slot.found.tensor
        if lies_here(tensor) and tensor.dtype == torch.float32 and not self._ahead:
            slot.view.copy_(tensor.detach().clone())  # a transposed view lies over where it goes
            tensor.data = slot.view
            slot.touch, slot.copier = tensor.detach().view(-1)[:0], None
            return
        assert self._copiers is not None
        copier = self._copiers.of(tensor.device)
        if copier is not slot.copier or tensor.data_ptr() != slot.adopted:
            copier.adopt(tensor)
        slot.touch, slot.copier, slot.adopted = None, copier, tensor.data_ptr()

    def _on_copiers(self, work: Callable[[Memory, Copier, List[Slot]], None]) -> None:
        """Do this with each run of slots that are copied: those of one device in order, those of several side by side."""
        for copier in self._copiers.all() if self._copiers else []:
            slots = [slot for slot in self._slots if slot.copier is copier]
            copier.run(functools.partial(each, work, self._memory, copier, slots))

    def _stays(self) -> Dict[str, torch.Tensor]:
        """Buffers that do not travel, and parameters that `local` names, by name."""
        travels = {slot.entry.name for slot in self._slots}
        parameters = {n: f for n, f in search(self._model, "_parameters").items() if is_local(f, self._names)}
        return {name: found.tensor for name, found in {**parameters, **search(self._model, "_buffers")}.items()
                if name not in travels}

    def local(self) -> Dict[str, Any]:
        return {name: tensor.detach().clone() for name, tensor in self._stays().items()}

    def set_local(self, tensors: Mapping[str, Any]) -> None:
        ours = self._stays()
        check_shapes(ours, tensors)
        with torch.no_grad():
            for name, tensor in ours.items():
                if name in tensors:
                    tensor.copy_(tensors[name])

    def fork(self) -> None:
        if self._memory is None:
            return
        self._memory.make_private()
        for slot in self._slots:
            if slot.copier is None:
                slot.view = view_of(self._memory, slot.entry)
                slot.found.tensor.data = slot.view
        _left_behind.append(self._slots)
        self._slots, self._copiers = [], None

    def release(self) -> None:
        for slot in self._slots:
            if slot.copier is None:
                slot.found.tensor.data = slot.view.clone()
        if self._copiers is not None:
            self._copiers.close()
        self._slots, self._copiers = [], None
        self._memory = None

    # ---- what has become of the model

    @staticmethod
    def _held(slot: Slot) -> torch.Tensor:
        """The tensor that the model has now in the places of a slot. Raises ViewsLost."""
        tensors = [place.table.get(place.key) for place in slot.found.places]
        first = tensors[0]
        if first is None:
            raise ViewsLost(slot.entry.name, "is no longer there (pruning, weight_norm and del take it away)")
        if any(other is not first for other in tensors):
            raise ViewsLost(slot.entry.name, "was tied to another, and no longer is")
        return first

    def _remember_tree(self) -> None:
        """Which modules hang on which, and which parameters they have."""
        self._tree = [(module.__dict__, self._branches(module)) for _, module in modules_of(self._model)]

    @staticmethod
    def _branches(module: torch.nn.Module) -> Dict[str, Any]:
        return {"modules": dict(module._modules), "names": set(module._parameters) | set(module._buffers)}

    def _look_at_tree(self) -> None:
        """A module that was replaced took its parameters along: look for all by their names. Raises ViewsLost."""
        if all(table["_modules"] == was["modules"] and names_of(table) == was["names"] for table, was in self._tree):
            return
        updates, values, _ = self._search()
        now = {**updates, **values}
        for slot in self._slots:
            if slot.entry.name not in now:
                raise ViewsLost(slot.entry.name, "is no longer there, or no longer requires a gradient")
            slot.found = dataclasses.replace(now.pop(slot.entry.name), tensor=slot.found.tensor)
        for name in now:
            raise ViewsLost(name, "came after the program attached, so it does not travel")
        self._remember_tree()


_left_behind: List[List[Slot]] = []  # by a forked child, which has no driver of a GPU to free their tensors with


def names_of(table: Dict[str, Any]) -> Set[str]:
    """Of a module's parameters and buffers."""
    return set(table["_parameters"]) | set(table["_buffers"])


def has_values(name: str, tensor: torch.Tensor) -> bool:
    """Raises Error for a parameter that has no shape yet."""
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        raise Error(f"'{name}' has no shape yet; run the model once before attaching")
    return bool(tensor.numel() > 0)


def check_parameter(name: str, tensor: torch.Tensor) -> None:
    """Parameters travel as float32; raises Error for a type that this would cut short, with what would be right."""
    if tensor.dtype not in (torch.float32, *HALVES):
        raise Error(f"'{name}' is of {tensor.dtype}; parameters are float32, bfloat16 or float16: model.float()")


def check_same(slot: Slot, tensor: torch.Tensor) -> None:
    """A tensor that moved is still what the fleet knows by its name. Raises ViewsLost."""
    if tuple(tensor.shape) != slot.entry.shape:
        raise ViewsLost(slot.entry.name, f"was of shape {list(slot.entry.shape)}, and is now of {list(tensor.shape)}")
    if tensor.dtype != slot.dtype:
        raise ViewsLost(slot.entry.name, f"was of {slot.dtype}, and is now of {tensor.dtype}")


def view_of(memory: Memory, entry: Tensor) -> torch.Tensor:
    """A view with a storage of its own, so that one tensor saved is one tensor."""
    flat = torch.frombuffer(memory.map, dtype=torch.float32, count=entry.count, offset=memory.offset(entry))
    return flat.view(entry.shape)


def in_place(slot: Slot, tensor: torch.Tensor) -> bool:
    """Whether a tensor is what a slot's view is: its address, shape, type and order."""
    return bool(tensor.data_ptr() == slot.address and tensor.dtype == slot.view.dtype
                and tensor.shape == slot.view.shape and tensor.stride() == slot.view.stride())


# ---- tensors that are copied


def runs_of(slots: List[Slot], small: int) -> Iterator[List[Slot]]:
    """Slots in the order of the memory, as lists: small ones of one kind that follow each other there, or one alone."""
    run: List[Slot] = []
    for slot in slots:
        if run and not (slot.entry.first == run[-1].entry.first + run[-1].entry.count and slot.dtype == run[0].dtype
                        and slot.is_value == run[0].is_value and max(slot.entry.count, run[-1].entry.count) < small
                        and slot.entry.first - run[0].entry.first < RUN_MAX):
            yield run
            run = []
        run.append(slot)
    if run:
        yield run


def each(work: Callable[[Memory, Copier, List[Slot]], None], memory: Memory, copier: Copier, slots: List[Slot]) -> None:
    """Do the same with all runs of slots, as one piece of work of their copier."""
    with torch.no_grad():
        for run in runs_of(slots, copier.small):
            work(memory, copier, run)


def take(memory: Memory, copier: Copier, run: List[Slot], assigned: bool = False) -> None:
    """The memory has what tensors are now; with `assigned` their values are no update. Twice is as good as once."""
    part_of(memory, run).copy_(values_of(run, assigned or run[0].is_value), non_blocking=copier.non_blocking)


def put(memory: Memory, copier: Copier, run: List[Slot]) -> None:
    """Tensors have the values of the memory, rounded to their types; their version counters say so."""
    if len(run) == 1 and run[0].master is None:
        run[0].found.tensor.detach().copy_(run[0].view, non_blocking=copier.non_blocking)
    else:
        spread(run, copy_of(memory, copier, run))


def pass_on(memory: Memory, copier: Copier, run: List[Slot], landed: bool) -> None:
    """The memory has what tensors are now, and is given away without a wait for the next turn. If one has `landed`, the tensors
    become what the memory holds, and what has become of them since they were last given away."""
    values = copy_of(memory, copier, run).add_(change_of(run)) if landed else values_of(run).clone()
    part_of(memory, run).copy_(values, non_blocking=copier.non_blocking)
    spread(run, values, mastered=True)


def spread(run: List[Slot], values: torch.Tensor, mastered: bool = False) -> None:
    """Give flat values on their device, which are the caller's to give away, to the tensors of a run; and to those that have
    masters, or to all if they are to have some, as their masters."""
    parts = [part.view(slot.entry.shape) for slot, part in zip(run, values.split([slot.entry.count for slot in run]))]
    copy_all([slot.found.tensor.detach() for slot in run], parts)
    for slot, part in zip(run, parts):
        if mastered or slot.master is not None:
            slot.master = part


def copy_all(targets: List[torch.Tensor], sources: List[torch.Tensor]) -> None:
    """Copy each source to its target: of several tensors by one call, where PyTorch has it (since 2.1)."""
    together = getattr(torch, "_foreach_copy_", None)
    if together is not None and len(targets) > 1:
        together(targets, sources)
        return
    for target, source in zip(targets, sources):
        target.copy_(source)


def part_of(memory: Memory, run: List[Slot]) -> torch.Tensor:
    """The memory of a run of slots."""
    count = sum(slot.entry.count for slot in run)
    return torch.frombuffer(memory.map, dtype=torch.float32, count=count, offset=memory.offset(run[0].entry))


def copy_of(memory: Memory, copier: Copier, run: List[Slot]) -> torch.Tensor:
    """The values of the memory of a run, flat, on the device of its tensors."""
    part = part_of(memory, run)
    there = torch.empty(part.shape, dtype=torch.float32, device=run[0].found.tensor.device)
    return there.copy_(part, non_blocking=copier.non_blocking)


def flat(tensors: List[torch.Tensor]) -> torch.Tensor:
    """All values in order; of one tensor that lies in order itself."""
    return tensors[0].reshape(-1) if len(tensors) == 1 else torch.cat([tensor.reshape(-1) for tensor in tensors])


def values_of(run: List[Slot], written: bool = False) -> torch.Tensor:
    """What is sent of tensors, float32, flat, on their device.

    The update of half tensors is what the optimizer made of the rounded values. Added to their masters in float32, it brings no
    error of rounding along: a tensor that did not change leaves its master as it is. Values that were `written` replace theirs."""
    now = flat([slot.found.tensor.detach() for slot in run])
    if now.dtype not in HALVES:
        return now.float()
    for slot in run:
        if slot.master is None:
            slot.master = slot.found.tensor.detach().float().clone()
    master = master_of(run)
    if written:
        return torch.where(now != master.to(now.dtype), now.float(), master)
    return master + change_of(run)


def master_of(run: List[Slot]) -> torch.Tensor:
    """The masters of a run, flat, on the device of its tensors, which may have moved."""
    return flat([slot.master.to(slot.found.tensor.device) for slot in run if slot.master is not None])


def change_of(run: List[Slot]) -> torch.Tensor:
    """What has become of the tensors of a run since their masters were made, float32, flat."""
    now = flat([slot.found.tensor.detach() for slot in run])
    return now.float() - master_of(run).to(now.dtype).float()
